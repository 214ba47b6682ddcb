//! What is wrong with an authorization server by itself. Each message begins with the field within it.

use std::collections::{BTreeMap, HashSet};

use skep_api::auth_server::{EmbeddedAuthServer, UpstreamProvider};

use super::{secrets, storage, trust, upstream::Provider};
use crate::parts::{
    checks::{self, is_http, is_loopback},
    flag, said,
};

/// Parameters of a login request that OAuth itself uses.
const RESERVED: [&str; 8] = [
    "response_type",
    "client_id",
    "redirect_uri",
    "scope",
    "state",
    "code_challenge",
    "code_challenge_method",
    "nonce",
];

/// What is wrong with a server by itself.
pub(crate) fn check(server: &EmbeddedAuthServer) -> Result<(), String> {
    check_issuer(server)?;
    check_redirects(server)?;
    check_trusted_issuers(server)?;
    if server.upstream_providers.is_empty() {
        return Err("upstreamProviders: set at least one, for users to log in".into());
    }
    unique("upstreamProviders", server.upstream_providers.iter().map(|provider| provider.name.as_str()))?;
    unique("delegateClients", server.delegate_clients.iter().map(|client| client.client_id.as_str()))?;
    server.upstream_providers.iter().try_for_each(check_upstream)?;
    storage::check(server)?;
    secrets::named(server).into_iter().try_for_each(|(field, secret)| checks::secret(&field, secret))
}

/// What an MCPServer or MCPRemoteProxy cannot do: only a VirtualMCPServer sends users to several providers.
pub(crate) fn check_single_upstream(server: &EmbeddedAuthServer) -> Result<(), String> {
    match server.upstream_providers.len() {
        0 | 1 => Ok(()),
        count => Err(format!(
            "upstreamProviders: there are {count}, but only a VirtualMCPServer can have more than one: leave one"
        )),
    }
}

fn check_issuer(server: &EmbeddedAuthServer) -> Result<(), String> {
    let issuer = checks::url("issuer", &server.issuer)?;
    let plain_http = flag(server.insecure_allow_http);
    checks::secure_url("issuer", &server.issuer, plain_http || is_loopback(&issuer), "insecureAllowHTTP")?;
    if let Some(base) = said(&server.authorization_endpoint_base_url) {
        checks::url("authorizationEndpointBaseUrl", base)?;
    }
    let what = match (flag(server.allow_confidential_client_registration), server.delegate_clients.as_slice())
    {
        (true, _) => "allowConfidentialClientRegistration",
        (false, [_, ..]) => "delegateClients",
        (false, []) => return Ok(()),
    };
    if plain_http {
        return Err(format!("insecureAllowHTTP: with {what}, clients send secrets: set it to false"));
    }
    if is_http(&issuer) && !flag(server.insecure_allow_confidential_over_loopback_http) {
        return Err(format!(
            "issuer: with {what}, clients send secrets: use https, or for a test set \
             insecureAllowConfidentialOverLoopbackHTTP"
        ));
    }
    Ok(())
}

fn check_redirects(server: &EmbeddedAuthServer) -> Result<(), String> {
    let field = "forceConfidentialRedirectUris";
    let redirects = &server.force_confidential_redirect_uris;
    if !redirects.is_empty() && !flag(server.allow_confidential_client_registration) {
        return Err(format!("{field}: set allowConfidentialClientRegistration, or leave it out"));
    }
    for redirect in redirects {
        let uri = checks::url(field, redirect)?;
        if is_http(&uri) || is_loopback(&uri) {
            return Err(format!(
                "{field}: {redirect:?} cannot keep a secret: use https and a host of its own"
            ));
        }
    }
    Ok(())
}

fn check_trusted_issuers(server: &EmbeddedAuthServer) -> Result<(), String> {
    let issuers = &server.trusted_issuers;
    unique("trustedIssuers", issuers.iter().map(|issuer| issuer.issuer_url.as_str()))?;
    for issuer in issuers {
        let field = format!("trustedIssuers[{:?}]", issuer.issuer_url);
        if issuer.issuer_url == server.issuer {
            return Err(format!(
                "{field}: this is the server's own issuer, which it trusts anyway: leave it out"
            ));
        }
        let (keys, at) = match said(&issuer.jwks_url) {
            Some(keys) => (format!("{field}.jwksUrl"), keys),
            None => (format!("{field}.issuerUrl"), issuer.issuer_url.as_str()),
        };
        checks::secure_url(
            &keys,
            at,
            flag(issuer.insecure_allow_http),
            &format!("{field}.insecureAllowHTTP"),
        )?;
        if let Some(matcher) = said(&issuer.actor_matcher) {
            checks::matcher(&format!("{field}.actorMatcher"), matcher)?;
        }
        if let Some(grant) = &issuer.jwt_bearer_grant {
            trust::max_assertion_age(grant)?;
        }
    }
    Ok(())
}

fn check_upstream(provider: &UpstreamProvider) -> Result<(), String> {
    let place = format!("upstreamProviders[{:?}]", provider.name);
    match Provider::of(provider)? {
        Provider::Oidc(oidc) => {
            let place = format!("{place}.oidcConfig");
            checks::url(&format!("{place}.issuerUrl"), &oidc.issuer_url)?;
            check_parameters(&place, &oidc.additional_authorization_params)
        }
        Provider::Oauth2(oauth2) => {
            let place = format!("{place}.oauth2Config");
            let (allowed, by) = (flag(oauth2.insecure_allow_http), format!("{place}.insecureAllowHTTP"));
            for (field, url) in [
                ("authorizationEndpoint", &oauth2.authorization_endpoint),
                ("tokenEndpoint", &oauth2.token_endpoint),
            ] {
                let field = format!("{place}.{field}");
                let loopback = is_loopback(&checks::url(&field, url)?);
                checks::secure_url(&field, url, allowed || loopback, &by)?;
            }
            check_parameters(&place, &oauth2.additional_authorization_params)
        }
    }
}

fn check_parameters(place: &str, parameters: &BTreeMap<String, String>) -> Result<(), String> {
    match parameters.keys().find(|name| RESERVED.contains(&name.as_str())) {
        Some(name) => Err(format!(
            "{place}.additionalAuthorizationParams: {name:?} belongs to OAuth itself: leave it out"
        )),
        None => Ok(()),
    }
}

fn unique<'a>(field: &str, names: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let mut seen = HashSet::new();
    match { names }.find(|name| !seen.insert(*name)) {
        Some(name) => Err(format!("{field}: {name:?} is there twice: leave one out")),
        None => Ok(()),
    }
}
