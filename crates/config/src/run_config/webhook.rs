//! Services that have a say about requests.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::{duration, zero::zero};

/// A service that is asked about each request.
#[apply(_ => #[serde(default, skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Webhook {
    /// Its name, for logs and errors.
    #[serde_with(skip_apply)]
    pub name: String,
    /// Its address.
    #[serde_with(skip_apply)]
    pub url: String,
    /// How long it may take, in nanoseconds: see [`Webhook::timeout`].
    #[serde_with(skip_apply)]
    #[serde(default, with = "duration::nanoseconds")]
    pub timeout: Duration,
    /// What happens when it does not answer.
    #[serde_with(skip_apply)]
    #[serde(default)]
    pub failure_policy: FailurePolicy,
    /// How the connection to it is secured.
    pub tls_config: Option<WebhookTls>,
    /// A file with the secret that requests to it are signed with.
    pub hmac_secret_ref: String,
}

impl Webhook {
    const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

    /// How long it may take.
    pub fn timeout(&self) -> Duration {
        if self.timeout.is_zero() { Self::DEFAULT_TIMEOUT } else { self.timeout }
    }
}

/// What happens to a request when a webhook does not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FailurePolicy {
    /// It is refused.
    #[default]
    Fail,
    /// It passes.
    Ignore,
}

/// How the connection to a webhook is secured.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct WebhookTls {
    /// A file with its certificate authority.
    pub ca_bundle_path: String,
    /// A file with the certificate to show to it.
    pub client_cert_path: String,
    /// A file with the key of that certificate.
    pub client_key_path: String,
    /// Whether its certificate goes unchecked.
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
    fn a_timeout_is_nanoseconds_or_text_or_left_out() {
        assert_eq!(timeout(r#", "timeout": 2500000000"#), Duration::from_millis(2500));
        assert_eq!(timeout(r#", "timeout": "2.5s""#), Duration::from_millis(2500));
        for nothing in ["", r#", "timeout": null"#, r#", "timeout": 0"#] {
            assert_eq!(timeout(nothing), Duration::from_secs(10));
        }
    }

    #[test]
    fn an_error_says_what_a_timeout_is() {
        let text = r#"{"name": "a", "url": "https://b.example", "timeout": true}"#;
        let error = serde_json::from_str::<Webhook>(text).unwrap_err().to_string();
        assert!(error.contains("expected a duration such as 10s"), "{error}");
    }
}
