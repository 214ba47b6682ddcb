//! Webhooks that may deny a request.

use skep_config::run_config::{FailurePolicy, Webhooks};
use skep_mcp::Rejection;

use super::webhook::{Context, Hook, HookOutcome, hooks, reviewed_message};
use crate::{ConfigError, http::ErrorResponse, message::Exchange};

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
    pub(super) async fn request(&self, exchange: &Exchange) -> Result<(), ErrorResponse> {
        if reviewed_message(exchange)?.is_none() {
            return Ok(());
        }
        let payload = self.context.payload(exchange, uuid::Uuid::new_v4());
        let payload = payload.map_err(|rejection| exchange.reject(&rejection))?;
        for hook in &self.hooks {
            let reviewed = hook.review(payload.clone(), exchange.holder()).await;
            let passes = match reviewed.map_err(|busy| exchange.reject(&busy.into()))? {
                HookOutcome::Answer(answer) => answer.allowed,
                HookOutcome::Unacceptable => false,
                HookOutcome::Nothing => hook.policy == FailurePolicy::Ignore,
            };
            if !passes {
                let message = "Request denied by policy".to_owned();
                return Err(exchange.reject(&Rejection::WebhookDenied { status: 403, message }));
            }
        }
        Ok(())
    }
}
