//! Webhooks.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::{duration, zero::zero};

/// A service that decides about each request.
#[apply(_ => #[serde(default, skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Webhook {
    /// Its name, for logs and errors.
    #[serde_with(skip_apply)]
    pub name: String,
    /// Its address.
    #[serde_with(skip_apply)]
    pub url: String,
    /// The timeout, in nanoseconds: see [`Webhook::timeout`].
    #[serde_with(skip_apply)]
    #[serde(default, with = "duration::nanoseconds")]
    pub timeout: Duration,
    /// What happens if it fails.
    #[serde_with(skip_apply)]
    #[serde(default)]
    pub failure_policy: FailurePolicy,
    /// The TLS settings of the connection.
    pub tls_config: Option<WebhookTls>,
    /// A file with the secret that signs requests to it.
    pub hmac_secret_ref: String,
}

impl Webhook {
    const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

    /// The timeout. The default is 10 seconds.
    pub fn timeout(&self) -> Duration {
        if self.timeout.is_zero() { Self::DEFAULT_TIMEOUT } else { self.timeout }
    }
}

/// What happens to a request if a webhook fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FailurePolicy {
    /// It is rejected.
    #[default]
    Fail,
    /// It passes.
    Ignore,
}

/// The TLS settings of the connection to a webhook.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct WebhookTls {
    /// A file with its certificate authority.
    pub ca_bundle_path: String,
    /// A file with the client certificate.
    pub client_cert_path: String,
    /// A file with the key of the client certificate.
    pub client_key_path: String,
    /// Whether its certificate is not verified.
    pub insecure_skip_verify: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeout(written: &str) -> Duration {
        let text = format!(r#"{{"name": "a", "url": "https://b.example"{written}}}"#);
        serde_json::from_str::<Webhook>(&text).unwrap().timeout()
    }

    #[test]
    fn a_timeout_is_nanoseconds_or_text_or_omitted() {
        assert_eq!(timeout(r#", "timeout": 2500000000"#), Duration::from_millis(2500));
        assert_eq!(timeout(r#", "timeout": "2.5s""#), Duration::from_millis(2500));
        for unset in ["", r#", "timeout": null"#, r#", "timeout": 0"#] {
            assert_eq!(timeout(unset), Duration::from_secs(10));
        }
    }

    #[test]
    fn an_error_describes_the_format_of_a_timeout() {
        let text = r#"{"name": "a", "url": "https://b.example", "timeout": true}"#;
        let error = serde_json::from_str::<Webhook>(text).unwrap_err().to_string();
        assert!(error.contains("expected a duration such as 10s"), "{error}");
    }
}
