//! What the CRDs of the cluster declare, from the OpenAPI documents of the API server: every authenticated user may read these, and
//! CRDs only with permissions in the whole cluster.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use kube::Client;
use serde::Deserialize;
use serde_json::Value;
use skep_api::{crd, for_each_kind, kinds::*};
use skep_converge::{Kind, error_chain};
use tokio::sync::Mutex;
use tracing::{info, warn};

use super::{metrics::Metrics, registry::Registry};
use crate::{
    reconcile::{ByKind, UndeclaredFields, undeclared},
    resources::kind_of,
};

/// How long to wait before missing fields are looked for again: twice as long each time, as another operator's CRDs may stay.
const RETRY: Duration = Duration::from_secs(10);
const LONGEST_RETRY: Duration = Duration::from_secs(600);

/// The command that installs what is missing.
pub const INSTALL_CRDS: &str = "skep crds | kubectl apply --server-side --force-conflicts -f -";

/// The documents that the API server publishes, each with an address that changes with its content.
#[derive(Deserialize)]
struct Index {
    paths: BTreeMap<String, Document>,
}

#[derive(Clone, PartialEq, Eq, Deserialize)]
struct Document {
    #[serde(rename = "serverRelativeURL")]
    url: String,
}

/// The part of a document that is used.
#[derive(Deserialize)]
struct Schemas {
    components: Components,
}

#[derive(Deserialize)]
struct Components {
    schemas: BTreeMap<String, Schema>,
}

#[derive(Deserialize)]
struct Schema {
    #[serde(default, rename = "x-kubernetes-group-version-kind")]
    kinds: Vec<GroupVersionKind>,
    #[serde(default)]
    properties: Properties,
}

/// The rest of an object is not read: the documents are large.
#[derive(Default, Deserialize)]
struct Properties {
    status: Option<Value>,
}

#[derive(PartialEq, Eq, Deserialize)]
struct GroupVersionKind {
    group: String,
    version: String,
    kind: String,
}

/// Reads what the CRDs declare.
pub(crate) struct SchemaReader {
    client: Client,
    pub(crate) undeclared: Arc<UndeclaredFields>,
    /// The documents that were read last.
    read: BTreeMap<String, Document>,
}

impl SchemaReader {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, undeclared: Arc::default(), read: BTreeMap::new() }
    }

    /// Reads the documents that have changed. Returns the kinds that now have other undeclared fields.
    pub(crate) async fn refresh(&mut self) -> Result<Vec<Kind>, kube::Error> {
        let index: Index = request(&self.client, "/openapi/v3").await?;
        let versions: Vec<String> =
            kinds().iter().map(|kind| format!("apis/{}", kind.api_version())).collect();
        let mut published = index.paths;
        published.retain(|path, _| versions.contains(path));
        if published == self.read {
            return Ok(Vec::new());
        }
        let mut schemas = Vec::new();
        for path in published.keys() {
            // Not by its address: the index may be older than the document, and would then lead to a redirect.
            let read: Schemas = request(&self.client, &format!("/openapi/v3/{path}")).await?;
            schemas.extend(read.components.schemas.into_values());
        }
        self.read = published;
        Ok(self.undeclared.replace(compare(&schemas)))
    }

    /// Reads them at the start. An operator that may not read them assumes that everything is declared.
    pub(super) async fn start(&mut self, metrics: &Metrics) {
        match self.refresh().await {
            Ok(_) => self.report(metrics),
            Err(error) => {
                let error = error_chain(&error);
                warn!(
                    error,
                    "cannot read what the CRDs declare; assuming that they are those of this version"
                );
            }
        }
    }

    /// Requeues objects whose CRDs have changed, for ever. It is started again after a panic.
    pub(super) async fn keep_following(self, registry: &Registry, metrics: &Metrics) {
        let reader = &Mutex::new(self);
        let follow = || async move { reader.lock().await.follow(registry, metrics).await };
        skep_panics::restart("schemas", follow).await;
    }

    /// Requeues objects whose CRDs have changed: looks again while fields are missing, and when the API server rejects one.
    async fn follow(&mut self, registry: &Registry, metrics: &Metrics) {
        let mut retry = RETRY;
        loop {
            let is_complete = self.undeclared.all().is_empty();
            tokio::select! {
                () = tokio::time::sleep(retry), if !is_complete => retry = (retry * 2).min(LONGEST_RETRY),
                () = self.undeclared.rejection() => retry = RETRY,
            }
            match self.refresh().await {
                Ok(changed) if changed.is_empty() => {}
                Ok(changed) => {
                    retry = RETRY;
                    self.report(metrics);
                    changed.into_iter().for_each(|kind| registry.requeue(kind));
                }
                Err(error) => {
                    warn!(error = error_chain(&error), "cannot read what the CRDs declare; retrying")
                }
            }
        }
    }

    fn report(&self, metrics: &Metrics) {
        let all = self.undeclared.all();
        for kind in kinds() {
            metrics.record_undeclared(kind.kind, all.get(&kind).map_or(0, |fields| fields.len()));
        }
        match described(&all).join("; ") {
            fields if fields.is_empty() => info!("the CRDs declare all status fields"),
            fields => {
                warn!(
                    fields,
                    run = INSTALL_CRDS,
                    "the CRDs lack status fields, which are left out until they are installed"
                )
            }
        }
    }
}

