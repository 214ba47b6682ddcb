//! The client for the API server: it counts requests, limits their time and, in plan mode, rejects writes.

use std::time::Duration;

use http::{HeaderValue, Method, Request, Uri, header::USER_AGENT};
use kube::{
    Client,
    client::{Body, ClientBuilder},
};
use skep_converge::Mode;
use tower::{filter::FilterLayer, timeout::TimeoutLayer, util::MapRequestLayer};

/// How long the API server may take to respond, with all retries. It ends most requests itself after a minute.
pub(crate) const REQUEST_TIME: Duration = Duration::from_secs(70);
/// How audit logs and the metrics of the API server name the operator.
const AGENT: HeaderValue = HeaderValue::from_static(concat!("skep-operator/", env!("CARGO_PKG_VERSION")));
/// How long a connection may be silent. The API server ends each watch earlier than that.
const SILENCE: Duration = Duration::from_secs(295);

/// A client that passes the verb and resource of each request to `count`. In plan mode it cannot write.
pub(crate) fn counted_client(
    mut config: kube::Config,
    mode: Mode,
    request_time: Duration,
    count: impl Fn(&'static str, String) + Clone + Send + Sync + 'static,
) -> Result<Client, kube::Error> {
    let count = move |request: Request<Body>| {
        let (verb, resource) = classify(request.method(), request.uri());
        count(if is_dry_run(request.uri()) { DRY_RUN } else { verb }, resource);
        request
    };
    config.read_timeout = Some(SILENCE);
    config.headers.push((USER_AGENT, AGENT));
    let limited = ClientBuilder::try_from(config)?.with_layer(&TimeoutLayer::new(request_time));
    let counted = limited.with_layer(&MapRequestLayer::new(count));
    Ok(match mode {
        Mode::Write => counted.build(),
        Mode::Plan => counted.with_layer(&FilterLayer::new(reject_writes)).build(),
    })
}

/// A write in plan mode.
#[derive(Debug, thiserror::Error)]
#[error("a plan must not write: {0} {1}")]
struct Writes(Method, String);

/// Passes reads and dry runs, so that no holder of this client can write.
fn reject_writes(request: Request<Body>) -> Result<Request<Body>, Writes> {
    if request.method() == Method::GET || is_dry_run(request.uri()) {
        return Ok(request);
    }
    Err(Writes(request.method().clone(), request.uri().path().into()))
}

/// The verb that dry runs are counted as.
pub(crate) const DRY_RUN: &str = "dry-run";

fn is_dry_run(uri: &Uri) -> bool {
    uri.query().is_some_and(|query| query.split('&').any(|part| part == "dryRun=All"))
}

/// The verb and the resource of a request, as in RBAC.
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
    fn a_plan_cannot_write() {
        let result = |method: Method, uri: &str| {
            let request = Request::builder().method(method).uri(uri).body(Body::empty()).unwrap();
            reject_writes(request).map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(result(Method::GET, "/api/v1/pods?watch=true"), Ok(()));
        assert_eq!(result(Method::PATCH, "/api/v1/namespaces/a/pods/b?force=true&dryRun=All"), Ok(()));
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let expected = format!("a plan must not write: {method} /api/v1/x");
            assert_eq!(result(method, "/api/v1/x?dryRun=Al&fieldManager=dryRun=All"), Err(expected));
        }
    }

    #[tokio::test]
    async fn a_request_ends_even_if_the_api_server_never_responds() {
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", silent.local_addr().unwrap()).parse().unwrap();
        let client =
            counted_client(kube::Config::new(url), Mode::Write, Duration::from_millis(50), |_, _| {})
                .unwrap();
        let request = tokio::time::timeout(Duration::from_secs(30), client.apiserver_version()).await;
        assert!(request.expect("it ends by itself").is_err());
    }

    #[test]
    fn requests_are_classified_by_verb_and_resource() {
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
