//! Everything that an MCPServer's children and status depend on, looked up once.

use std::sync::Arc;

use skep_api::kinds::{MCPServer, MCPServerSpec, MCPWebhookConfig};
use skep_world::{ReadError, Reader};

use super::{address::service, findings::findings};
use crate::{
    proxied::{Findings, Proxied},
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
    /// The server's StatefulSet, which the proxy makes: whether it is there.
    pub(super) stateful_set: bool,
    /// What all of this amounts to.
    pub(super) findings: Findings,
}

impl Inputs {
    pub(super) async fn resolve(
        object: Arc<MCPServer>,
        settings: Arc<Settings>,
        reader: &mut Reader,
    ) -> Result<Self, ReadError> {
        let proxied = Proxied::resolve::<Servers>(object.clone(), APP, Vec::new(), settings, reader).await?;
        let webhooks = object.spec.webhook_config_ref.as_ref();
        let mut inputs = Self {
            webhooks: webhooks.map(|hooks| Reference::follow::<WebhookConfigs>(reader, &hooks.name)),
            stateful_set: reader.get::<StatefulSets>(&proxied.identity.name).is_some(),
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
        format!("{}-proxy-runner", self.name())
    }
}
