//! MCPWebhookConfig: services that a proxy sends requests to for validation or mutation.

mod files;

use std::time::Duration;

use skep_api::{
    kinds::{FailurePolicy, MCPWebhookConfig, MCPWebhookConfigSpec, Webhook},
    refs::WebhookConfigRef,
};
use skep_config::{FieldError, FieldPath, RunConfig, duration, run_config};
use skep_converge::Finalizer;

use super::{ConfigRef, checks, flag};
use crate::{build::Volumes, config_controller::Config};
use files::{Purpose, SecretFile};

/// The timeouts that a webhook can have.
const TIMEOUT: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(30);

/// The list that a webhook is in.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stage {
    Validating,
    Mutating,
}

impl Stage {
    const ALL: [Self; 2] = [Self::Validating, Self::Mutating];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Validating => "validating",
            Self::Mutating => "mutating",
        }
    }

    fn of(self, spec: &MCPWebhookConfigSpec) -> &[Webhook] {
        match self {
            Self::Validating => &spec.validating,
            Self::Mutating => &spec.mutating,
        }
    }

    pub(super) fn services(self, spec: &MCPWebhookConfigSpec) -> Vec<run_config::Webhook> {
        self.of(spec).iter().map(|webhook| service(self, webhook)).collect()
    }
}

impl Config for MCPWebhookConfig {
    const CONFIG_FINALIZER: Finalizer = Finalizer("mcpwebhookconfig.toolhive.stacklok.dev/finalizer");

    fn check(spec: &MCPWebhookConfigSpec) -> Vec<FieldError> {
        let webhooks = Stage::ALL.iter().flat_map(|stage| {
            let list = stage.of(spec).iter().enumerate();
            list.map(|(index, webhook)| (FieldPath::from(stage.as_str()).index(index), webhook))
        });
        webhooks.flat_map(|(field, webhook)| checks::within(field, check_webhook(webhook))).collect()
    }
}

fn check_webhook(webhook: &Webhook) -> Vec<FieldError> {
    let tls = webhook.tls_config.as_ref();
    let skips_verification = flag(tls.and_then(|tls| tls.insecure_skip_verify));
    let mut results = vec![
        checks::secure_url("url", &webhook.url, skips_verification, "tlsConfig.insecureSkipVerify"),
        check_timeout(webhook),
    ];
    if webhook.name.is_empty() {
        results.push(Err(FieldError::new("name", "is empty: give the webhook a name")));
    }
    if let Some(tls) = tls
        && tls.client_cert_secret_ref.is_some() != tls.client_key_secret_ref.is_some()
    {
        let message =
            "a certificate needs its key: set both clientCertSecretRef and clientKeySecretRef, or neither";
        results.push(Err(FieldError::new("tlsConfig", message)));
    }
    let secrets = Purpose::ALL.iter().filter_map(|purpose| Some((purpose.field(), purpose.secret(webhook)?)));
    results.extend(secrets.map(|(field, secret)| checks::secret(field, secret)));
    results.into_iter().filter_map(Result::err).collect()
}

fn check_timeout(webhook: &Webhook) -> Result<(), FieldError> {
    let Some(text) = webhook.timeout.as_ref().map(|timeout| timeout.as_str()) else { return Ok(()) };
    let message = match duration::parse(text) {
        Ok(timeout) if timeout.is_zero() || TIMEOUT.contains(&timeout) => return Ok(()),
        Ok(_) => format!("{text:?} is not between 1s and 30s"),
        Err(error) => error.to_string(),
    };
    Err(FieldError::new("timeout", message))
}

impl ConfigRef<WebhookConfigRef> {
    /// Adds the services that may reject or change a request.
    pub(crate) fn add_to(&self, run_config: &mut RunConfig) {
        if let Some(config) = self.config() {
            run_config.validating_webhooks = Stage::Validating.services(&config.spec);
            run_config.mutating_webhooks = Stage::Mutating.services(&config.spec);
        }
    }

    /// Adds the files with the keys and certificates of webhooks.
    pub(crate) fn add_volumes(&self, volumes: &mut Volumes) {
        for file in self.config().into_iter().flat_map(|config| files::all(&config.spec)) {
            volumes.secret_file(&file.volume(), file.secret, &file.folder(), file.purpose.file(), None);
        }
    }
}

