//! Delegates and trusted issuers.

use std::time::Duration;

use serde_json::Value;
use skep_auth::{Fetcher, IssuerKeys, Pace, Reach};
use skep_authz::Matcher;
use skep_config::{
    AuthServer, FieldError, FieldPath,
    auth_server::{DelegateClient, JwtBearerGrant, TrustedIssuer},
    duration,
};

use super::secrets;
use crate::{keys::Claims, rules::Uri};

type Errors = Vec<FieldError>;

/// A client that may act for users.
pub(crate) struct Delegate {
    pub(crate) id: String,
    pub(crate) secret: String,
    pub(crate) scopes: Vec<String>,
    pub(crate) audiences: Vec<String>,
}

/// An issuer whose tokens can be exchanged.
pub(crate) struct Trusted {
    pub(crate) issuer: String,
    pub(crate) audience: String,
    pub(crate) keys: IssuerKeys,
    pub(crate) actor_claim: String,
    pub(crate) actors: Vec<String>,
    /// Decides about actors that are not listed.
    pub(crate) matcher: Option<Matcher>,
    pub(crate) delegates: Vec<String>,
    pub(crate) allows_may_act: bool,
    pub(crate) jwt_bearer: Option<JwtBearer>,
}

/// How assertions of an issuer are exchanged.
pub(crate) struct JwtBearer {
    pub(crate) longest: Duration,
    pub(crate) audiences: Vec<String>,
    /// Subjects, and the resources of each.
    pub(crate) subjects: Vec<(String, Vec<String>)>,
}

impl Trusted {
    /// Whether only some actors are allowed.
    pub(crate) fn limits_actors(&self) -> bool {
        !self.actors.is_empty() || self.matcher.is_some()
    }

    /// Whether the actor of a token is one of these.
    pub(crate) fn allows_actor(&self, claims: &Claims) -> bool {
        let actor = claims.get(&self.actor_claim).and_then(Value::as_str);
        let is_listed = actor.is_some_and(|actor| self.actors.iter().any(|listed| listed == actor));
        is_listed || self.matcher.as_ref().is_some_and(|matcher| matcher.matches(claims))
    }
}

pub(super) fn delegates(config: &AuthServer, scopes: &[String], errors: &mut Errors) -> Vec<Delegate> {
    let mut delegates: Vec<Delegate> = Vec::new();
    for (index, client) in config.delegate_clients.iter().enumerate() {
        let at = FieldPath::from("delegate_clients").index(index);
        if delegates.iter().any(|known| known.id == client.client_id) {
            let message = format!("duplicate of {:?}: remove one of them", client.client_id);
            errors.push(FieldError::new("client_id", message).within(at.clone()));
        }
        match delegate(client, config, scopes) {
            Ok(delegate) => delegates.push(delegate),
            Err(error) => errors.push(error.within(at)),
        }
    }
    delegates
}

fn delegate(client: &DelegateClient, config: &AuthServer, scopes: &[String]) -> Result<Delegate, FieldError> {
    if client.client_id.is_empty() {
        return Err(FieldError::new("client_id", "must not be empty"));
    }
    let file = ("client_secret_file", &*client.client_secret_file);
    let secret = secrets::secret(file, ("client_secret_env_var", &client.client_secret_env_var))?
        .ok_or_else(|| FieldError::new("client_secret_file", "or client_secret_env_var must be set"))?;
    if secret.len() < 32 {
        return Err(FieldError::new("client_secret_file", "the secret must have at least 32 characters"));
    }
    if let Some(scope) = client.scopes.iter().find(|scope| !scopes.contains(scope)) {
        return Err(FieldError::new("scopes", format!("{scope:?} must be one of scopes_supported")));
    }
    if let Some(audience) =
        client.audiences.iter().find(|audience| !config.allowed_audiences.contains(audience))
    {
        return Err(FieldError::new("audiences", format!("{audience:?} must be one of allowed_audiences")));
    }
    let all = || config.allowed_audiences.clone();
    Ok(Delegate {
        id: client.client_id.clone(),
        secret,
        scopes: client.scopes.clone(),
        audiences: if client.audiences.is_empty() { all() } else { client.audiences.clone() },
    })
}

