//! Webhooks that may change a request.

use bytes::Bytes;
use serde_json::Value;
use skep_config::run_config::{FailurePolicy, Webhooks};
use skep_mcp::{Rejection, rewritten};

use super::webhook::{Answer, Context, Hook, HookOutcome, hooks, patched, reviewed_message};
use crate::{ConfigError, http::ErrorResponse, message::Exchange, outbound::ServiceError};

/// The webhooks, in the order in which they are called.
pub(crate) struct MutatingWebhooks {
    hooks: Vec<Hook>,
    context: Context,
}

impl MutatingWebhooks {
    pub(super) fn new(parameters: &Webhooks) -> Result<Self, ConfigError> {
        Ok(Self { hooks: hooks("mutating-webhook", parameters)?, context: Context::new(parameters) })
    }

    /// Each receives the request as changed by those before it.
    pub(super) async fn request(&self, exchange: &mut Exchange) -> Result<(), ErrorResponse> {
        for hook in &self.hooks {
            let Some((message, _memory)) = reviewed_message(exchange)? else { return Ok(()) };
            let payload = self.context.payload(exchange, uuid::Uuid::new_v4());
            let payload = payload.map_err(|rejection| exchange.reject(&rejection))?;
            let reviewed = hook.review(payload, exchange.holder()).await;
            let useful = match reviewed.map_err(|busy| exchange.reject(&busy.into()))? {
                HookOutcome::Unacceptable => return Err(denied(exchange, 422)),
                HookOutcome::Answer(answer) if !answer.allowed => return Err(denied(exchange, 403)),
                HookOutcome::Answer(answer) => match apply(exchange, &message, answer) {
                    Ok(()) => true,
                    Err(why) => {
                        hook.log_failure(&ServiceError::Answer(why));
                        false
                    }
                },
                HookOutcome::Nothing => false,
            };
            if !useful && hook.policy == FailurePolicy::Fail {
                return Err(exchange.reject(&Rejection::Internal));
            }
        }
        Ok(())
    }
}

fn denied(exchange: &Exchange, status: u16) -> ErrorResponse {
    let message = "Request denied by webhook policy".to_owned();
    exchange.reject(&Rejection::WebhookDenied { status, message })
}

/// Applies the patch of the response. The result is parsed like a received message; if it is not a valid message,
/// nothing changes.
fn apply(exchange: &mut Exchange, message: &Value, answer: Answer) -> Result<(), &'static str> {
    let Some(changed) = patched(message, answer)? else { return Ok(()) };
    let body =
        rewritten(&exchange.body, message, &changed).map_err(|_| "the patched message cannot be encoded")?;
    exchange.replace_message(Bytes::from(body)).map_err(|_| "the patched message is invalid")
}
