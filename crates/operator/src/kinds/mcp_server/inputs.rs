//! Everything that an MCPServer's children and status depend on, looked up once.

use std::sync::Arc;

use skep_api::kinds::{MCPServer, MCPServerSpec, MCPWebhookConfig};
use skep_world::{ReadError, Reader};

use super::{address::service, findings::findings};
use crate::{
    facts::PodFacts,
    proxied::{Findings, LivePod, Proxied, live_pods},
    reference::Reference,
    settings::Settings,
    watched::{Servers, StatefulSets, WebhookConfigs},
};

/// The label `app` of the proxies of MCPServers.
const APP: &str = "mcpserver";

/// What was found.
pub struct Inputs {
    pub(super) object: Arc<MCPServer>,
    pub(super) proxied: Proxied,
    pub(super) webhooks: Option<Reference<MCPWebhookConfig>>,
    /// What the proxy has made, if it has.
    pub(super) server: Option<LiveServer>,
    /// What all of this amounts to.
    pub(super) findings: Findings,
}

/// The server itself: a StatefulSet, and its pods.
pub(super) struct LiveServer {
    /// Whether none of the pods that are wanted is ready.
    pub(super) waits: bool,
    pub(super) pods: Vec<LivePod>,
}

impl Inputs {
    pub(super) async fn resolve(
        object: Arc<MCPServer>,
        settings: Arc<Settings>,
        reader: &mut Reader,
    ) -> Result<Self, ReadError> {
        let proxied = Proxied::resolve::<Servers>(object.clone(), APP, Vec::new(), settings, reader).await?;
        let webhooks = object.spec.webhook_config_ref.as_ref();
        let set = reader.get::<StatefulSets>(&proxied.identity.name);
        let server = set.map(|set| LiveServer {
            waits: set.kept.facts.waits,
            pods: live_pods(reader, &PodFacts::server(&proxied.identity.name)),
        });
        let mut inputs = Self {
            webhooks: webhooks.map(|hooks| Reference::follow::<WebhookConfigs>(reader, &hooks.name)),
            server,
            findings: Findings::default(),
            object,
            proxied,
        };
        inputs.findings = findings(&inputs);
        Ok(inputs)
    }

    pub(super) fn spec(&self) -> &MCPServerSpec {
        &self.object.spec
    }

    pub(super) fn name(&self) -> &str {
        &self.proxied.identity.name
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
