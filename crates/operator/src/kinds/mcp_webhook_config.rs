//! MCPWebhookConfig: webhooks that change or reject requests.

use skep_api::kinds::{MCPWebhookConfig, MCPWebhookConfigSpec};
use skep_config::{FieldError, annotations::WEBHOOK_CONFIG_FINALIZER};
use skep_converge::Finalizer;

use crate::{config_controller::Config, config_refs};

impl Config for MCPWebhookConfig {
    const CONFIG_FINALIZER: Finalizer = Finalizer(WEBHOOK_CONFIG_FINALIZER);

    fn check(spec: &MCPWebhookConfigSpec) -> Vec<FieldError> {
        config_refs::webhooks::check(spec)
    }
}
