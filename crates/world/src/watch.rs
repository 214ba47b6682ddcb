//! Keeping a store in step with the cluster.

use std::{collections::HashSet, sync::Arc};

use futures::StreamExt;
use kube::{
    Api, Client,
    core::{ApiResource, DynamicObject},
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use tracing::warn;

use crate::{Watched, World, store::name_of};

/// Watches one kind in a namespace, or in all, for as long as the process lives. Errors are retried with back-off;
/// after a lost watch everything is listed again, and what differs is noticed.
pub(crate) async fn run<W: Watched>(world: Arc<World>, client: Client, namespace: Option<String>) {
    let resource = ApiResource {
        group: W::KIND.group.into(),
        version: W::KIND.version.into(),
        api_version: W::KIND.api_version(),
        kind: W::KIND.kind.into(),
        plural: W::KIND.plural.into(),
    };
    let api: Api<DynamicObject> = match &namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    };
    let config =
        watcher::Config { label_selector: W::SELECTOR.map(Into::into), ..watcher::Config::default() };
    let mut events = watcher(api, config).default_backoff().boxed();
    let mut listed = HashSet::new();
    let mut first = true;
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Apply(object)) => world.observe::<W>(&object),
            Ok(Event::Delete(object)) => world.forget::<W>(&object),
            Ok(Event::Init) => listed.clear(),
            Ok(Event::InitApply(object)) => {
                listed.insert(name_of(&object));
                world.observe::<W>(&object);
            }
            Ok(Event::InitDone) => {
                world.retain::<W>(namespace.as_deref(), &listed);
                listed = HashSet::new();
                if std::mem::take(&mut first) {
                    world.has_listed();
                }
            }
            Err(error) => warn!(kind = W::KIND.kind, %error, "the watch is interrupted"),
        }
    }
}
