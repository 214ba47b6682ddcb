//! Everything that an MCPServer's children and status depend on, looked up once.

use std::sync::Arc;

use skep_api::kinds::{MCPServer, MCPServerSpec, MCPWebhookConfig};
use skep_world::{ReadError, Reader};

use super::address::service;
use crate::{
    proxy_workload::{LivePod, ProxyWorkload, live_pods},
    resources::{ResolvedRef, StatefulSets, facts::PodFacts},
    settings::Settings,
};

/// The label `app` of the proxies of MCPServers.
const APP: &str = "mcpserver";

/// The inputs of an MCPServer.
pub struct Inputs {
    pub(super) object: Arc<MCPServer>,
    pub(super) proxy: ProxyWorkload,
    pub(super) webhooks: Option<ResolvedRef<MCPWebhookConfig>>,
    /// What the proxy has created, if it has.
    pub(super) server: Option<LiveServer>,
}

/// The server itself: a StatefulSet, and its pods.
pub(super) struct LiveServer {
    /// Whether pods are desired and none is ready.
    pub(super) is_unavailable: bool,
    pub(super) pods: Vec<LivePod>,
}

impl Inputs {
    pub(super) async fn resolve(
        object: Arc<MCPServer>,
        settings: Arc<Settings>,
        reader: &mut Reader,
    ) -> Result<Self, ReadError> {
        let proxy = ProxyWorkload::resolve(object.clone(), APP, Vec::new(), settings, reader).await?;
        let set = reader.get::<StatefulSets>(&proxy.identity.name);
        let server = set.map(|set| LiveServer {
            is_unavailable: set.cached.facts.is_unavailable,
            pods: live_pods(reader, &PodFacts::server(&proxy.identity.name)),
        });
        let webhooks = object.spec.webhook_config_ref.as_ref();
        let webhooks = webhooks.map(|reference| ResolvedRef::resolve(reader, &reference.name));
        Ok(Self { object, proxy, webhooks, server })
    }

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

/// The ServiceAccount, Role and RoleBinding of a server's proxy.
pub(super) fn runner(server: &str) -> String {
    format!("{server}-proxy-runner")
}
