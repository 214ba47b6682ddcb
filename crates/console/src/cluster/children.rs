//! What was created for servers: Deployments, StatefulSets and Services, and their ReplicaSets and pods.

use std::{collections::BTreeSet, fmt::Debug, pin::pin};

use futures::{StreamExt, future::join_all, join};
use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet, StatefulSet},
    core::v1::{Pod, Service},
};
use kube::{
    Api, Client, Resource, ResourceExt,
    core::NamespaceResourceScope,
    runtime::{WatchStreamExt, watcher},
};
use serde::de::DeserializeOwned;
use skep_api::GROUP;
use skep_config::labels;
use tracing::warn;

use crate::{
    Key, Objects, Restart,
    objects::{Child, Owner},
    restarts,
};

/// Keeps them up to date, for ever.
pub(super) async fn follow(client: &Client, scopes: &[Option<String>], objects: &Objects) {
    join_all(scopes.iter().map(|scope| follow_scope(client, scope.as_deref(), objects))).await;
}

async fn follow_scope(client: &Client, scope: Option<&str>, objects: &Objects) {
    let deployments = follow_kind(client, scope, objects, |deployment: &Deployment| {
        let (spec, status) = (deployment.spec.as_ref(), deployment.status.as_ref());
        let wanted = spec.and_then(|spec| spec.replicas).unwrap_or(1);
        add_child(objects, deployment, pods(status.and_then(|status| status.ready_replicas), wanted));
    });
    let sets = follow_kind(client, scope, objects, |set: &StatefulSet| {
        let wanted = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
        add_child(objects, set, pods(set.status.as_ref().and_then(|status| status.ready_replicas), wanted));
    });
    let services = follow_kind(client, scope, objects, |service: &Service| {
        let ports = service.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
        let ports: Vec<String> = ports.map(|port| port.port.to_string()).collect();
        add_child(objects, service, format!("port {}", ports.join(", ")));
    });
    let replica_sets = follow_kind(client, scope, objects, |_: &ReplicaSet| {});
    let all_pods = follow_kind(client, scope, objects, |pod: &Pod| {
        objects.set_restarts(&pod.uid().unwrap_or_default(), restarts_of(pod));
    });
    join!(deployments, sets, services, replica_sets, all_pods);
}

fn pods(ready: Option<i32>, wanted: i32) -> String {
    format!("{} of {wanted} pods ready", ready.unwrap_or_default())
}

/// The restarts of a pod. Most have none, and each change of any pod comes here.
fn restarts_of(pod: &Pod) -> Vec<Restart> {
    let status = pod.status.iter();
    let mut containers = status
        .flat_map(|status| [&status.init_container_statuses, &status.container_statuses])
        .flatten()
        .flatten();
    if containers.any(|container| container.restart_count > 0) {
        serde_json::to_value(pod).map(|pod| restarts(&pod)).unwrap_or_default()
    } else {
        Vec::new()
    }
}

fn add_child<K: Resource<DynamicType = ()>>(objects: &Objects, object: &K, state: String) {
    if let Some(owner) = shown_owner(object) {
        objects.add_child(&owner, Child { kind: K::kind(&()).to_string(), name: object.name_any(), state });
    }
}

async fn follow_kind<K>(client: &Client, namespace: Option<&str>, objects: &Objects, applied: impl Fn(&K))
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + DeserializeOwned
        + Debug
        + Send
        + 'static,
{
    let api: Api<K> = match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    let config = watcher::Config::default().labels(&format!("{}={}", labels::TOOLHIVE, labels::TRUE));
    let mut events = pin!(watcher(api, config).default_backoff());
    let kind = K::kind(&());
    let apply = |object: &K| {
        let uid = object.uid().unwrap_or_default();
        if let Some(owner) = owner(object) {
            objects.add_owner(&uid, owner);
        }
        applied(object);
        uid
    };
    // By UID: what exists, and what a list has shown so far.
    let (mut existing, mut listed) = (BTreeSet::new(), BTreeSet::new());
    while let Some(event) = events.next().await {
        match event {
            Ok(watcher::Event::Init) => listed.clear(),
            Ok(watcher::Event::InitApply(object)) => listed.extend([apply(&object)]),
            // A child that was deleted while nothing was watched goes with its owner.
            Ok(watcher::Event::InitDone) => {
                existing.difference(&listed).for_each(|uid: &String| objects.end(uid));
                existing = std::mem::take(&mut listed);
            }
            Ok(watcher::Event::Apply(object)) => existing.extend([apply(&object)]),
            Ok(watcher::Event::Delete(object)) => {
                let uid = object.uid().unwrap_or_default();
                existing.remove(&uid);
                objects.end(&uid);
                if let Some(owner) = shown_owner(&object) {
                    objects.remove_child(&owner, &kind, &object.name_any());
                }
            }
            Err(error) => warn!(%kind, %error, "failed to watch what was created for servers"),
        }
    }
}

/// What it belongs to: an object of the API, or what controls it.
fn owner<K: Resource<DynamicType = ()>>(object: &K) -> Option<Owner> {
    let owners = object.owner_references();
    let controller = owners.iter().find(|owner| owner.controller == Some(true)).or(owners.first());
    own_object(object).map(Owner::Object).or_else(|| Some(Owner::Uid(controller?.uid.clone())))
}

/// The object that it was created for directly. The StatefulSet of a server, which its proxy creates, has the server's name.
fn own_object<K: Resource<DynamicType = ()>>(object: &K) -> Option<Key> {
    let namespace = object.namespace().unwrap_or_default();
    let owners = object.owner_references();
    let of_ours = owners.iter().find(|owner| owner.api_version.split('/').next() == Some(GROUP));
    if let Some(owner) = of_ours {
        return Some(Key::new(&owner.kind, &namespace, &owner.name));
    }
    (K::kind(&()) == "StatefulSet").then(|| Key::new("MCPServer", &namespace, &object.name_any()))
}

/// The object on whose page it is shown. The StatefulSet of a server owns its Services.
fn shown_owner<K: Resource<DynamicType = ()>>(object: &K) -> Option<Key> {
    own_object(object).or_else(|| {
        let set = object.owner_references().iter().find(|owner| owner.kind == "StatefulSet")?;
        Some(Key::new("MCPServer", &object.namespace().unwrap_or_default(), &set.name))
    })
}
