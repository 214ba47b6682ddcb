//! The configurations that only an MCPServer refers to, each from its look-up to its effects. Those that an MCPRemoteProxy has as
//! well are in `proxy_workload`.

use skep_api::kinds::{MCPServerSpec, MCPServerStatus, MCPWebhookConfig};
use skep_config::RunConfig;
use skep_world::Reader;

use crate::{
    build::Volumes,
    config_refs::webhooks,
    proxy_workload::{
        hash,
        validate::{RefReasons, config_ref},
    },
    reconcile::Validation,
    resources::{ResolvedRef, object},
};

/// What an MCPServer refers to.
pub(super) struct References {
    webhooks: Option<ResolvedRef<MCPWebhookConfig>>,
}

impl References {
    pub(super) fn resolve(spec: &MCPServerSpec, reader: &mut Reader) -> Self {
        let webhooks = spec.webhook_config_ref.as_ref();
        Self { webhooks: webhooks.map(|reference| ResolvedRef::resolve(reader, &reference.name)) }
    }

    /// Each must exist and be valid by itself. MCPWebhookConfig has no condition here: the phase and its message report it.
    pub(super) fn validate(&self, validation: &mut Validation) {
        config_ref("webhookConfigRef", &self.webhooks, RefReasons::default(), validation);
    }

    /// Adds their parts of the RunConfig.
    pub(super) fn add_to(&self, config: &mut RunConfig) {
        if let Some(found) = object(&self.webhooks) {
            config.validating_webhooks = webhooks::validating(&found.spec);
            config.mutating_webhooks = webhooks::mutating(&found.spec);
        }
    }

    /// Adds the files that these parts refer to.
    pub(super) fn add_volumes(&self, volumes: &mut Volumes) {
        if let Some(found) = object(&self.webhooks) {
            webhooks::add_volumes(&found.spec, volumes);
        }
    }

    /// Adds the hashes of those that are in use.
    pub(super) fn add_hashes(&self, status: &mut MCPServerStatus) {
        status.webhook_config_hash = hash(&self.webhooks);
    }
}
