//! Webhooks that may deny a request.

use skep_config::run_config::{FailurePolicy, Webhooks};
use skep_mcp::Refusal;

use super::webhook::{Context, Hook, Said, asked_about, hooks};
use crate::{ConfigError, http::Refused, message::Exchange};

/// The webhooks, in the order in which they are called.
pub(crate) struct ValidatingWebhooks {
    hooks: Vec<Hook>,
    context: Context,
}

impl ValidatingWebhooks {
    pub(super) fn new(parameters: &Webhooks) -> Result<Self, ConfigError> {
        Ok(Self { hooks: hooks("validating-webhook", parameters)?, context: Context::new(parameters) })
    }

    /// All receive the same payload, until one denies.
    pub(super) async fn request(&self, exchange: &Exchange) -> Result<(), Refused> {
        if asked_about(exchange)?.is_none() {
            return Ok(());
        }
        let payload = self.context.payload(exchange, uuid::Uuid::new_v4());
        let payload = payload.map_err(|refusal| exchange.refused(&refusal))?;
        for hook in &self.hooks {
            let passes = match hook.ask(payload.clone()).await {
                Said::Answer(answer) => answer.allowed,
                Said::Unacceptable => false,
                Said::Nothing => hook.policy == FailurePolicy::Ignore,
            };
            if !passes {
                let message = "Request denied by policy".to_owned();
                return Err(exchange.refused(&Refusal::WebhookDenied { status: 403, message }));
            }
        }
        Ok(())
    }
}
