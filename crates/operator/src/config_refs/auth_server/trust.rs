//! Clients that get tokens of the authorization server without a user who logs in there.

use skep_api::auth_server::{self as api, EmbeddedAuthServer};
use skep_config::{
    AuthServer, FieldError, FieldPath,
    auth_server::{DelegateClient, JwtBearerGrant, SubjectBinding, TrustedIssuer},
    duration, env,
};

use super::scopes;
use crate::config_refs::{flag, or_empty};

pub(super) fn delegate_clients(server: &EmbeddedAuthServer) -> Vec<DelegateClient> {
    let clients = server.delegate_clients.iter().enumerate();
    let clients = clients.map(|(index, client)| DelegateClient {
        client_id: client.client_id.clone(),
        client_secret_file: String::new(),
        client_secret_env_var: env::delegate_client_secret(index),
        scopes: client.scopes.clone(),
        audiences: client.audiences.clone(),
    });
    clients.collect()
}

/// Every scope and audience of a client that the server itself does not have.
pub(super) fn check_delegates(server: &AuthServer) -> Vec<FieldError> {
    let supported = scopes(server);
    let baseline = unknown("baselineClientScopes".into(), &server.baseline_client_scopes, &supported);
    let clients = server.delegate_clients.iter().enumerate().flat_map(|(index, client)| {
        let field = FieldPath::from("delegateClients").index(index);
        let scopes = unknown(field.clone().join("scopes"), &client.scopes, &supported);
        scopes.chain(unknown(field.join("audiences"), &client.audiences, &server.allowed_audiences))
    });
    let issuers = server.trusted_issuers.iter().enumerate().flat_map(|(index, issuer)| {
        let field = FieldPath::from("trustedIssuers").index(index);
        let errors = issuer.check(Some(&server.allowed_audiences)).into_iter();
        errors.map(move |error| of_spec(error).within(field.clone()))
    });
    baseline.chain(clients).chain(issuers).collect()
}

/// The items of a list that are not among `known`.
fn unknown(list: FieldPath, items: &[String], known: &[String]) -> impl Iterator<Item = FieldError> {
    items.iter().enumerate().filter(|(_, item)| !known.contains(item)).map(move |(index, item)| {
        let message = format!("{item:?} is not one of {}", known.join(", "));
        FieldError::new(list.clone().index(index), message)
    })
}

pub(super) fn trusted_issuers(server: &EmbeddedAuthServer) -> Result<Vec<TrustedIssuer>, FieldError> {
    let issuers = server.trusted_issuers.iter().enumerate();
    let issuers = issuers.map(|(index, issuer)| {
        trusted_issuer(issuer).map_err(|error| error.within(FieldPath::from("trustedIssuers").index(index)))
    });
    issuers.collect()
}

/// An error in a file, as one in the spec: the names of fields are the same, in another notation.
pub(super) fn of_spec(error: FieldError) -> FieldError {
    let mut field = String::new();
    let path = error.field.to_string();
    let mut words = path.split('_');
    field.push_str(words.next().unwrap_or_default());
    for word in words {
        let mut letters = word.chars();
        field.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        field.push_str(letters.as_str());
    }
    FieldError::new(field, error.message)
}

pub(super) fn trusted_issuer(issuer: &api::TrustedIssuer) -> Result<TrustedIssuer, FieldError> {
    Ok(TrustedIssuer {
        issuer_url: issuer.issuer_url.clone(),
        expected_audience: or_empty(&issuer.expected_audience),
        jwks_url: or_empty(&issuer.jwks_url),
        insecure_allow_http: flag(issuer.insecure_allow_http),
        allow_private_ips: flag(issuer.allow_private_ips),
        actor_claim: or_empty(&issuer.actor_claim),
        allowed_actors: issuer.allowed_actors.clone(),
        actor_matcher: or_empty(&issuer.actor_matcher),
        allowed_delegate_clients: issuer.allowed_delegate_clients.clone(),
        allow_may_act: flag(issuer.allow_may_act),
        jwt_bearer_grant: issuer.jwt_bearer_grant.as_ref().map(jwt_bearer_grant).transpose()?,
    })
}

fn jwt_bearer_grant(grant: &api::JwtBearerGrant) -> Result<JwtBearerGrant, FieldError> {
    let bindings = grant.subject_bindings.iter().map(|binding| SubjectBinding {
        subject: binding.subject.clone(),
        allowed_resources: binding.allowed_resources.clone(),
    });
    Ok(JwtBearerGrant {
        // Durations are normalized: a different notation of the same one must not change the configuration.
        max_assertion_age: max_assertion_age(grant).map(duration::format)?,
        subject_bindings: bindings.collect(),
        accepted_audiences: grant.accepted_audiences.clone(),
    })
}

/// The longest age of an assertion. The field of an error is below the issuer.
pub(super) fn max_assertion_age(grant: &api::JwtBearerGrant) -> Result<std::time::Duration, FieldError> {
    let age = grant.max_assertion_age.as_str();
    duration::parse(age).map_err(|error| FieldError::new("jwtBearerGrant.maxAssertionAge", error.to_string()))
}
