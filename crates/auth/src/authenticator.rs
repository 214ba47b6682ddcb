//! The identity of a request's caller.

use std::{path::Path, sync::Arc, time::Instant};

use http::HeaderMap;
use skep_config::run_config::Oidc;

use crate::{
    AuthenticationError, Identity, OwnTokens, Pace, SetupError, bearer,
    cache::Cache,
    claims::{Expected, rest},
    fetch::{Fetcher, Reach},
    introspection::Introspection,
    jwt::Jwt,
    keys::{KeySet, Keys, Source},
};

/// Validates the tokens of one issuer.
pub struct Authenticator {
    expected: Expected,
    /// The issuer, if it is in this process.
    own: Option<Arc<dyn OwnTokens>>,
    keys: Option<Keys>,
    /// Tokens that have been verified, until they expire.
    verified: Cache<Verified>,
    introspection: Option<Introspection>,
}

/// A token that was signed with one of these keys.
#[derive(Clone)]
struct Verified {
    identity: Arc<Identity>,
    key_id: Arc<str>,
    keys: Arc<KeySet>,
}

impl Authenticator {
    /// Validates tokens as configured. `secret` is that of the client that introspects.
    pub fn new(oidc: &Oidc, secret: &str, pace: Pace) -> Result<Self, SetupError> {
        let reach = Reach { private: oidc.allow_private_ip, plain: oidc.insecure_allow_http };
        let file = |path: &str| (!path.is_empty()).then(|| Path::new(path).to_path_buf());
        // One for each: a flood of opaque tokens must not block the fetching of keys.
        let fetcher = || Fetcher::new(reach, file(&oidc.ca_cert_path).as_deref());
        let keys = if oidc.jwks_url.is_empty() && oidc.issuer.is_empty() {
            None
        } else {
            let (token, has_own_authority) = (file(&oidc.auth_token_file), !oidc.ca_cert_path.is_empty());
            let source = Source::new(fetcher()?, &oidc.jwks_url, &oidc.issuer, token, has_own_authority)?;
            Some(Keys::new(source, pace))
        };
        let introspection = if oidc.introspection_url.is_empty() {
            None
        } else {
            let client = (oidc.client_id.as_str(), secret);
            Some(Introspection::new(fetcher()?, &oidc.introspection_url, client, &oidc.audience)?)
        };
        if keys.is_none() && introspection.is_none() {
            return Err(SetupError::new("one of Issuer, JWKSURL and IntrospectionURL must be set"));
        }
        let expected = Expected::new(&oidc.issuer, &oidc.audience);
        Ok(Self { expected, own: None, keys, verified: Cache::new(), introspection })
    }

    /// Validates tokens of an authorization server in this process.
    pub fn of_own(own: Arc<dyn OwnTokens>, audience: &str) -> Self {
        let expected = Expected::new(own.issuer(), audience);
        Self { expected, own: Some(own), keys: None, verified: Cache::new(), introspection: None }
    }

    /// The identity of a request's caller.
    pub async fn identity(&self, headers: &HeaderMap) -> Result<Arc<Identity>, AuthenticationError> {
        let token = bearer(headers)?;
        if let Some(own) = &self.own {
            let claims = own.claims(token).await?;
            self.expected.check(&claims)?;
            return Ok(Arc::new(Identity::of(claims)));
        }
        if let Some(keys) = &self.keys
            && let Some(verified) = self.verified.get(token, Instant::now())
            // The issuer may have withdrawn the key since.
            && Arc::ptr_eq(&keys.with(&verified.key_id).await?, &verified.keys)
        {
            return Ok(verified.identity);
        }
        match (Jwt::read(token), &self.keys, &self.introspection) {
            (Some(jwt), Some(keys), _) => self.validate(token, jwt, keys).await,
            (_, _, Some(introspection)) => Box::pin(introspection.identity(token, &self.expected)).await,
            _ => Err(AuthenticationError::Token("the token is not a JWT")),
        }
    }

    /// Validates a JWT. What needs no key is validated before any request to its issuer.
    async fn validate(
        &self,
        token: &str,
        jwt: Jwt<'_>,
        keys: &Keys,
    ) -> Result<Arc<Identity>, AuthenticationError> {
        jwt.algorithm()?;
        let key_id: Arc<str> = jwt.key_id()?.into();
        self.expected.check(&jwt.claims)?;
        let keys = keys.with(&key_id).await?;
        jwt.verify(&keys)?;
        let (now, valid) = (Instant::now(), rest(&jwt.claims));
        let identity = Arc::new(Identity::of(jwt.claims));
        if let Some(until) = now.checked_add(valid) {
            let verified = Verified { identity: identity.clone(), key_id, keys };
            self.verified.put(token, verified, until, now);
        }
        Ok(identity)
    }
}