/// The missing fields, a text for each kind.
pub fn described(all: &ByKind) -> Vec<String> {
    let of_kind = |(kind, fields): (&Kind, &Arc<[_]>)| {
        let fields: Vec<String> = fields.iter().map(ToString::to_string).collect();
        format!("{}: {}", kind.kind, fields.join(", "))
    };
    all.iter().map(of_kind).collect()
}

/// Every kind of the API.
pub(super) fn kinds() -> Vec<Kind> {
    macro_rules! kinds {
        ($($kind:ident),+) => { vec![$(kind_of::<$kind>()),+] };
    }
    for_each_kind!(kinds)
}

fn compare(published: &[Schema]) -> ByKind {
    let ours: BTreeMap<&str, Value> = crd::status_schemas().into_iter().collect();
    let mut all = ByKind::new();
    for kind in kinds() {
        let of_kind = GroupVersionKind {
            group: kind.group.into(),
            version: kind.version.into(),
            kind: kind.kind.into(),
        };
        let declared = published.iter().find(|schema| schema.kinds.contains(&of_kind));
        let declared = declared.and_then(|schema| schema.properties.status.as_ref());
        if let (Some(status), Some(declared)) = (ours.get(kind.kind), declared) {
            let fields = undeclared(status, declared);
            if !fields.is_empty() {
                all.insert(kind, fields.into());
            }
        }
    }
    all
}

async fn request<T: serde::de::DeserializeOwned>(client: &Client, path: &str) -> Result<T, kube::Error> {
    client.request(http::Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?).await
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;
    use skep_world::Target;
    use tokio::sync::watch;

    use super::*;
    use crate::run::registry::{AnyReconciler, Reconciling};

    /// Panics about the first change.
    struct Fragile(watch::Sender<usize>);

    impl AnyReconciler for Fragile {
        fn reconcile<'a>(&'a self, _: &'a Arc<Target>) -> Reconciling<'a> {
            Box::pin(std::future::pending())
        }

        fn requeue(&self) {
            self.0.send_modify(|changes| *changes += 1);
            assert!(*self.0.borrow() > 1, "a defect");
        }
    }

    /// An API server that publishes another schema of MCPGroup each time, always without most fields of its status.
    fn api_server() -> Client {
        let served = Arc::new(AtomicUsize::new(0));
        let service = tower::service_fn(move |request: Request<Body>| {
            let version = served.fetch_add(1, Ordering::Relaxed);
            let group = kind_of::<MCPGroup>();
            let path = format!("apis/{}", group.api_version());
            let body = if request.uri().path() == "/openapi/v3" {
                json!({"paths": {path: {"serverRelativeURL": format!("/openapi?hash={version}")}}})
            } else {
                let declared = if version % 4 < 2 { "phase" } else { "serverCount" };
                let kind = json!({"group": group.group, "version": group.version, "kind": group.kind});
                json!({"components": {"schemas": {"group": {
                    "x-kubernetes-group-version-kind": [kind],
                    "properties": {"status": {"type": "object", "properties": {declared: {"type": "string"}}}},
                }}}})
            };
            let response = Response::new(Body::from(body.to_string().into_bytes()));
            async move { Ok::<_, Infallible>(response) }
        });
        Client::new(service, "default")
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_about_a_changed_crd_does_not_end_the_search_for_others() {
        let (changes, mut changed) = watch::channel(0);
        let registry = Registry::of(kind_of::<MCPGroup>(), Box::new(Fragile(changes)));
        let metrics = Metrics::default();
        let mut reader = SchemaReader::new(api_server());
        reader.start(&metrics).await;
        tokio::select! {
            () = reader.keep_following(&registry, &metrics) => panic!("it ends"),
            seen = changed.wait_for(|changes| *changes > 2) => assert!(seen.is_ok()),
        }
    }
}
