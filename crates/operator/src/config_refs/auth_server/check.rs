//! The mistakes in an authorization server by itself. Fields are below the server.

use std::collections::{BTreeMap, HashSet};

use skep_api::auth_server::{EmbeddedAuthServer, TrustedIssuer, UpstreamProvider};
use skep_config::{FieldError, FieldPath};

use super::{secrets, storage, trust, upstream::Provider};
use crate::config_refs::{
    checks::{self, is_http, is_loopback, within},
    flag, non_empty,
};

/// Parameters of an authorization request that OAuth itself uses.
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

/// Every mistake in a server by itself.
pub(crate) fn check(server: &EmbeddedAuthServer) -> Vec<FieldError> {
    let mut errors = check_issuer(server);
    errors.extend(check_redirects(server));
    errors.extend(check_trusted_issuers(server));
    if server.upstream_providers.is_empty() {
        errors.push(FieldError::new("upstreamProviders", "is empty: set at least one for users to log in"));
    }
    let providers = server.upstream_providers.iter();
    errors.extend(duplicates("upstreamProviders", "name", providers.map(|provider| provider.name.as_str())));
    let clients = server.delegate_clients.iter();
    errors.extend(duplicates("delegateClients", "clientId", clients.map(|client| client.client_id.as_str())));
    for (index, provider) in server.upstream_providers.iter().enumerate() {
        let field = FieldPath::from("upstreamProviders").index(index);
        errors.extend(within(field, check_upstream(provider)));
    }
    errors.extend(storage::check(server).err());
    let secrets = secrets::named(server).into_iter();
    errors.extend(secrets.filter_map(|(field, secret)| checks::secret(field, secret).err()));
    errors
}

/// The limit of an MCPServer or MCPRemoteProxy: only a VirtualMCPServer sends users to several providers.
pub(crate) fn check_single_upstream(server: &EmbeddedAuthServer) -> Option<FieldError> {
    let count = server.upstream_providers.len();
    let message =
        format!("has {count} providers, and only a VirtualMCPServer supports more than one: keep one");
    (count > 1).then(|| FieldError::new("upstreamProviders", message))
}

fn check_issuer(server: &EmbeddedAuthServer) -> Vec<FieldError> {
    let plain_http = flag(server.insecure_allow_http);
    let issuer = checks::url("issuer", &server.issuer);
    let mut errors = Vec::new();
    match &issuer {
        Ok(issuer) => {
            let plain_http = plain_http || is_loopback(issuer);
            errors
                .extend(checks::secure_url("issuer", &server.issuer, plain_http, "insecureAllowHTTP").err());
        }
        Err(error) => errors.push(error.clone()),
    }
    if let Some(base) = non_empty(&server.authorization_endpoint_base_url) {
        errors.extend(checks::url("authorizationEndpointBaseUrl", base).err());
    }
    let feature =
        match (flag(server.allow_confidential_client_registration), server.delegate_clients.as_slice()) {
            (true, _) => "allowConfidentialClientRegistration",
            (false, [_, ..]) => "delegateClients",
            (false, []) => return errors,
        };
    if plain_http {
        let message = format!("with {feature}, clients send secrets: set it to false");
        errors.push(FieldError::new("insecureAllowHTTP", message));
    } else if issuer.is_ok_and(|issuer| is_http(&issuer) && is_loopback(&issuer))
        && !flag(server.insecure_allow_confidential_over_loopback_http)
    {
        let message = format!(
            "with {feature}, clients send secrets: use https, or for a test set insecureAllowConfidentialOverLoopbackHTTP"
        );
        errors.push(FieldError::new("issuer", message));
    }
    errors
}

fn check_redirects(server: &EmbeddedAuthServer) -> Vec<FieldError> {
    const FIELD: &str = "forceConfidentialRedirectUris";
    let redirects = &server.force_confidential_redirect_uris;
    let mut errors = Vec::new();
    if !redirects.is_empty() && !flag(server.allow_confidential_client_registration) {
        let message = "has no effect without allowConfidentialClientRegistration: set that, or remove this";
        errors.push(FieldError::new(FIELD, message));
    }
    for (index, redirect) in redirects.iter().enumerate() {
        let field = FieldPath::from(FIELD).index(index);
        match checks::url(field.clone(), redirect) {
            Ok(uri) if is_http(&uri) || is_loopback(&uri) => {
                let message =
                    format!("a client at {redirect:?} cannot keep a secret: use https and a public host");
                errors.push(FieldError::new(field, message));
            }
            Ok(_) => {}
            Err(error) => errors.push(error),
        }
    }
    errors
}

