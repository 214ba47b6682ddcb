//! MCPWebhookConfig: services that a proxy asks about requests.

mod files;

use std::time::Duration;

use skep_api::kinds::{FailurePolicy, MCPWebhookConfigSpec, Webhook};
use skep_config::{duration, run_config};

use super::{checks, flag};
use crate::build::Volumes;
use files::{Purpose, SecretFile};

/// How long a webhook may be given.
const TIMEOUT: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(30);

/// The list that a webhook stands in.
#[derive(Clone, Copy, Debug)]
enum Stage {
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
}

/// Everything that is wrong with the object by itself.
pub(crate) fn check(spec: &MCPWebhookConfigSpec) -> Result<(), String> {
    let webhooks = Stage::ALL.iter().flat_map(|stage| {
        let numbered = stage.of(spec).iter().enumerate();
        numbered
            .map(|(index, webhook)| (format!("{}[{index}] ({:?})", stage.as_str(), webhook.name), webhook))
    });
    let errors: Vec<_> = webhooks
        .flat_map(|(place, webhook)| errors(webhook).into_iter().map(move |error| format!("{place}.{error}")))
        .collect();
    if errors.is_empty() { Ok(()) } else { Err(errors.join("; ")) }
}

fn errors(webhook: &Webhook) -> Vec<String> {
    let tls = webhook.tls_config.as_ref();
    let unchecked = flag(tls.and_then(|tls| tls.insecure_skip_verify));
    let mut results = vec![
        checks::secure_url("url", &webhook.url, unchecked, "tlsConfig.insecureSkipVerify"),
        check_timeout(webhook),
    ];
    if webhook.name.is_empty() {
        results.push(Err("name: give the webhook a name".into()));
    }
    if let Some(tls) = tls
        && tls.client_cert_secret_ref.is_some() != tls.client_key_secret_ref.is_some()
    {
        let error = "tlsConfig: a certificate is of no use without its key: set clientCertSecretRef and \
                     clientKeySecretRef, or neither";
        results.push(Err(error.into()));
    }
    let secrets = Purpose::ALL.iter().filter_map(|purpose| Some((purpose.field(), purpose.secret(webhook)?)));
    results.extend(secrets.map(|(field, secret)| checks::secret(field, secret)));
    results.into_iter().filter_map(Result::err).collect()
}

fn check_timeout(webhook: &Webhook) -> Result<(), String> {
    let Some(written) = &webhook.timeout else { return Ok(()) };
    let timeout = duration::parse(written.as_str()).map_err(|error| format!("timeout: {error}"))?;
    if timeout.is_zero() || TIMEOUT.contains(&timeout) {
        return Ok(());
    }
    Err(format!("timeout: {:?} is not from 1s to 30s", written.as_str()))
}

/// The services that may refuse a request.
pub(crate) fn validating(spec: &MCPWebhookConfigSpec) -> Vec<run_config::Webhook> {
    spec.validating.iter().map(|webhook| service(Stage::Validating, webhook)).collect()
}

/// The services that may change a request.
pub(crate) fn mutating(spec: &MCPWebhookConfigSpec) -> Vec<run_config::Webhook> {
    spec.mutating.iter().map(|webhook| service(Stage::Mutating, webhook)).collect()
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

/// Adds the files that webhooks are signed and secured with.
pub(crate) fn add_volumes(spec: &MCPWebhookConfigSpec, volumes: &mut Volumes) {
    for file in files::all(spec) {
        volumes.secret_file(&file.volume(), file.secret, &file.folder(), file.purpose.file(), None);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::parts::samples::{mounts, sample};

    fn validating_one(fields: Value) -> MCPWebhookConfigSpec {
        let mut webhook = json!({"name": "gate", "url": "https://gate.example/ask"});
        webhook.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        sample(json!({"validating": [webhook]}))
    }

    fn secret(key: &str) -> Value {
        json!({"name": "gate-tls", "key": key})
    }

    #[test]
    fn each_mistake_is_told_with_its_place() {
        let spec: MCPWebhookConfigSpec = sample(json!({
            "validating": [{"name": "a", "url": "gate.example", "timeout": "31s"}],
            "mutating": [{"name": "ok", "url": "https://h.example"}, {"name": "b", "url": "http://h.example"}],
        }));
        let expected = "validating[0] (\"a\").url: \"gate.example\" is not a URL: write it as https://host/path; \
                        validating[0] (\"a\").timeout: \"31s\" is not from 1s to 30s; \
                        mutating[1] (\"b\").url: \"http://h.example\" is not encrypted: use https, or for a test set \
                        tlsConfig.insecureSkipVerify";
        assert_eq!(check(&spec), Err(expected.into()));
    }

    #[test]
    fn plain_http_is_for_those_that_check_no_certificates() {
        let tls = json!({"insecureSkipVerify": true});
        assert_eq!(check(&validating_one(json!({"url": "http://h.example", "tlsConfig": tls}))), Ok(()));
    }

    #[test]
    fn a_timeout_is_left_out_or_zero_or_from_1s_to_30s() {
        for good in ["0s", "1s", "30s", "2.5s"] {
            assert_eq!(check(&validating_one(json!({"timeout": good}))), Ok(()), "{good}");
        }
        for bad in ["999ms", "1m", "soon", ""] {
            assert!(check(&validating_one(json!({"timeout": bad}))).is_err(), "{bad}");
        }
    }

    #[test]
    fn half_a_pair_of_certificate_and_key_is_a_mistake() {
        for half in
            [json!({"clientCertSecretRef": secret("crt")}), json!({"clientKeySecretRef": secret("key")})]
        {
            let error = check(&validating_one(json!({"tlsConfig": half}))).unwrap_err();
            assert!(error.starts_with("validating[0] (\"gate\").tlsConfig: "), "{error}");
        }
    }

    #[test]
    fn secrets_are_files_and_their_paths_are_told() {
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
        assert_eq!(validating(&spec), [expected]);
        let paths: Vec<_> = mounts(|volumes| add_volumes(&spec, volumes))
            .iter()
            .map(|mount| mount.split_once(' ').unwrap().1.to_owned())
            .collect();
        assert_eq!(paths, [format!("{hmac}/hmac"), format!("{ca}/ca.crt")]);
    }

    #[test]
    fn what_is_left_out_is_for_the_proxy_to_decide() {
        let expected = run_config::Webhook {
            name: "gate".into(),
            url: "https://gate.example/ask".into(),
            ..run_config::Webhook::default()
        };
        assert_eq!(validating(&validating_one(json!({}))), [expected]);
    }
}
