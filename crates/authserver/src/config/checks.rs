//! Checks of single fields.

use std::time::Duration;

use skep_config::{AuthServer, FieldError, FieldPath, duration};

use super::{DocumentSettings, RegistrationSettings, secrets};
use crate::{
    limits,
    random::hash,
    rules::{Uri, is_confidential_target, registration_error},
};

type Errors = Vec<FieldError>;

/// How long things live.
pub(super) struct Lives {
    pub(super) access: Duration,
    pub(super) refresh: Duration,
    pub(super) code: Duration,
    pub(super) delegation: Duration,
    pub(super) session: Option<Duration>,
}

/// The issuer is `https` without query, fragment and trailing slash (RFC 8414, section 2); on this machine, `http` will do.
pub(super) fn issuer(config: &AuthServer, errors: &mut Errors) {
    for (field, text) in [
        ("issuer", &config.issuer),
        ("authorization_endpoint_base_url", &config.authorization_endpoint_base_url),
    ] {
        if text.is_empty() && field != "issuer" {
            continue;
        }
        let Some(uri) = Uri::parse(text).filter(Uri::has_host) else {
            errors.push(FieldError::new(field, "must be a URL: https://host"));
            continue;
        };
        let may_be_plain = config.insecure_allow_http || uri.is_loopback();
        if !(uri.is("https") || (uri.is("http") && may_be_plain)) {
            errors.push(FieldError::new(field, "must use https"));
        }
        if uri.user.is_some() || uri.has_fragment || uri.rest.contains('?') || text.ends_with('/') {
            errors.push(FieldError::new(field, "must not have a user, query, fragment or trailing slash"));
        }
    }
}

pub(super) fn lives(config: &AuthServer, errors: &mut Errors) -> Lives {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    let spans = config.token_lifespans.clone().unwrap_or_default();
    let mut life = |field: &'static str, name: &str, text: &str, default: u64, least: u64, most: u64| {
        let default = Duration::from_secs(default);
        if text.is_empty() {
            return default;
        }
        match duration::parse(text) {
            Ok(life) if (Duration::from_secs(least)..=Duration::from_secs(most)).contains(&life) => life,
            Ok(_) => {
                let message = format!("the {name} must be between {least} and {most} seconds");
                errors.push(FieldError::new(field, message));
                default
            }
            Err(error) => {
                errors.push(FieldError::new(field, format!("the {name} is not a duration: {error}")));
                default
            }
        }
    };
    Lives {
        access: life(
            "token_lifespans.access_token_lifespan",
            "access token lifespan",
            &spans.access_token_lifespan,
            HOUR,
            MINUTE,
            24 * HOUR,
        ),
        refresh: life(
            "token_lifespans.refresh_token_lifespan",
            "refresh token lifespan",
            &spans.refresh_token_lifespan,
            168 * HOUR,
            HOUR,
            720 * HOUR,
        ),
        code: life(
            "token_lifespans.auth_code_lifespan",
            "authorization code lifespan",
            &spans.auth_code_lifespan,
            10 * MINUTE,
            30,
            10 * MINUTE,
        ),
        delegation: life(
            "delegation_token_lifespan",
            "delegation token lifespan",
            &config.delegation_token_lifespan,
            15 * MINUTE,
            1,
            24 * HOUR,
        ),
        session: (!config.session_lifespan.is_empty()).then(|| {
            let text = &config.session_lifespan;
            life("session_lifespan", "session lifespan", text, HOUR, HOUR, 8760 * HOUR)
        }),
    }
}

/// The scopes that clients may request.
pub(super) fn scopes(config: &AuthServer, errors: &mut Errors) -> Vec<String> {
    let default = ["openid", "profile", "email", "offline_access"].map(str::to_owned).to_vec();
    let scopes = if config.scopes_supported.is_empty() { default } else { config.scopes_supported.clone() };
    // RFC 6749, section 3.3.
    let fits = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
    if scopes.iter().any(|scope| scope.is_empty() || !scope.bytes().all(fits)) {
        errors.push(FieldError::new("scopes_supported", "a scope must be a word of ASCII characters"));
    }
    for scope in config.baseline_client_scopes.iter().filter(|scope| !scopes.contains(scope)) {
        let message = format!("{scope:?} must be one of scopes_supported");
        errors.push(FieldError::new("baseline_client_scopes", message));
    }
    scopes
}