pub(super) fn trusted(config: &AuthServer, errors: &mut Errors) -> Vec<Trusted> {
    let mut trusted: Vec<Trusted> = Vec::new();
    for (index, issuer) in config.trusted_issuers.iter().enumerate() {
        let at = FieldPath::from("trusted_issuers").index(index);
        let mistakes = issuer.check(Some(&config.allowed_audiences));
        errors.extend(mistakes.into_iter().map(|error| error.within(at.clone())));
        if trusted.iter().any(|known| known.issuer == issuer.issuer_url) {
            let message = format!("duplicate of {:?}: remove one of them", issuer.issuer_url);
            errors.push(FieldError::new("issuer_url", message).within(at.clone()));
        }
        match one(issuer, config) {
            Ok(one) => trusted.push(one),
            Err(error) => errors.push(error.within(at)),
        }
    }
    trusted
}

/// The address of an issuer or of its keys. Credentials in it would be in logs.
fn check_address(field: &'static str, text: &str, issuer: &TrustedIssuer) -> Result<(), FieldError> {
    let uri = Uri::parse(text).filter(|uri| uri.has_host() && !uri.has_fragment && uri.user.is_none());
    match uri {
        None => Err(FieldError::new(field, "must be a URL without user and fragment: https://host")),
        Some(uri) if uri.is("https") || (uri.is("http") && issuer.insecure_allow_http) => Ok(()),
        Some(_) => Err(FieldError::new(field, "must use https, or set insecure_allow_http of this issuer")),
    }
}

fn one(issuer: &TrustedIssuer, config: &AuthServer) -> Result<Trusted, FieldError> {
    if issuer.issuer_url == config.issuer {
        return Err(FieldError::new("issuer_url", "must not be the issuer of this server"));
    }
    check_address("issuer_url", &issuer.issuer_url, issuer)?;
    if issuer.issuer_url.contains('?') {
        return Err(FieldError::new("issuer_url", "must not have a query"));
    }
    if !issuer.jwks_url.is_empty() {
        check_address("jwks_url", &issuer.jwks_url, issuer)?;
    }
    let matcher = match &*issuer.actor_matcher {
        "" => None,
        text => Some(
            Matcher::compile(text).map_err(|error| FieldError::new("actor_matcher", error.to_string()))?,
        ),
    };
    let reach = Reach { private: issuer.allow_private_ips, plain: issuer.insecure_allow_http };
    let keys = Fetcher::new(reach, None)
        .and_then(|fetcher| IssuerKeys::new(fetcher, &issuer.jwks_url, &issuer.issuer_url, Pace::default()))
        .map_err(|error| FieldError::new("issuer_url", error.to_string()))?;
    let claim = if issuer.actor_claim.is_empty() { "azp" } else { &issuer.actor_claim };
    Ok(Trusted {
        issuer: issuer.issuer_url.clone(),
        audience: issuer.expected_audience.clone(),
        keys,
        actor_claim: claim.to_owned(),
        actors: issuer.allowed_actors.clone(),
        matcher,
        delegates: issuer.allowed_delegate_clients.clone(),
        allows_may_act: issuer.allow_may_act,
        jwt_bearer: issuer.jwt_bearer_grant.as_ref().map(jwt_bearer).transpose()?,
    })
}

fn jwt_bearer(grant: &JwtBearerGrant) -> Result<JwtBearer, FieldError> {
    let longest = duration::parse(&grant.max_assertion_age).map_err(|error| {
        FieldError::new("jwt_bearer_grant.max_assertion_age", format!("is not a duration: {error}"))
    })?;
    let subjects = grant.subject_bindings.iter();
    Ok(JwtBearer {
        longest,
        audiences: grant.accepted_audiences.clone(),
        subjects: subjects
            .map(|binding| (binding.subject.clone(), binding.allowed_resources.clone()))
            .collect(),
    })
}
