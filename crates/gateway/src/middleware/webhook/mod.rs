//! A webhook, and calls of it.

mod patch;
mod payload;
mod secret;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use skep_auth::hmac_hex;
use skep_config::run_config::{FailurePolicy, Webhook, WebhookTls, Webhooks};
use skep_mcp::Rejection;
use tracing::{info, warn};

use crate::{
    ConfigError,
    body::Share,
    http::ErrorResponse,
    identity::Holder,
    limits,
    message::Exchange,
    outbound::{self, Busy, Service, ServiceError, ServicePlace, Trust},
};
pub(super) use patch::patched;
pub(super) use payload::Context;
use secret::Secret;

const SIGNATURE: HeaderName = HeaderName::from_static("x-toolhive-signature");
const TIMESTAMP: HeaderName = HeaderName::from_static("x-toolhive-timestamp");

/// A webhook.
pub(super) struct Hook {
    name: String,
    service: Service,
    secret: Option<Secret>,
    pub(super) policy: FailurePolicy,
}

/// The result of calling it.
pub(super) enum HookOutcome {
    /// Its response.
    Answer(Answer),
    /// It does not accept the request (422), which denies it.
    Unacceptable,
    /// No valid response. Its failure policy decides.
    Nothing,
}

/// Its response. A request that is not allowed is denied.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Answer {
    pub(super) allowed: bool,
    patch_type: Option<String>,
    patch: Option<Value>,
}

/// The webhooks of a middleware, in the order in which they are called.
pub(super) fn hooks(middleware: &str, parameters: &Webhooks) -> Result<Vec<Hook>, ConfigError> {
    let hooks = parameters.webhooks.iter().enumerate().map(|(index, webhook)| {
        let wrong = |error: String| {
            ConfigError::new(format!("{middleware}: webhooks[{index}] ({:?}): {error}", webhook.name))
        };
        Hook::new(webhook).map_err(wrong)
    });
    hooks.collect()
}

/// The message of a request that webhooks decide about, and the memory that it takes: a request or a notification, and no response.
pub(super) fn reviewed_message(exchange: &Exchange) -> Result<Option<(Value, Share)>, ErrorResponse> {
    let Some(message) = exchange.message.as_ref().filter(|message| message.method.is_some()) else {
        return Ok(None);
    };
    if exchange.body.len() > limits::WEBHOOK_BODY {
        return Err(exchange.reject(&Rejection::TooLarge));
    }
    let message = message.envelope().and_then(|envelope| {
        let memory = exchange.tree_memory(&exchange.body)?;
        let message = envelope.unambiguous_message();
        Ok((message.map_err(Rejection::Message)?, memory))
    });
    message.map(Some).map_err(|rejection| exchange.reject(&rejection))
}

impl Hook {
    fn new(webhook: &Webhook) -> Result<Self, String> {
        if webhook.name.is_empty() {
            return Err("name: give the webhook a name".into());
        }
        let uri = outbound::address(&webhook.url).map_err(|error| format!("url: {error}"))?;
        let none = WebhookTls::default();
        let tls = webhook.tls_config.as_ref().unwrap_or(&none);
        if uri.scheme_str() != Some("https") && !tls.insecure_skip_verify {
            return Err(format!("url: {:?} is not encrypted: use https", webhook.url));
        }
        let time = webhook.timeout();
        if !limits::WEBHOOK_TIME.contains(&time) {
            return Err("timeout: it must be from 1s to 30s".into());
        }
        let trust = Trust {
            authorities: &tls.ca_bundle_path,
            certificate: &tls.client_cert_path,
            key: &tls.client_key_path,
            unchecked: tls.insecure_skip_verify,
        };
        let service = Service::new(uri, time, &trust).map_err(|error| format!("tls_config: {error}"))?;
        let secret =
            Secret::new(&webhook.hmac_secret_ref).map_err(|error| format!("hmac_secret_ref: {error}"))?;
        Ok(Self { name: webhook.name.clone(), service, secret, policy: webhook.failure_policy })
    }

    /// Calls it about a request of this caller. That there is no place for it is no failure, which a policy could ignore: the caller can
    /// cause that.
    pub(super) async fn review(&self, payload: Bytes, holder: Holder) -> Result<HookOutcome, Busy> {
        let outcome = self.call(payload, self.service.place(Some(holder)).await?).await;
        match outcome {
            Ok(HookOutcome::Answer(Answer { allowed: false, .. }) | HookOutcome::Unacceptable) => {
                info!(webhook = self.name, "request denied by a webhook");
            }
            Err(ref error) => self.log_failure(error),
            _ => {}
        }
        Ok(outcome.unwrap_or(HookOutcome::Nothing))
    }

    /// Logs that it did not respond, or that its response is invalid.
    pub(super) fn log_failure(&self, error: &ServiceError) {
        let ignored = self.policy == FailurePolicy::Ignore;
        warn!(webhook = self.name, %error, ignored, "webhook call failed");
    }

    async fn call(&self, payload: Bytes, place: ServicePlace<'_>) -> Result<HookOutcome, ServiceError> {
        let headers = self.signature(&payload).await?;
        match place.post(headers, payload).await? {
            (StatusCode::OK, answer) => {
                // serde would accept a list of values, too.
                let object = answer.trim_ascii_start().starts_with(b"{");
                let answer = if object { serde_json::from_slice(&answer).ok() } else { None };
                answer.map(HookOutcome::Answer).ok_or(ServiceError::Answer("it is not a JSON object"))
            }
            (StatusCode::UNPROCESSABLE_ENTITY, _) => Ok(HookOutcome::Unacceptable),
            (status, _) => Err(ServiceError::Status(status)),
        }
    }

    /// The headers with the signature of the payload, if there is a secret to sign it with.
    async fn signature(&self, payload: &[u8]) -> Result<HeaderMap, ServiceError> {
        let mut headers = HeaderMap::new();
        if let Some(secret) = &self.secret {
            let secret = secret.read().await.ok_or(ServiceError::Secret)?;
            let time = Timestamp::now().as_second();
            let signature = hmac_hex(&secret, &[time.to_string().as_bytes(), b".", payload]);
            let signature = signature.and_then(|hex| format!("sha256={hex}").parse().ok());
            headers.insert(SIGNATURE, signature.ok_or(ServiceError::Secret)?);
            headers.insert(TIMESTAMP, HeaderValue::from(time));
        }
        Ok(headers)
    }
}
