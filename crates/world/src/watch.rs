//! Watches that keep a store in sync with the cluster.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures::{StreamExt, TryStreamExt};
use kube::{
    Api, Client, Resource,
    api::ListParams,
    core::{ApiResource, DynamicObject, DynamicResourceScope, ObjectList, PartialObjectMeta},
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use tracing::warn;

use crate::{
    Watched, World,
    store::{Name, name_of},
};

/// The page size of lists. A whole page is in memory, for every kind at the same time, and allocators seldom return
/// memory.
const PAGE: u32 = 50;

/// Watches one kind in a namespace, or in all, for the lifetime of the process. It is started again after a panic.
pub(crate) async fn run<W: Watched>(world: Arc<World>, client: Client, namespace: Option<String>) {
    let is_listed = AtomicBool::new(false);
    let watch = || watch::<W>(&world, client.clone(), namespace.as_deref(), &is_listed);
    skep_panics::restart(W::kind().kind, watch).await;
}

/// Errors are retried with back-off; after a lost watch everything is listed again, and differences are detected.
async fn watch<W: Watched>(world: &World, client: Client, namespace: Option<&str>, is_listed: &AtomicBool) {
    let resource = resource::<W>();
    let reading = client.clone();
    let config = watcher::Config {
        label_selector: W::SELECTOR.map(Into::into),
        page_size: Some(PAGE),
        ..watcher::Config::default()
    };
    let mut events = if W::METADATA_ONLY {
        let events = watcher(api(client, namespace, &resource), config).default_backoff();
        events.map_ok(|event| map_event(event, with_metadata_alone)).boxed()
    } else {
        watcher(api(client, namespace, &resource), config).default_backoff().boxed()
    };
    let record_list = || {
        let is_first = !is_listed.swap(true, Ordering::Relaxed);
        world.has_listed(W::kind(), namespace, is_first);
    };
    let mut listed = HashSet::new();
    let mut outdated = Vec::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Apply(object)) => world.observe::<W>(&object),
            Ok(Event::Delete(object)) => world.forget::<W>(&object),
            Ok(Event::Init) => {
                listed.clear();
                outdated.clear();
            }
            Ok(Event::InitApply(object)) => {
                listed.insert(name_of(&object));
                if world.is_newer::<W>(&object) {
                    outdated.push(name_of(&object));
                }
                world.observe::<W>(&object);
            }
            Ok(Event::InitDone) => {
                world.retain::<W>(namespace, &listed);
                listed = HashSet::new();
                read_again::<W>(world, &reading, std::mem::take(&mut outdated)).await;
                world.record_served(W::kind(), true);
                record_list();
            }
            Err(watcher::Error::InitialListFailed(error)) if is_unserved(&error) => {
                world.record_served(W::kind(), false);
                record_list();
            }
            Err(watcher::Error::InitialListFailed(error)) if is_denied(&error) => {
                world.record_denied(W::kind(), namespace, &error);
            }
            Err(error) => warn!(kind = W::kind().kind, %error, "the watch is interrupted"),
        }
    }
}

/// Whether the API server does not serve a kind that was listed.
pub(crate) fn is_unserved(error: &kube::Error) -> bool {
    // An API server without the group responds in plain text, without a reason.
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

fn is_denied(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403)
}

/// Reads objects of which an older state than the cached one was listed. The list may have been made before our last write;
/// otherwise the cluster was restored from a backup, and no event would correct the cache.
async fn read_again<W: Watched>(world: &World, client: &Client, outdated: Vec<Name>) {
    for (namespace, name) in outdated {
        let api: Api<DynamicObject> = api(client.clone(), Some(&namespace), &resource::<W>());
        let read = if W::METADATA_ONLY {
            api.get_metadata(&name).await.map(with_metadata_alone)
        } else {
            api.get(&name).await
        };
        match read {
            Ok(object) => world.restore::<W>(&object),
            Err(error) => warn!(kind = W::kind().kind, %error, "an outdated object cannot be read"),
        }
    }
}

/// Lists and records every object of a kind in a namespace, or in all.
pub(crate) async fn list<W: Watched>(
    world: &World,
    client: Client,
    namespace: Option<&str>,
) -> kube::Result<()> {
    let resource = resource::<W>();
    let mut params = ListParams { label_selector: W::SELECTOR.map(Into::into), ..ListParams::default() };
    params = params.limit(PAGE);
    loop {
        let api: Api<DynamicObject> = api(client.clone(), namespace, &resource);
        let page = if W::METADATA_ONLY {
            let page = api.list_metadata(&params).await?;
            let items = page.items.into_iter().map(with_metadata_alone);
            ObjectList { items: items.collect(), metadata: page.metadata, types: page.types }
        } else {
            api.list(&params).await?
        };
        for object in &page.items {
            world.record_write::<W>(object);
        }
        match page.metadata.continue_.filter(|next| !next.is_empty()) {
            Some(next) => params = params.continue_token(&next),
            None => return Ok(()),
        }
    }
}

fn resource<W: Watched>() -> ApiResource {
    ApiResource {
        group: W::kind().group.into(),
        version: W::kind().version.into(),
        api_version: W::kind().api_version(),
        kind: W::kind().kind.into(),
        plural: W::kind().plural.into(),
    }
}

fn api<K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>>(
    client: Client,
    namespace: Option<&str>,
    kind: &ApiResource,
) -> Api<K> {
    match namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, kind),
        None => Api::all_with(client, kind),
    }
}

fn with_metadata_alone(object: PartialObjectMeta<DynamicObject>) -> DynamicObject {
    DynamicObject { types: object.types, metadata: object.metadata, data: serde_json::Value::Null }
}

fn map_event<A, B>(event: Event<A>, map: impl FnOnce(A) -> B) -> Event<B> {
    match event {
        Event::Apply(object) => Event::Apply(map(object)),
        Event::Delete(object) => Event::Delete(map(object)),
        Event::Init => Event::Init,
        Event::InitApply(object) => Event::InitApply(map(object)),
        Event::InitDone => Event::InitDone,
    }
}