fn service(stage: Stage, webhook: &Webhook) -> run_config::Webhook {
    let timeout = webhook.timeout.as_ref().and_then(|timeout| duration::parse(timeout.as_str()).ok());
    let path = |purpose| SecretFile::of(stage, webhook, purpose).map(|file| file.path()).unwrap_or_default();
    run_config::Webhook {
        name: webhook.name.clone(),
        url: webhook.url.clone(),
        timeout: timeout.unwrap_or_default(),
        failure_policy: match webhook.failure_policy.unwrap_or_default() {
            FailurePolicy::Fail => run_config::FailurePolicy::Fail,
            FailurePolicy::Ignore => run_config::FailurePolicy::Ignore,
        },
        tls_config: webhook.tls_config.as_ref().map(|tls| run_config::WebhookTls {
            ca_bundle_path: path(Purpose::Ca),
            client_cert_path: path(Purpose::ClientCert),
            client_key_path: path(Purpose::ClientKey),
            insecure_skip_verify: flag(tls.insecure_skip_verify),
        }),
        hmac_secret_ref: path(Purpose::Hmac),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::config_refs::samples::{fields, mounts, resolved, sample};

    fn validating_one(fields: Value) -> MCPWebhookConfigSpec {
        let mut webhook = json!({"name": "gate", "url": "https://gate.example/ask"});
        webhook.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        sample(json!({"validating": [webhook]}))
    }

    fn secret(key: &str) -> Value {
        json!({"name": "gate-tls", "key": key})
    }

    #[test]
    fn every_mistake_is_reported() {
        let spec: MCPWebhookConfigSpec = sample(json!({
            "validating": [{"name": "a", "url": "gate.example", "timeout": "31s"}],
            "mutating": [{"name": "ok", "url": "https://h.example"}, {"name": "", "url": "http://h.example"}],
        }));
        let errors: Vec<_> = MCPWebhookConfig::check(&spec).iter().map(ToString::to_string).collect();
        let expected = [
            "validating[0].url: \"gate.example\" is not a URL: use one such as https://host/path",
            "validating[0].timeout: \"31s\" is not between 1s and 30s",
            "mutating[1].url: \"http://h.example\" is not encrypted: use https, or for a test set \
             tlsConfig.insecureSkipVerify",
            "mutating[1].name: is empty: give the webhook a name",
        ];
        assert_eq!(errors, expected);
    }

    #[test]
    fn plain_http_needs_a_webhook_that_skips_verification() {
        let tls = json!({"insecureSkipVerify": true});
        assert_eq!(
            MCPWebhookConfig::check(&validating_one(json!({"url": "http://h.example", "tlsConfig": tls}))),
            []
        );
    }

    #[test]
    fn a_timeout_is_omitted_or_zero_or_from_1s_to_30s() {
        for good in ["0s", "1s", "30s", "2.5s"] {
            assert_eq!(MCPWebhookConfig::check(&validating_one(json!({"timeout": good}))), [], "{good}");
        }
        for bad in ["999ms", "1m", "soon", ""] {
            let errors = MCPWebhookConfig::check(&validating_one(json!({"timeout": bad})));
            assert_eq!(fields(&errors), ["validating[0].timeout"], "{bad}");
        }
    }

    #[test]
    fn a_certificate_and_its_key_are_set_together() {
        for half in
            [json!({"clientCertSecretRef": secret("crt")}), json!({"clientKeySecretRef": secret("key")})]
        {
            let errors = MCPWebhookConfig::check(&validating_one(json!({"tlsConfig": half})));
            assert_eq!(fields(&errors), ["validating[0].tlsConfig"]);
        }
    }

    #[test]
    fn secrets_are_mounted_and_their_paths_are_in_the_run_config() {
        let spec = validating_one(json!({
            "timeout": "5s", "failurePolicy": "ignore", "hmacSecretRef": {"name": "sec", "key": "key"},
            "tlsConfig": {"caSecretRef": secret("ca")},
        }));
        let hmac = "/etc/toolhive/webhooks/webhook_validating_gate_hmac_feb8668a";
        let ca = "/etc/toolhive/webhooks/webhook_validating_gate_tls_ca_54f40f3";
        let expected = run_config::Webhook {
            name: "gate".into(),
            url: "https://gate.example/ask".into(),
            timeout: Duration::from_secs(5),
            failure_policy: run_config::FailurePolicy::Ignore,
            tls_config: Some(run_config::WebhookTls {
                ca_bundle_path: format!("{ca}/ca.crt"),
                ..run_config::WebhookTls::default()
            }),
            hmac_secret_ref: format!("{hmac}/hmac"),
        };
        assert_eq!(Stage::Validating.services(&spec), [expected]);
        let reference = resolved(WebhookConfigRef::default(), MCPWebhookConfig::new("hooks", spec));
        let paths: Vec<_> = mounts(|volumes| reference.add_volumes(volumes))
            .iter()
            .map(|mount| mount.split_once(' ').unwrap().1.to_owned())
            .collect();
        assert_eq!(paths, [format!("{hmac}/hmac"), format!("{ca}/ca.crt")]);
    }

    #[test]
    fn the_proxy_decides_on_omitted_fields() {
        let expected = run_config::Webhook {
            name: "gate".into(),
            url: "https://gate.example/ask".into(),
            ..run_config::Webhook::default()
        };
        assert_eq!(Stage::Validating.services(&validating_one(json!({}))), [expected]);
    }
}
