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
    own: Option<Own>,
    keys: Option<Keys>,
    /// Tokens that have been verified, until they expire.
    verified: Cache<Verified>,
    introspection: Option<Introspection>,
}

/// An issuer in this process, which verifies a token each time.
struct Own {
    tokens: Arc<dyn OwnTokens>,
    /// The identities in tokens, so that requests with one token share one.
    identities: Cache<Arc<Identity>>,
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
        let own = Own { tokens: own, identities: Cache::new() };
        Self { expected, own: Some(own), keys: None, verified: Cache::new(), introspection: None }
    }

    /// Whether the keys that tokens are verified with are there. They are fetched, if not. The error is why that fails.
    pub async fn check(&self) -> Result<(), String> {
        match &self.keys {
            Some(keys) => keys.check().await,
            None => Ok(()),
        }
    }

    /// The identity of a request's caller.
    pub async fn identity(&self, headers: &HeaderMap) -> Result<Arc<Identity>, AuthenticationError> {
        let token = bearer(headers)?;
        if let Some(own) = &self.own {
            let claims = own.tokens.claims(token).await?;
            self.expected.check(&claims)?;
            return Ok(own.shared(token, Identity::of(claims)));
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

impl Own {
    /// The identity that other requests with this token have, if it is the same.
    fn shared(&self, token: &str, identity: Identity) -> Arc<Identity> {
        let now = Instant::now();
        if let Some(known) = self.identities.get(token, now).filter(|known| **known == identity) {
            return known;
        }
        let identity = Arc::new(identity);
        if let Some(until) = now.checked_add(rest(&identity.claims)) {
            self.identities.put(token, identity.clone(), until, now);
        }
        identity
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures::future::BoxFuture;
    use serde_json::{Map, Value, json};

    use super::*;

    /// An issuer whose tokens have these claims, as long as the session goes on.
    struct Issuer(Mutex<Option<Value>>);

    impl OwnTokens for Issuer {
        fn issuer(&self) -> &str {
            "https://own"
        }

        fn claims<'a>(
            &'a self,
            _: &'a str,
        ) -> BoxFuture<'a, Result<Map<String, Value>, AuthenticationError>> {
            let claims = self.0.lock().unwrap().as_ref().and_then(Value::as_object).cloned();
            Box::pin(async { claims.ok_or(AuthenticationError::Token("the session has ended")) })
        }
    }

    #[tokio::test]
    async fn requests_with_one_token_of_this_process_share_an_identity_while_it_is_valid() {
        let claims = |team: &str| json!({"iss": "https://own", "aud": "mcp", "sub": "alice", "exp": 1e12, "tsid": "1", "team": team});
        let issuer = Arc::new(Issuer(Mutex::new(Some(claims("red")))));
        let authenticator = Authenticator::of_own(issuer.clone(), "mcp");
        let identity = async |token: &str| {
            let value = format!("Bearer {token}").parse().unwrap();
            authenticator.identity(&HeaderMap::from_iter([(http::header::AUTHORIZATION, value)])).await
        };
        let first = identity("a").await.unwrap();
        assert!(Arc::ptr_eq(&first, &identity("a").await.unwrap()));
        assert!(!Arc::ptr_eq(&first, &identity("b").await.unwrap()), "another token");
        *issuer.0.lock().unwrap() = Some(claims("blue"));
        assert_eq!(identity("a").await.unwrap().claims["team"], "blue");
        *issuer.0.lock().unwrap() = None;
        assert!(identity("a").await.is_err(), "it is verified each time");
    }
}