fn check_trusted_issuers(server: &EmbeddedAuthServer) -> Vec<FieldError> {
    let issuers = &server.trusted_issuers;
    let urls = issuers.iter().map(|issuer| issuer.issuer_url.as_str());
    let mut errors: Vec<_> = duplicates("trustedIssuers", "issuerUrl", urls).collect();
    for (index, issuer) in issuers.iter().enumerate() {
        let field = FieldPath::from("trustedIssuers").index(index);
        errors.extend(within(field, check_trusted_issuer(issuer, &server.issuer)));
    }
    errors
}

fn check_trusted_issuer(issuer: &TrustedIssuer, own: &str) -> Vec<FieldError> {
    if issuer.issuer_url == own {
        let message = format!("{own:?} is the server's own issuer, which it always trusts: remove it");
        return vec![FieldError::new("issuerUrl", message)];
    }
    let (field, url) = match non_empty(&issuer.jwks_url) {
        Some(keys) => ("jwksUrl", keys),
        None => ("issuerUrl", issuer.issuer_url.as_str()),
    };
    let matcher = non_empty(&issuer.actor_matcher);
    let results = [
        checks::secure_url(field, url, flag(issuer.insecure_allow_http), "insecureAllowHTTP of this issuer"),
        matcher.map_or(Ok(()), |matcher| checks::matcher("actorMatcher", matcher)),
    ];
    let mut errors: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    errors.extend(match trust::trusted_issuer(issuer) {
        Ok(issuer) => issuer.check(None).into_iter().map(trust::of_spec).collect(),
        Err(error) => vec![error],
    });
    errors
}

fn check_upstream(provider: &UpstreamProvider) -> Vec<FieldError> {
    match Provider::of(provider) {
        Err(error) => vec![error],
        Ok(Provider::Oidc(oidc)) => {
            let mut errors: Vec<_> = checks::url("issuerUrl", &oidc.issuer_url).err().into_iter().collect();
            errors.extend(check_parameters(&oidc.additional_authorization_params));
            within("oidcConfig", errors).collect()
        }
        Ok(Provider::Oauth2(oauth2)) => {
            let allowed = flag(oauth2.insecure_allow_http);
            let endpoints = [
                ("authorizationEndpoint", &oauth2.authorization_endpoint),
                ("tokenEndpoint", &oauth2.token_endpoint),
            ];
            let checked = endpoints.map(|(field, url)| {
                let loopback = is_loopback(&checks::url(field, url)?);
                checks::secure_url(field, url, allowed || loopback, "insecureAllowHTTP of this provider")
            });
            let mut errors: Vec<_> = checked.into_iter().filter_map(Result::err).collect();
            errors.extend(check_parameters(&oauth2.additional_authorization_params));
            within("oauth2Config", errors).collect()
        }
    }
}

fn check_parameters(parameters: &BTreeMap<String, String>) -> impl Iterator<Item = FieldError> {
    parameters.keys().filter(|name| RESERVED.contains(&name.as_str())).map(|name| {
        let field = FieldPath::from("additionalAuthorizationParams").key(name);
        FieldError::new(field, "OAuth itself uses this parameter: remove it")
    })
}

/// The items of a list whose `name` an earlier one has.
fn duplicates<'a>(
    list: &'static str,
    name: &'static str,
    values: impl Iterator<Item = &'a str>,
) -> impl Iterator<Item = FieldError> {
    let mut seen = HashSet::new();
    values.enumerate().filter(move |(_, value)| !seen.insert(*value)).map(move |(index, value)| {
        let field = FieldPath::from(list).index(index).join(name);
        FieldError::new(field, format!("duplicate of {value:?}: remove one of them"))
    })
}
