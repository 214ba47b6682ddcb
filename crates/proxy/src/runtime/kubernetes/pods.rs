//! The pods of a server, by watching them.

use futures::{StreamExt, pin_mut};
use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::Pod};
use kube::{
    Api, ResourceExt,
    runtime::{WatchStreamExt, reflector, watcher},
};
use skep_config::labels;
use tokio::sync::watch;
use tracing::warn;

/// A pod of the server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Seen {
    pub(super) name: String,
    /// Pods of a StatefulSet come again under the same name.
    pub(super) uid: String,
    pub(super) ready: bool,
}

/// The pods of this StatefulSet that have not ended, by name, for as long as the stream is polled.
pub(super) fn watched(api: Api<Pod>, owner: &StatefulSet) -> watch::Receiver<Vec<Seen>> {
    let (sender, receiver) = watch::channel(Vec::new());
    let owner = owner.clone();
    tokio::spawn(async move {
        tokio::select! {
            () = follow(api, &owner, &sender) => {}
            () = sender.closed() => {}
        }
    });
    receiver
}

async fn follow(api: Api<Pod>, owner: &StatefulSet, sender: &watch::Sender<Vec<Seen>>) {
    let name = owner.name_any();
    let (reader, writer) = reflector::store();
    let with_label = watcher::Config::default().labels(&format!("{}={name}", labels::APP));
    let events = reflector(writer, watcher(api, with_label)).default_backoff();
    pin_mut!(events);
    while let Some(event) = events.next().await {
        if let Err(error) = event {
            warn!(name, %error, "the server's pods cannot be watched: what was last seen stands");
            continue;
        }
        let mut now: Vec<Seen> = reader.state().iter().filter_map(|pod| seen(pod, owner)).collect();
        now.sort();
        sender.send_if_modified(|before| {
            let changed = *before != now;
            *before = now;
            changed
        });
    }
}

/// The pod, if it is one of the StatefulSet's and has not ended. Others may have the label: it is the proxy's own when the
/// server is called like the kind.
fn seen(pod: &Pod, owner: &StatefulSet) -> Option<Seen> {
    let owned = pod
        .owner_references()
        .iter()
        .any(|reference| reference.controller == Some(true) && Some(&reference.uid) == owner.uid().as_ref());
    let status = pod.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_deref()).unwrap_or_default();
    if !owned || matches!(phase, "Succeeded" | "Failed") {
        return None;
    }
    let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let ready = conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True");
    let ending = pod.metadata.deletion_timestamp.is_some();
    Some(Seen { name: pod.name_any(), uid: pod.uid()?, ready: ready && !ending })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(metadata: Value, phase: &str, ready: &str) -> Option<bool> {
        let owner = serde_json::from_value(json!({"metadata": {"name": "files", "uid": "ours"}})).unwrap();
        let mut pod = json!({
            "metadata": {"name": "files-0", "uid": "1"},
            "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]},
        });
        pod["metadata"].as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
        seen(&serde_json::from_value(pod).unwrap(), &owner).map(|seen| seen.ready)
    }

    #[test]
    fn a_pod_counts_if_it_is_ours_and_has_not_ended() {
        let owned = |uid: &str, controller: bool| {
            let kind = ("apps/v1", "StatefulSet", "files");
            json!({"ownerReferences": [{
                "apiVersion": kind.0, "kind": kind.1, "name": kind.2, "uid": uid, "controller": controller,
            }]})
        };
        assert_eq!(of(owned("ours", true), "Running", "True"), Some(true));
        assert_eq!(of(owned("ours", true), "Running", "False"), Some(false));
        assert_eq!(of(owned("ours", true), "Failed", "False"), None);
        assert_eq!(of(owned("ours", true), "Succeeded", "False"), None);
        assert_eq!(of(owned("another", true), "Running", "True"), None);
        assert_eq!(of(owned("ours", false), "Running", "True"), None);
        assert_eq!(of(json!({}), "Running", "True"), None);
        let mut ending = owned("ours", true);
        ending["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(of(ending, "Running", "True"), Some(false));
    }
}
