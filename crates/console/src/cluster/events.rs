//! The events of the cluster that are about shown objects, or about what was created for them.

use std::pin::pin;

use futures::{StreamExt, future::join_all};
use jiff::Timestamp;
use k8s_openapi::api::core::v1;
use kube::{
    Api, Client,
    runtime::{WatchStreamExt, watcher},
};
use tracing::warn;

use crate::{Key, Objects, objects::Event};

/// Adds events as they come, for ever.
pub(super) async fn follow(client: &Client, scopes: &[Option<String>], objects: &Objects) {
    join_all(scopes.iter().map(|scope| follow_scope(client.clone(), scope.as_deref(), objects))).await;
}

async fn follow_scope(client: Client, namespace: Option<&str>, objects: &Objects) {
    let api: Api<v1::Event> = match namespace {
        Some(namespace) => Api::namespaced(client, namespace),
        None => Api::all(client),
    };
    let mut events = pin!(watcher(api, watcher::Config::default()).default_backoff().applied_objects());
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => add(&event, objects),
            Err(error) => warn!(%error, "failed to watch events"),
        }
    }
}

fn add(event: &v1::Event, objects: &Objects) {
    let about = &event.involved_object;
    let (Some(kind), Some(name)) = (&about.kind, &about.name) else { return };
    let namespace = about.namespace.as_deref().unwrap_or_default();
    let own = Key::new(kind, namespace, name);
    let Some(key) = (if objects.find(&own).is_some() { Some(own) } else { owner(namespace, name, objects) })
    else {
        return;
    };
    let time = event.last_timestamp.as_ref().map(|time| time.0);
    let time = time.or_else(|| event.event_time.as_ref().map(|time| time.0)).unwrap_or_else(Timestamp::now);
    let count = event.count.or_else(|| event.series.as_ref()?.count).unwrap_or(1);
    objects.add_event(
        &key,
        Event {
            time,
            type_: if event.type_.as_deref() == Some("Warning") { "Warning" } else { "Normal" },
            reason: event.reason.clone().unwrap_or_default(),
            message: event.message.clone().unwrap_or_default(),
            object: format!("{kind} {name}"),
            count: u32::try_from(count).unwrap_or(1),
        },
    );
}

/// The server whose pods and other objects have such names: they start with its own. The longest is meant, because the name
/// of one server may start with that of another.
fn owner(namespace: &str, name: &str, objects: &Objects) -> Option<Key> {
    let runs = ["MCPServer", "MCPRemoteProxy", "VirtualMCPServer"];
    let is_owner = |key: &Key| {
        let rest = name.strip_prefix(key.name.as_str());
        key.namespace == namespace
            && runs.contains(&key.kind.as_str())
            && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    let all = objects.all();
    let owners = all.iter().map(|object| &object.key).filter(|key| is_owner(key));
    owners.max_by_key(|key| key.name.len()).cloned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_events_of_pods_are_shown_with_their_server() {
        let objects = Objects::default();
        for name in ["a", "a-b"] {
            objects.apply(json!({"kind": "MCPServer", "metadata": {"name": name, "namespace": "n"}}));
        }
        objects.apply(json!({"kind": "MCPToolConfig", "metadata": {"name": "a-b-0", "namespace": "n"}}));
        let of = |name: &str| owner("n", name, &objects).map(|key| key.name);
        assert_eq!(of("a-5d9c-xk2"), Some("a".into()));
        assert_eq!(of("a-b-0"), Some("a-b".into()));
        assert_eq!(of("a-b"), Some("a-b".into()));
        assert_eq!(of("ab-0"), None);
        assert_eq!(owner("other", "a-0", &objects), None);
    }
}
