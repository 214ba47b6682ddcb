//! Delegates and trusted issuers.

use std::time::Duration;

use serde_json::Value;
use skep_auth::{Fetcher, IssuerKeys, Pace, Reach};
use skep_authz::Matcher;
use skep_config::{
    AuthServer, FieldError, FieldPath,
    auth_server::{DelegateClient, TrustedIssuer},
    duration,
};

use super::secrets;
use crate::keys::Claims;

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
            errors.push(FieldError::new("client_id", "must be unique").within(at.clone()));
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
    let all = config.trusted_issuers.iter().enumerate();
    let each = all.filter_map(|(index, issuer)| {
        let at = FieldPath::from("trusted_issuers").index(index);
        one(issuer, config).map_err(|error| errors.push(error.within(at))).ok()
    });
    each.collect()
}

fn one(issuer: &TrustedIssuer, config: &AuthServer) -> Result<Trusted, FieldError> {
    if issuer.issuer_url == config.issuer {
        return Err(FieldError::new("issuer_url", "must not be the issuer of this server"));
    }
    if issuer.allow_private_ips && issuer.jwks_url.is_empty() {
        return Err(FieldError::new("allow_private_ips", "needs jwks_url"));
    }
    let matcher = match &*issuer.actor_matcher {
        "" => None,
        text => Some(
            Matcher::compile(text).map_err(|error| FieldError::new("actor_matcher", error.to_string()))?,
        ),
    };
    let is_wildcard = issuer.allowed_delegate_clients.iter().any(|client| client == "*");
    if is_wildcard && issuer.allowed_delegate_clients.len() > 1 {
        return Err(FieldError::new("allowed_delegate_clients", "* must be alone"));
    }
    if issuer.allowed_delegate_clients.is_empty() && issuer.jwt_bearer_grant.is_none() {
        return Err(FieldError::new("allowed_delegate_clients", "must not be empty"));
    }
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
        jwt_bearer: issuer.jwt_bearer_grant.as_ref().map(|_| jwt_bearer(issuer, config)).transpose()?,
    })
}

fn jwt_bearer(issuer: &TrustedIssuer, config: &AuthServer) -> Result<JwtBearer, FieldError> {
    let grant = issuer.jwt_bearer_grant.clone().unwrap_or_default();
    let wrong =
        |field: &'static str, message: String| FieldError::new(field, message).within("jwt_bearer_grant");
    let longest = duration::parse(&grant.max_assertion_age)
        .map_err(|error| wrong("max_assertion_age", format!("is not a duration: {error}")))?;
    if grant.subject_bindings.is_empty() {
        return Err(wrong("subject_bindings", "must not be empty".into()));
    }
    let resources = grant.subject_bindings.iter().flat_map(|binding| &binding.allowed_resources);
    if let Some(resource) =
        resources.into_iter().find(|resource| !config.allowed_audiences.contains(resource))
    {
        return Err(wrong("subject_bindings", format!("{resource:?} must be one of allowed_audiences")));
    }
    let subjects = grant.subject_bindings.iter();
    Ok(JwtBearer {
        longest,
        audiences: grant.accepted_audiences.clone(),
        subjects: subjects
            .map(|binding| (binding.subject.clone(), binding.allowed_resources.clone()))
            .collect(),
    })
}
