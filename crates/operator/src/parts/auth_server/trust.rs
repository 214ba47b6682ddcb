//! Who gets tokens of the authorization server without a user who logs in there.

use skep_api::auth_server::{self as api, EmbeddedAuthServer};
use skep_config::{
    AuthServer,
    auth_server::{DelegateClient, JwtBearerGrant, SubjectBinding, TrustedIssuer},
    duration, env,
};

use super::scopes;
use crate::parts::{flag, text};

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

/// Checks that clients are given no more than the server has to give.
pub(super) fn check_delegates(server: &AuthServer) -> Result<(), String> {
    let supported = scopes(server);
    within("baselineClientScopes", &server.baseline_client_scopes, &supported)?;
    for (index, client) in server.delegate_clients.iter().enumerate() {
        let field = format!("delegateClients[{index}] ({:?})", client.client_id);
        within(&format!("{field}.scopes"), &client.scopes, &supported)?;
        within(&format!("{field}.audiences"), &client.audiences, &server.allowed_audiences)?;
    }
    Ok(())
}

fn within(field: &str, given: &[String], all: &[String]) -> Result<(), String> {
    match given.iter().find(|one| !all.contains(one)) {
        Some(other) => Err(format!("{field}: {other:?} is not among {}", all.join(", "))),
        None => Ok(()),
    }
}

pub(super) fn trusted_issuers(server: &EmbeddedAuthServer) -> Result<Vec<TrustedIssuer>, String> {
    server.trusted_issuers.iter().map(trusted_issuer).collect()
}

fn trusted_issuer(issuer: &api::TrustedIssuer) -> Result<TrustedIssuer, String> {
    Ok(TrustedIssuer {
        issuer_url: issuer.issuer_url.clone(),
        expected_audience: text(&issuer.expected_audience),
        jwks_url: text(&issuer.jwks_url),
        insecure_allow_http: flag(issuer.insecure_allow_http),
        allow_private_ips: flag(issuer.allow_private_ips),
        actor_claim: text(&issuer.actor_claim),
        allowed_actors: issuer.allowed_actors.clone(),
        actor_matcher: text(&issuer.actor_matcher),
        allowed_delegate_clients: issuer.allowed_delegate_clients.clone(),
        allow_may_act: flag(issuer.allow_may_act),
        jwt_bearer_grant: issuer.jwt_bearer_grant.as_ref().map(jwt_bearer_grant).transpose()?,
    })
}

fn jwt_bearer_grant(grant: &api::JwtBearerGrant) -> Result<JwtBearerGrant, String> {
    let bindings = grant.subject_bindings.iter().map(|binding| SubjectBinding {
        subject: binding.subject.clone(),
        allowed_resources: binding.allowed_resources.clone(),
    });
    Ok(JwtBearerGrant {
        // In the API, this is a duration and no text: another way to write the same is no other configuration.
        max_assertion_age: max_assertion_age(grant).map(duration::format)?,
        subject_bindings: bindings.collect(),
        accepted_audiences: grant.accepted_audiences.clone(),
    })
}

pub(super) fn max_assertion_age(grant: &api::JwtBearerGrant) -> Result<std::time::Duration, String> {
    let age = grant.max_assertion_age.as_str();
    duration::parse(age).map_err(|error| format!("trustedIssuers: jwtBearerGrant.maxAssertionAge: {error}"))
}
