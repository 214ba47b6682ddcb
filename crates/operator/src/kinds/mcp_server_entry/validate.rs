//! The validation of an entry: a condition for each reference, and `Valid` for the whole.

use skep_api::{
    conditions::{
        CABundleRefValidated, ExternalAuthConfigValidated, HeaderSecretRefsValidated, RemoteURLValidated,
        Valid,
    },
    events::EventReason,
};

use super::Inputs;
use crate::{
    config_refs::{self, RefReasons, ca_bundle::CaBundle},
    reconcile::{Condition, Problem, Validate, Validated, Validation},
};

impl Validate for Inputs {
    /// An entry has no children: virtual servers call the remote server directly.
    type Valid<'a> = ();

    fn validate(&self) -> Validated<()> {
        let mut validation = Validation::default();
        remote_url(self, &mut validation);
        self.group.validate_for_entry(&mut validation);
        external_auth(self, &mut validation);
        ca_bundle(self, &mut validation);
        headers(self, &mut validation);
        let problems = &mut validation.problems;
        for problem in problems.iter_mut() {
            problem.event = Some(EventReason::ConfigInvalid);
        }
        let messages: Vec<String> = problems.iter().map(ToString::to_string).collect();
        validation.add(match messages.as_slice() {
            [] => Condition::new(Valid::ConfigValid, "the entry is valid"),
            messages => Condition::new(Valid::ConfigInvalid, messages.join("; ")),
        });
        validation.finish(|| Ok(()))
    }
}

fn remote_url(inputs: &Inputs, validation: &mut Validation) {
    let spec = &inputs.object.spec;
    let allow_private = spec.allow_private_endpoint.unwrap_or_default();
    let url =
        config_refs::remote_url::check("remoteUrl", &spec.remote_url, allow_private, "allowPrivateEndpoint");
    match url {
        Ok(()) => validation.add(Condition::new(RemoteURLValidated::RemoteURLValid, "remoteUrl is valid")),
        Err(error) => {
            validation.fail(Problem::new(error).reported_as(RemoteURLValidated::RemoteURLInvalid));
        }
    }
}

fn external_auth(inputs: &Inputs, validation: &mut Validation) {
    use ExternalAuthConfigValidated::{
        AuthConfigInvalid, AuthConfigNotConfigured, AuthConfigNotFound, AuthConfigValid,
    };
    if !inputs.external_auth.is_set() {
        let message = "requests are sent without authentication";
        return validation.add(Condition::new(AuthConfigNotConfigured, message));
    }
    let reasons = RefReasons::new(AuthConfigValid, AuthConfigNotFound, AuthConfigInvalid);
    inputs.external_auth.validate_as(reasons, validation);
}

fn ca_bundle(inputs: &Inputs, validation: &mut Validation) {
    use CABundleRefValidated::{CABundleRefNotConfigured, CABundleRefValid};
    let Some(bundle) = CaBundle::new(inputs.object.spec.ca_bundle_ref.as_ref()) else {
        let message = "certificates are verified by the system's authorities";
        return validation.add(Condition::new(CABundleRefNotConfigured, message));
    };
    match bundle.state(inputs.certificates.as_deref()) {
        (CABundleRefValid, message) => validation.add(Condition::new(CABundleRefValid, message)),
        (reason, message) => {
            validation.fail(Problem::of("caBundleRef", message).reported_as(reason).transient());
        }
    }
}

fn headers(inputs: &Inputs, validation: &mut Validation) {
    use HeaderSecretRefsValidated::{HeaderForwardInvalid, HeaderSecretNotFound, HeaderSecretsValid};
    let Some(headers) = &inputs.object.spec.header_forward else { return };
    let errors = config_refs::header_forward::check(headers);
    if !errors.is_empty() {
        let problems = errors.into_iter().map(|error| Problem::new(error).reported_as(HeaderForwardInvalid));
        return problems.for_each(|problem| validation.fail(problem));
    }
    if headers.add_headers_from_secret.is_empty() {
        return;
    }
    for error in &inputs.missing_secrets {
        validation.fail(Problem::new(error.clone()).reported_as(HeaderSecretNotFound).transient());
    }
    validation.add(Condition::new(HeaderSecretsValid, "the values of all headers are available"));
}
