//! Counting what is asked of the API server.

use std::sync::Arc;

use http::{Method, Request, Uri};
use kube::{Client, client::ClientBuilder};
use tower::util::MapRequestLayer;

use super::metrics::Metrics;

/// A client whose requests are counted.
pub(super) fn counted_client(config: kube::Config, metrics: &Arc<Metrics>) -> Result<Client, kube::Error> {
    let metrics = metrics.clone();
    let count = move |request: Request<kube::client::Body>| {
        let (verb, resource) = classify(request.method(), request.uri());
        metrics.requested(verb, resource);
        request
    };
    Ok(ClientBuilder::try_from(config)?.with_layer(&MapRequestLayer::new(count)).build())
}

/// The verb and the resource of a request, as RBAC knows them.
fn classify(method: &Method, uri: &Uri) -> (&'static str, String) {
    let segments: Vec<&str> = uri.path().split('/').filter(|segment| !segment.is_empty()).collect();
    // /api/v1/..., /apis/GROUP/VERSION/...
    let rest = match segments.as_slice() {
        ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest,
        _ => return ("get", uri.path().into()),
    };
    let rest = match rest {
        ["namespaces", _, rest @ ..] if !rest.is_empty() => rest,
        rest => rest,
    };
    let (resource, named) = match rest {
        [resource, _, subresource, ..] => (format!("{resource}/{subresource}"), true),
        [resource, _] => ((*resource).to_owned(), true),
        [resource] => ((*resource).to_owned(), false),
        [] => return ("get", uri.path().into()),
    };
    let watches = uri.query().is_some_and(|query| query.contains("watch=true") || query.contains("watch=1"));
    let verb = match *method {
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ if watches => "watch",
        _ if named => "get",
        _ => "list",
    };
    (verb, resource)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_known_by_verb_and_resource() {
        for (method, uri, verb, resource) in [
            (Method::GET, "/api/v1/pods?watch=true", "watch", "pods"),
            (Method::GET, "/api/v1/namespaces/a/pods", "list", "pods"),
            (Method::GET, "/api/v1/namespaces/a/secrets/b", "get", "secrets"),
            (Method::PATCH, "/apis/apps/v1/namespaces/a/deployments/b?force=true", "patch", "deployments"),
            (Method::PATCH, "/apis/g/v1/namespaces/a/mcpservers/b/status", "patch", "mcpservers/status"),
            (Method::POST, "/apis/events.k8s.io/v1/namespaces/a/events", "create", "events"),
        ] {
            assert_eq!(classify(&method, &uri.parse().unwrap()), (verb, resource.to_owned()), "{uri}");
        }
    }
}
