//! What was created for servers: Deployments, StatefulSets and Services.

use std::{fmt::Debug, pin::pin};

use futures::{StreamExt, future::join_all, join};
use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    core::v1::Service,
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

use crate::{Key, Objects, objects::Child};

/// Keeps them up to date, for ever.
pub(super) async fn follow(client: &Client, scopes: &[Option<String>], objects: &Objects) {
    let deployments = scopes.iter().map(|scope| {
        follow_kind(client.clone(), scope.as_deref(), objects, |deployment: &Deployment| {
            let (spec, status) = (deployment.spec.as_ref(), deployment.status.as_ref());
            let wanted = spec.and_then(|spec| spec.replicas).unwrap_or(1);
            pods(status.and_then(|status| status.ready_replicas), wanted)
        })
    });
    let sets = scopes.iter().map(|scope| {
        follow_kind(client.clone(), scope.as_deref(), objects, |set: &StatefulSet| {
            let wanted = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
            pods(set.status.as_ref().and_then(|status| status.ready_replicas), wanted)
        })
    });
    let services = scopes.iter().map(|scope| {
        follow_kind(client.clone(), scope.as_deref(), objects, |service: &Service| {
            let ports = service.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
            let ports: Vec<String> = ports.map(|port| port.port.to_string()).collect();
            format!("port {}", ports.join(", "))
        })
    });
    join!(join_all(deployments), join_all(sets), join_all(services));
}

fn pods(ready: Option<i32>, wanted: i32) -> String {
    format!("{} of {wanted} pods ready", ready.unwrap_or_default())
}

async fn follow_kind<K>(
    client: Client,
    namespace: Option<&str>,
    objects: &Objects,
    state: impl Fn(&K) -> String,
) where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + DeserializeOwned
        + Debug
        + Send
        + 'static,
{
    let api: Api<K> = match namespace {
        Some(namespace) => Api::namespaced(client, namespace),
        None => Api::all(client),
    };
    let config = watcher::Config::default().labels(&format!("{}={}", labels::TOOLHIVE, labels::TRUE));
    let mut events = pin!(watcher(api, config).default_backoff());
    let kind = K::kind(&());
    while let Some(event) = events.next().await {
        match event {
            // What is listed again replaces what is known. What was deleted meanwhile goes with its owner.
            Ok(watcher::Event::Init | watcher::Event::InitDone) => {}
            Ok(watcher::Event::InitApply(object) | watcher::Event::Apply(object)) => {
                if let Some(owner) = owner(&object) {
                    let child =
                        Child { kind: kind.to_string(), name: object.name_any(), state: state(&object) };
                    objects.add_child(&owner, child);
                }
            }
            Ok(watcher::Event::Delete(object)) => {
                if let Some(owner) = owner(&object) {
                    objects.remove_child(&owner, &kind, &object.name_any());
                }
            }
            Err(error) => warn!(%kind, %error, "failed to watch what was created for servers"),
        }
    }
}

/// The object that it was created for. The StatefulSet of a server, which its proxy creates, has the server's name, and owns its
/// Services.
fn owner<K: Resource<DynamicType = ()>>(object: &K) -> Option<Key> {
    let namespace = object.namespace().unwrap_or_default();
    let owners = object.owner_references();
    let of_ours = owners.iter().find(|owner| owner.api_version.split('/').next() == Some(GROUP));
    if let Some(owner) = of_ours {
        return Some(Key::new(&owner.kind, &namespace, &owner.name));
    }
    if K::kind(&()) == "StatefulSet" {
        return Some(Key::new("MCPServer", &namespace, &object.name_any()));
    }
    let set = owners.iter().find(|owner| owner.kind == "StatefulSet")?;
    Some(Key::new("MCPServer", &namespace, &set.name))
}
