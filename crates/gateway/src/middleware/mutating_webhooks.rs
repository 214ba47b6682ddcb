//! Webhooks that may change a request.

use bytes::Bytes;
use serde_json::Value;
use skep_config::run_config::{FailurePolicy, Webhooks};
use skep_mcp::{Refusal, rewritten};

use super::webhook::{Answer, Context, Hook, Said, asked_about, hooks, patched};
use crate::{ConfigError, http::Refused, message::Exchange, outbound::NoAnswer};

/// The webhooks, in the order in which they are called.
pub(crate) struct MutatingWebhooks {
    hooks: Vec<Hook>,
    context: Context,
}

impl MutatingWebhooks {
    pub(super) fn new(parameters: &Webhooks) -> Result<Self, ConfigError> {
        Ok(Self { hooks: hooks("mutating-webhook", parameters)?, context: Context::new(parameters) })
    }

    /// Each sees what those before it made of the request.
    pub(super) async fn request(&self, exchange: &mut Exchange) -> Result<(), Refused> {
        for hook in &self.hooks {
            let Some(message) = asked_about(exchange)? else { return Ok(()) };
            let payload = self.context.payload(exchange, uuid::Uuid::new_v4());
            let payload = payload.map_err(|refusal| exchange.refused(&refusal))?;
            let useful = match hook.ask(payload).await {
                Said::Unacceptable => return Err(denied(exchange, 422)),
                Said::Answer(answer) if !answer.allowed => return Err(denied(exchange, 403)),
                Said::Answer(answer) => match changed(exchange, &message, answer) {
                    Ok(()) => true,
                    Err(why) => {
                        hook.failed(&NoAnswer::Answer(why));
                        false
                    }
                },
                Said::Nothing => false,
            };
            if !useful && hook.policy == FailurePolicy::Fail {
                return Err(exchange.refused(&Refusal::Internal));
            }
        }
        Ok(())
    }
}

fn denied(exchange: &Exchange, status: u16) -> Refused {
    let message = "Request denied by webhook policy".to_owned();
    exchange.refused(&Refusal::WebhookDenied { status, message })
}

/// Applies the patch of the response. The result is parsed like a received message; if it is no message any more,
/// nothing changes.
fn changed(exchange: &mut Exchange, message: &Value, answer: Answer) -> Result<(), &'static str> {
    let Some(changed) = patched(message, answer)? else { return Ok(()) };
    let body = rewritten(&exchange.body, message, &changed).map_err(|_| "its patch cannot be written")?;
    exchange.replace_message(Bytes::from(body)).map_err(|_| "what its patch makes is no message")
}
