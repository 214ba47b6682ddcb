//! The pods of a server, from a watch.

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
pub(super) struct ServerPod {
    pub(super) name: String,
    /// New pods of a StatefulSet have the names of old ones.
    pub(super) uid: String,
    pub(super) ready: bool,
}

/// The pods of this StatefulSet that have not ended, by name, for as long as there is a receiver.
pub(super) fn watch(api: Api<Pod>, owner: &StatefulSet) -> watch::Receiver<Vec<ServerPod>> {
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

async fn follow(api: Api<Pod>, owner: &StatefulSet, sender: &watch::Sender<Vec<ServerPod>>) {
    let name = owner.name_any();
    let (reader, writer) = reflector::store();
    let with_label = watcher::Config::default().labels(&format!("{}={name}", labels::APP));
    let events = reflector(writer, watcher(api, with_label)).default_backoff();
    pin_mut!(events);
    while let Some(event) = events.next().await {
        if let Err(error) = event {
            warn!(name, %error, "failed to watch the server's pods; retrying");
            continue;
        }
        let mut now: Vec<ServerPod> =
            reader.state().iter().filter_map(|pod| server_pod(pod, owner)).collect();
        now.sort();
        sender.send_if_modified(|before| {
            let changed = *before != now;
            *before = now;
            changed
        });
    }
}

/// The pod, if it is one of the StatefulSet's and has not ended. Others may have the label: the proxy's own pod does, if
/// the server has the name of the kind.
fn server_pod(pod: &Pod, owner: &StatefulSet) -> Option<ServerPod> {
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
    Some(ServerPod { name: pod.name_any(), uid: pod.uid()?, ready: ready && !ending })
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
        server_pod(&serde_json::from_value(pod).unwrap(), &owner).map(|pod| pod.ready)
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
