//! Files with the keys and certificates of webhooks.

use skep_api::{
    kinds::{MCPWebhookConfigSpec, Webhook},
    refs::SecretKeyRef,
};
use skep_config::paths;
use skep_gocompat::fnv::string_hash;

use super::Stage;

/// What a secret is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Hmac,
    Ca,
    ClientCert,
    ClientKey,
}

impl Purpose {
    pub(super) const ALL: [Self; 4] = [Self::Hmac, Self::Ca, Self::ClientCert, Self::ClientKey];

    /// The field that refers to the secret.
    pub(super) const fn field(self) -> &'static str {
        match self {
            Self::Hmac => "hmacSecretRef",
            Self::Ca => "tlsConfig.caSecretRef",
            Self::ClientCert => "tlsConfig.clientCertSecretRef",
            Self::ClientKey => "tlsConfig.clientKeySecretRef",
        }
    }

    pub(super) fn secret(self, webhook: &Webhook) -> Option<&SecretKeyRef> {
        let tls = webhook.tls_config.as_ref();
        match self {
            Self::Hmac => webhook.hmac_secret_ref.as_ref(),
            Self::Ca => tls?.ca_secret_ref.as_ref(),
            Self::ClientCert => tls?.client_cert_secret_ref.as_ref(),
            Self::ClientKey => tls?.client_key_secret_ref.as_ref(),
        }
    }

    /// The name of the file.
    pub(super) const fn file(self) -> &'static str {
        match self {
            Self::Hmac => "hmac",
            Self::Ca => "ca.crt",
            Self::ClientCert => "tls.crt",
            Self::ClientKey => "tls.key",
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Hmac => "hmac",
            Self::Ca => "tls_ca",
            Self::ClientCert => "tls_client_cert",
            Self::ClientKey => "tls_client_key",
        }
    }
}

/// A secret of a webhook, as a separate file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SecretFile<'a> {
    id: String,
    pub(super) purpose: Purpose,
    pub(super) secret: &'a SecretKeyRef,
}

impl<'a> SecretFile<'a> {
    pub(super) fn of(stage: Stage, webhook: &'a Webhook, purpose: Purpose) -> Option<Self> {
        let secret = purpose.secret(webhook)?;
        // The hash changes with the Secret and its key, so a webhook of the same name gets another file.
        let hash = string_hash(&format!("{}/{}", secret.name, secret.key));
        let id = format!("webhook_{}_{}_{}_{hash}", stage.as_str(), webhook.name, purpose.word());
        let fits = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
        Some(Self { id: id.chars().map(fits).collect(), purpose, secret })
    }

    pub(super) fn volume(&self) -> String {
        format!("whsec-{}", string_hash(&self.id))
    }

    pub(super) fn folder(&self) -> String {
        format!("{}/{}", paths::WEBHOOKS_FOLDER, self.id.to_lowercase())
    }

    pub(super) fn path(&self) -> String {
        format!("{}/{}", self.folder(), self.purpose.file())
    }
}

/// The files of all webhooks, each once, sorted.
pub(super) fn all(spec: &MCPWebhookConfigSpec) -> Vec<SecretFile<'_>> {
    let webhooks = Stage::ALL.iter().flat_map(|stage| stage.of(spec).iter().map(|webhook| (*stage, webhook)));
    let mut files: Vec<_> = webhooks
        .flat_map(|(stage, webhook)| {
            Purpose::ALL.iter().filter_map(move |purpose| SecretFile::of(stage, webhook, *purpose))
        })
        .collect();
    files.sort_by(|a, b| a.id.cmp(&b.id));
    files.dedup_by(|a, b| a.id == b.id);
    files
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config_refs::samples::sample;

    #[test]
    fn names_and_paths_equal_those_of_existing_pods() {
        let spec = sample(json!({"validating": [
            {"name": "my-hook", "url": "https://h.example", "hmacSecretRef": {"name": "sec", "key": "key"}},
        ]}));
        let files = all(&spec);
        assert_eq!(files[0].id, "WEBHOOK_VALIDATING_MY_HOOK_HMAC_FEB8668A");
        assert_eq!(files[0].volume(), "whsec-6a737d76");
        assert_eq!(files[0].path(), "/etc/toolhive/webhooks/webhook_validating_my_hook_hmac_feb8668a/hmac");
    }

    #[test]
    fn the_same_file_is_mounted_once_and_all_are_sorted() {
        let webhook = |name: &str| {
            json!({
                "name": name, "url": "https://h.example",
                "hmacSecretRef": {"name": "s", "key": "h"}, "tlsConfig": {"caSecretRef": {"name": "s", "key": "c"}},
            })
        };
        let spec = sample(json!({
            "validating": [webhook("b"), webhook("a"), webhook("b")], "mutating": [webhook("z")],
        }));
        let places: Vec<_> =
            all(&spec).iter().map(|file| file.id.rsplit_once('_').unwrap().0.to_owned()).collect();
        let expected = [
            "WEBHOOK_MUTATING_Z_HMAC",
            "WEBHOOK_MUTATING_Z_TLS_CA",
            "WEBHOOK_VALIDATING_A_HMAC",
            "WEBHOOK_VALIDATING_A_TLS_CA",
            "WEBHOOK_VALIDATING_B_HMAC",
            "WEBHOOK_VALIDATING_B_TLS_CA",
        ];
        assert_eq!(places, expected);
    }
}
