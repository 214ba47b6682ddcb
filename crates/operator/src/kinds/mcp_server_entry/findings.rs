//! What is to be said of an entry: one condition for each thing that it refers to, and one over all.

use skep_api::{kinds::MCPGroupPhase, refs::SecretKeyRef};

use super::Inputs;
use crate::{
    conditions::Finding,
    parts::{self, ca_bundle::CaBundle},
    reference::Problem,
};

/// The type of the condition over all.
pub(super) const VALID: &str = "Valid";

/// The conditions, before it is known when they came about.
pub(super) fn findings(inputs: &Inputs) -> Vec<Finding> {
    let mut all = aspects(inputs);
    all.push(match problem(inputs) {
        None => Finding::yes(VALID, "ConfigValid", "the entry can be used"),
        Some(problem) => Finding::no(VALID, "ConfigInvalid", problem),
    });
    all
}

/// Everything that keeps the entry from being used.
pub(super) fn problem(inputs: &Inputs) -> Option<String> {
    let broken = aspects(inputs).into_iter().filter(|finding| !finding.holds).map(|finding| finding.message);
    let messages: Vec<String> = broken.collect();
    (!messages.is_empty()).then(|| messages.join("; "))
}

fn aspects(inputs: &Inputs) -> Vec<Finding> {
    let mut all = vec![remote_url(inputs), group(inputs), external_auth(inputs), ca_bundle(inputs)];
    all.extend(headers(inputs));
    all
}

fn remote_url(inputs: &Inputs) -> Finding {
    const TYPE: &str = "RemoteURLValidated";
    let spec = &inputs.object.spec;
    let allow_private = spec.allow_private_endpoint.unwrap_or_default();
    match parts::remote_url::check("remoteUrl", &spec.remote_url, allow_private, "allowPrivateEndpoint") {
        Ok(()) => Finding::yes(TYPE, "RemoteURLValid", "remoteUrl is valid"),
        Err(message) => Finding::no(TYPE, "RemoteURLInvalid", message),
    }
}

fn group(inputs: &Inputs) -> Finding {
    const TYPE: &str = "GroupRefValidated";
    let name = &inputs.group.name;
    match inputs.group.checked("MCPGroup", |_| Ok(())) {
        Err(problem) => Finding::no(TYPE, "GroupRefNotFound", problem.message()),
        Ok(group) if group.status.as_ref().and_then(|status| status.phase) == Some(MCPGroupPhase::Failed) => {
            Finding::no(TYPE, "GroupRefNotReady", format!("the MCPGroup {name} is not ready"))
        }
        Ok(_) => Finding::yes(TYPE, "GroupRefIsValid", format!("it is a member of the MCPGroup {name}")),
    }
}

fn external_auth(inputs: &Inputs) -> Finding {
    const TYPE: &str = "ExternalAuthConfigValidated";
    let Some(reference) = &inputs.external_auth else {
        return Finding::yes(TYPE, "AuthConfigNotConfigured", "requests go without authentication");
    };
    match reference.checked("MCPExternalAuthConfig", |auth| parts::external_auth::check(&auth.spec)) {
        Ok(_) => Finding::yes(TYPE, "AuthConfigValid", "the MCPExternalAuthConfig is valid"),
        Err(Problem::Missing(message)) => Finding::no(TYPE, "AuthConfigNotFound", message),
        Err(Problem::Invalid(message)) => Finding::no(TYPE, "AuthConfigInvalid", message),
    }
}

fn ca_bundle(inputs: &Inputs) -> Finding {
    const TYPE: &str = "CABundleRefValidated";
    let Some(CaBundle { config_map: name, key }) = CaBundle::new(inputs.object.spec.ca_bundle_ref.as_ref())
    else {
        return Finding::yes(
            TYPE,
            "CABundleRefNotConfigured",
            "certificates are checked as those of the web",
        );
    };
    match &inputs.certificates {
        None => {
            let message = format!("caBundleRef: there is no ConfigMap {name}: create it with the key {key}");
            Finding::no(TYPE, "CABundleRefNotFound", message)
        }
        Some(data) if data.contains_key(key) => {
            Finding::yes(TYPE, "CABundleRefValid", format!("the certificates are in the ConfigMap {name}"))
        }
        Some(_) => {
            let message = format!("caBundleRef: the ConfigMap {name} has no key {key}: add it");
            Finding::no(TYPE, "CABundleRefInvalid", message)
        }
    }
}

fn headers(inputs: &Inputs) -> Option<Finding> {
    const TYPE: &str = "HeaderSecretRefsValidated";
    let headers = inputs.object.spec.header_forward.as_ref()?;
    if let Err(message) = parts::header_forward::check(headers) {
        return Some(Finding::no(TYPE, "HeaderForwardInvalid", message));
    }
    if headers.add_headers_from_secret.is_empty() {
        return None;
    }
    let missing = headers.add_headers_from_secret.iter().filter_map(|header| {
        let SecretKeyRef { name, key } = &header.value_secret_ref;
        let field = format!("headerForward.addHeadersFromSecret[{}]", header.header_name);
        match inputs.secrets.get(name) {
            Some(Some(keys)) if keys.contains(key) => None,
            Some(Some(_)) => Some(format!("{field}: the Secret {name} has no key {key}: add it")),
            _ => Some(format!("{field}: there is no Secret {name}: create it with the key {key}")),
        }
    });
    let missing: Vec<String> = missing.collect();
    Some(if missing.is_empty() {
        Finding::yes(TYPE, "HeaderSecretsValid", "the values of all headers are there")
    } else {
        Finding::no(TYPE, "HeaderSecretNotFound", missing.join("; "))
    })
}
