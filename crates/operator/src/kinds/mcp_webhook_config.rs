//! MCPWebhookConfig: who is asked about each request.

use skep_api::kinds::MCPWebhookConfigSpec;
use skep_config::annotations::WEBHOOK_CONFIG_FINALIZER;
use skep_converge::Finalizer;

use crate::{configs::Config, parts, watched::WebhookConfigs};

/// MCPWebhookConfig, as a configuration.
pub(super) struct McpWebhookConfig;

impl Config for McpWebhookConfig {
    type Resource = WebhookConfigs;

    const MANAGER: &'static str = "skep-mcpwebhookconfig";
    const FINALIZER: Finalizer = Finalizer(WEBHOOK_CONFIG_FINALIZER);
    const VALID: &'static str = "ValidationSucceeded";

    fn check(spec: &MCPWebhookConfigSpec) -> Result<(), String> {
        parts::webhooks::check(spec)
    }

    fn invalid(_: &MCPWebhookConfigSpec) -> &'static str {
        "ValidationFailed"
    }
}
