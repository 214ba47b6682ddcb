//! Everything that an MCPServer's children and status depend on, looked up once.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use skep_api::{
    kinds::{MCPServer, MCPServerSpec},
    refs::WebhookConfigRef,
};
use skep_config::objects;
use skep_world::{ReadError, Reader};

use super::address::service;
use crate::{
    config_refs::ConfigRef,
    proxy_workload::{LivePod, ProxyWorkload, live_pods},
    reconcile::Resolve,
    resources::{PlatformSecrets, Services, StatefulSets, facts::PodFacts},
    settings::Settings,
};

/// The label `app` of the proxies of MCPServers.
const APP: &str = "mcpserver";

/// The inputs of an MCPServer.
pub struct Inputs {
    pub(super) object: Arc<MCPServer>,
    pub(super) proxy: ProxyWorkload,
    pub(super) webhooks: ConfigRef<WebhookConfigRef>,
    /// What the proxy has created, if it has.
    pub(super) server: Option<LiveServer>,
    pub(super) platform_secrets: PlatformSecrets,
    /// Services with names that this server needs, each with the object that it belongs to.
    pub(super) taken_services: Vec<(String, String)>,
}

/// The server itself: a StatefulSet, and its pods.
pub(super) struct LiveServer {
    /// Whether pods are desired and none is ready.
    pub(super) is_unavailable: bool,
    pub(super) pods: Vec<LivePod>,
}

impl Resolve<MCPServer> for Inputs {
    async fn resolve(
        object: Arc<MCPServer>,
        settings: &Arc<Settings>,
        reader: &mut Reader,
    ) -> Result<Self, ReadError> {
        let proxy = ProxyWorkload::resolve(object.clone(), APP, Vec::new(), settings.clone(), reader).await?;
        let set = reader.get::<StatefulSets>(&proxy.identity.name);
        let server = set.map(|set| LiveServer {
            is_unavailable: set.cached.facts.is_unavailable,
            pods: live_pods(reader, &PodFacts::server(&proxy.identity.name)),
        });
        let webhooks =
            ConfigRef::resolve("webhookConfigRef", object.spec.webhook_config_ref.as_ref(), reader);
        let name = &proxy.identity.name;
        let platform_secrets = PlatformSecrets::read(reader, [runner(name), backend_account(name)]);
        let taken_services = taken_services(reader, &object.metadata);
        Ok(Self { object, proxy, webhooks, server, platform_secrets, taken_services })
    }
}

impl Inputs {
    pub(super) fn spec(&self) -> &MCPServerSpec {
        &self.object.spec
    }

    pub(super) fn name(&self) -> &str {
        &self.proxy.identity.name
    }

    /// The name of the Service in front of the proxy.
    pub(super) fn service(&self) -> String {
        service(self.name())
    }

    /// The ServiceAccount of the proxy, and the Role that it has.
    pub(super) fn runner(&self) -> String {
        runner(self.name())
    }
}

/// The Services of others that have the name of one which this server or its proxy creates: those of a server whose name ends in
/// `-proxy` or `-headless` may.
fn taken_services(reader: &mut Reader, metadata: &ObjectMeta) -> Vec<(String, String)> {
    let server = metadata.name.clone().unwrap_or_default();
    let names = [service(&server), objects::backend_service(&server), objects::headless_service(&server)];
    let taken = names.into_iter().filter_map(|name| {
        let live = reader.get::<Services>(&name)?.cached;
        let owner = match (live.observed.owner, live.server) {
            // The Services that its proxy creates belong to the StatefulSet of the server.
            (Some(owner), _) if owner.kind == "StatefulSet" && owner.name == server => None,
            (Some(owner), _) => (Some(&owner.uid) != metadata.uid.as_ref()).then(|| owner.to_string()),
            (None, Some(other)) => (*other != *server).then(|| format!("MCPServer {other}")),
            (None, None) => None,
        };
        Some((name, owner?))
    });
    taken.collect()
}

/// The ServiceAccount of a server's own pods, if the spec names none.
pub(super) fn backend_account(server: &str) -> String {
    format!("{server}-sa")
}

/// The ServiceAccount, Role and RoleBinding of a server's proxy.
pub(super) fn runner(server: &str) -> String {
    format!("{server}-proxy-runner")
}