pub(super) fn audiences(config: &AuthServer, errors: &mut Errors) {
    if config.allowed_audiences.is_empty() {
        errors.push(FieldError::new("allowed_audiences", "must have at least one audience"));
    }
    for (index, audience) in config.allowed_audiences.iter().enumerate() {
        if Uri::parse(audience).is_none_or(|uri| uri.has_fragment) {
            let message = "an audience must be an absolute URI without a fragment";
            errors.push(FieldError::new(format!("allowed_audiences[{index}]"), message));
        }
    }
}

/// Secrets of clients do not travel unencrypted, unless that is wanted on one machine.
pub(super) fn confidential(config: &AuthServer, errors: &mut Errors) {
    let is_plain = config.issuer.starts_with("http:");
    for (field, is_set) in [
        ("allow_confidential_client_registration", config.allow_confidential_client_registration),
        ("delegate_clients", !config.delegate_clients.is_empty()),
    ] {
        if is_set && config.insecure_allow_http {
            let message = "clients have secrets: insecure_allow_http must not be set with it";
            errors.push(FieldError::new(field, message));
        } else if is_set && is_plain && !config.insecure_allow_confidential_over_loopback_http {
            let message = "clients have secrets: use an issuer with https, or set insecure_allow_confidential_over_loopback_http";
            errors.push(FieldError::new(field, message));
        }
    }
}

/// A client whose redirect URI is one of these gets a secret, so it must be able to keep it.
pub(super) fn forced(config: &AuthServer, errors: &mut Errors) {
    const FIELD: &str = "force_confidential_redirect_uris";
    let forced = &config.force_confidential_redirect_uris;
    if !forced.is_empty() && !config.allow_confidential_client_registration {
        let message = "needs allow_confidential_client_registration: set that, or remove this";
        errors.push(FieldError::new(FIELD, message));
    }
    for (index, uri) in forced.iter().enumerate() {
        let field = FieldPath::from(FIELD).index(index);
        if let Some(error) = registration_error(uri) {
            errors.push(FieldError::new(field, error));
        } else if !is_confidential_target(uri) {
            let message = format!("a client at {uri:?} cannot keep a secret: use https and a public host");
            errors.push(FieldError::new(field, message));
        }
    }
}

/// A condition that no user can meet is a mistake.
pub(super) fn allowed_users(config: &AuthServer, errors: &mut Errors) {
    let Some(allowed) = &config.allowed_users else { return };
    if allowed.email_domains.iter().any(|domain| domain.is_empty() || domain.contains('@')) {
        let message = "a domain is what follows the @ of an address";
        errors.push(FieldError::new("allowed_users.email_domains", message));
    }
    for (index, claim) in allowed.claims.iter().enumerate() {
        if claim.name.is_empty() || claim.values.is_empty() {
            let field = FieldPath::from("allowed_users.claims").index(index);
            errors.push(FieldError::new(field, "must have a name, and at least one value"));
        }
    }
}

/// Which clients may register.
pub(super) fn registration(config: &AuthServer, errors: &mut Errors) -> RegistrationSettings {
    const TOKEN: &str = "client_registration.initial_access_token_env_var";
    let registration = config.client_registration.clone().unwrap_or_default();
    let token = secrets::secret(("", ""), (TOKEN, &registration.initial_access_token_env_var));
    let token = token.unwrap_or_else(|error| {
        errors.push(error);
        None
    });
    if token.as_ref().is_some_and(|token| token.trim().len() < limits::REGISTRATION_TOKEN) {
        let message = format!("the token must have at least {} characters", limits::REGISTRATION_TOKEN);
        errors.push(FieldError::new(TOKEN, message));
    }
    if registration.redirect_hosts.iter().any(String::is_empty) {
        errors.push(FieldError::new("client_registration.redirect_hosts", "a host must not be empty"));
    }
    RegistrationSettings {
        allows_secrets: config.allow_confidential_client_registration,
        forced: config.force_confidential_redirect_uris.clone(),
        is_open: !registration.disabled,
        token_hash: token.map(|token| hash(token.trim())),
        redirect_hosts: registration.redirect_hosts,
    }
}

pub(super) fn documents(config: &AuthServer, errors: &mut Errors) -> Option<DocumentSettings> {
    let cimd = config.cimd.as_ref().filter(|cimd| cimd.enabled)?;
    let life = match &*cimd.cache_fallback_ttl {
        "" => Duration::from_secs(300),
        text => duration::parse(text).unwrap_or_else(|error| {
            errors.push(FieldError::new("cimd.cache_fallback_ttl", format!("is not a duration: {error}")));
            Duration::ZERO
        }),
    };
    let most = if cimd.cache_max_size == 0 { 256 } else { cimd.cache_max_size as usize };
    Some(DocumentSettings { most, life })
}
