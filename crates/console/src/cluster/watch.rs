//! The watches of all kinds.

use std::{collections::BTreeSet, pin::pin};

use futures::{StreamExt, future::join_all};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject},
    runtime::{WatchStreamExt, watcher},
};
use tracing::warn;

use crate::{Key, Objects, objects::resources};

/// Keeps the objects of all kinds up to date, for ever.
pub(super) async fn follow(client: &Client, scopes: &[Option<String>], objects: &Objects) {
    let watches = resources().iter().flat_map(|resource| {
        scopes.iter().map(move |scope| follow_kind(client.clone(), resource, scope.as_deref(), objects))
    });
    join_all(watches).await;
}

async fn follow_kind(client: Client, resource: &ApiResource, namespace: Option<&str>, objects: &Objects) {
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, resource),
        None => Api::all_with(client, resource),
    };
    let mut events = pin!(watcher(api, watcher::Config::default()).default_backoff());
    // What a list has shown. What it does not show any more was deleted while nothing was watched.
    let mut listed: Option<BTreeSet<Key>> = None;
    while let Some(event) = events.next().await {
        match event {
            Ok(watcher::Event::Init) => listed = Some(BTreeSet::new()),
            Ok(watcher::Event::InitApply(object)) => {
                listed.get_or_insert_default().extend(apply(object, resource, objects));
            }
            Ok(watcher::Event::InitDone) => {
                let kept = listed.take().unwrap_or_default();
                let in_scope = |key: &Key| namespace.is_none_or(|namespace| key.namespace == namespace);
                objects.retain(|key| key.kind != resource.kind || !in_scope(key) || kept.contains(key));
            }
            Ok(watcher::Event::Apply(object)) => drop(apply(object, resource, objects)),
            Ok(watcher::Event::Delete(object)) => objects.delete(&key_of(&object, resource)),
            Err(error) => warn!(kind = resource.kind, %error, "failed to watch objects"),
        }
    }
}

fn key_of(object: &DynamicObject, resource: &ApiResource) -> Key {
    Key::new(&resource.kind, &object.namespace().unwrap_or_default(), &object.name_any())
}

fn apply(object: DynamicObject, resource: &ApiResource, objects: &Objects) -> Option<Key> {
    let key = key_of(&object, resource);
    let mut manifest = serde_json::to_value(object).ok()?;
    // A list leaves them out.
    manifest["apiVersion"] = resource.api_version.clone().into();
    manifest["kind"] = resource.kind.clone().into();
    objects.apply(manifest);
    Some(key)
}
