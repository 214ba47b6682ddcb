//! Backends that are discovered: the members of a group, as they come and go.
//!
//! Their objects are watched, with the configurations and Secrets that they refer to. Any change has all members computed
//! again; a backend that is the same as before is not touched, so that no session of it is lost.

mod members;
mod references;

use std::{collections::BTreeSet, time::Duration};

use futures::{Stream, StreamExt, stream::select_all};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api, Resource,
    api::{ApiResource, DynamicObject, PartialObjectMeta},
    runtime::{
        WatchStreamExt,
        reflector::{self, Store},
        watcher,
    },
};
use skep_api::{
    kinds::{MCPExternalAuthConfig, MCPRemoteProxy, MCPServer, MCPServerEntry},
    vmcp::{Config, OutgoingAuth},
};
use tokio::sync::watch;
use tracing::{info, warn};

use crate::{
    Cluster,
    backend::{Blueprint, Factory},
    views::Views,
};
use members::Objects;
pub use members::backends_of_group;
use references::References;

/// Events that come together are one change.
const PAUSE: Duration = Duration::from_millis(50);

/// The backends of one group.
pub(crate) struct Discovery {
    cluster: Cluster,
    group: String,
    /// How to authenticate to members that do not describe it themselves.
    outgoing: Option<OutgoingAuth>,
    /// Backends that the file has beside the group.
    fixed: Vec<Blueprint>,
}

/// Objects of one kind. They are parsed one by one, so that a bad one hides no other.
type Kept = Store<DynamicObject>;
type Events = std::pin::Pin<Box<dyn Stream<Item = Option<String>> + Send>>;

impl Discovery {
    pub(crate) fn new(cluster: Cluster, config: &Config, fixed: Vec<Blueprint>) -> Self {
        let group = config.group_ref.clone().unwrap_or_default();
        Self { cluster, group, outgoing: config.outgoing_auth.clone(), fixed }
    }

    /// Follows the members, for ever.
    pub(crate) async fn run(&self, views: &Views, factory: &Factory, is_synced: &watch::Sender<bool>) {
        let (servers, server_events) = self.watch::<MCPServer>();
        let (proxies, proxy_events) = self.watch::<MCPRemoteProxy>();
        let (entries, entry_events) = self.watch::<MCPServerEntry>();
        let (auths, auth_events) = self.watch::<MCPExternalAuthConfig>();
        let stores = [&servers, &proxies, &entries, &auths];
        let events = [server_events, proxy_events, entry_events, auth_events];
        let mut events =
            select_all(events.into_iter().chain([self.names::<Secret>(), self.names::<ConfigMap>()]));
        let providers = factory.providers();
        let objects = Objects {
            servers: &servers,
            proxies: &proxies,
            entries: &entries,
            auths: &auths,
            providers: providers.as_deref(),
        };
        let mut used = BTreeSet::new();
        loop {
            let Some(event) = events.next().await else { return };
            // Secrets and ConfigMaps have names here. Most are of no interest.
            let mut is_relevant = event.is_none_or(|name| used.contains(&name));
            while let Ok(Some(event)) = tokio::time::timeout(PAUSE, events.next()).await {
                is_relevant |= event.is_none_or(|name| used.contains(&name));
            }
            let is_complete = stores.iter().all(|store| is_ready(store));
            let is_first = !*is_synced.borrow();
            if is_complete && (is_relevant || is_first) {
                used = self.apply(&objects, views, factory).await;
                is_synced.send_replace(true);
            }
        }
    }

    /// Has the virtual server use the members that there are now. Returns the Secrets and ConfigMaps that they need.
    async fn apply(&self, objects: &Objects<'_>, views: &Views, factory: &Factory) -> BTreeSet<String> {
        let references = References::new(&self.cluster);
        let mut blueprints = self.fixed.clone();
        for member in objects.members(&self.group, self.outgoing.as_ref(), &references).await {
            match member {
                Ok(blueprint) if blueprints.iter().any(|other| other.name == blueprint.name) => {
                    warn!(backend = &*blueprint.name, "several members have this name; the first is used");
                }
                Ok(blueprint) => blueprints.push(blueprint),
                Err(error) => warn!(%error, "a member of the group cannot be used"),
            }
        }
        if let Err(error) = views.replace(factory, &blueprints) {
            warn!(%error, "a member of the group cannot be used");
        }
        info!(backends = blueprints.len(), "the members of the group are known");
        references.used()
    }

    /// Watches the objects of a kind, in the namespace. Every event may matter.
    fn watch<K: Resource<DynamicType = ()>>(&self) -> (Kept, Events) {
        let resource = ApiResource::erase::<K>(&());
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.cluster.client.clone(), &self.cluster.namespace, &resource);
        let writer = reflector::store::Writer::new(resource);
        let store = writer.as_reader();
        let events = watcher(api, watcher::Config::default()).default_backoff().reflect(writer);
        let events = events.filter_map(async |event| match event {
            Ok(_) => Some(None),
            Err(error) => {
                warn!(%error, "failed to watch the members of the group");
                None
            }
        });
        (store, events.boxed())
    }

    /// Watches which objects of a kind change, by their names.
    fn names<K>(&self) -> Events
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + serde::de::DeserializeOwned
            + Send
            + 'static,
    {
        let api: Api<PartialObjectMeta<K>> =
            Api::namespaced(self.cluster.client.clone(), &self.cluster.namespace);
        let events = watcher(api, watcher::Config::default());
        let events = events.default_backoff().touched_objects();
        events.filter_map(async |object| Some(Some(object.ok()?.metadata.name?))).boxed()
    }
}

fn is_ready(store: &Kept) -> bool {
    futures::FutureExt::now_or_never(store.wait_until_ready()).is_some_and(|ready| ready.is_ok())
}
