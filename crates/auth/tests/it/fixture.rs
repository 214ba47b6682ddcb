//! An authenticator of an identity provider's tokens.

use std::sync::Arc;

use http::{HeaderMap, header};
use serde_json::Value;
use skep_auth::{AuthenticationError, Authenticator, Identity, Pace, SetupError};
use skep_testkit::IdentityProvider;

pub(crate) const CONFIGURATION: &str = "/.well-known/openid-configuration";
pub(crate) const KEYS: &str = "/keys";

pub(crate) struct Fixture(Authenticator);

impl Fixture {
    pub(crate) fn new(provider: &IdentityProvider) -> Self {
        Self::with(provider, Value::Null, Pace::default())
    }

    pub(crate) fn with(provider: &IdentityProvider, changes: Value, pace: Pace) -> Self {
        Self(authenticator(provider, changes, pace).unwrap())
    }

    pub(crate) async fn check(&self, token: &str) -> Result<Arc<Identity>, AuthenticationError> {
        self.headers(&[&format!("Bearer {token}")]).await
    }

    pub(crate) async fn headers(&self, values: &[&str]) -> Result<Arc<Identity>, AuthenticationError> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::AUTHORIZATION, value.parse().unwrap());
        }
        self.0.identity(&headers).await
    }

    /// The subject of the token.
    pub(crate) async fn subject(&self, token: &str) -> Result<String, AuthenticationError> {
        self.check(token).await.map(|identity| identity.subject.clone())
    }
}

pub(crate) fn authenticator(
    provider: &IdentityProvider,
    changes: Value,
    pace: Pace,
) -> Result<Authenticator, SetupError> {
    let oidc: skep_config::run_config::Oidc = serde_json::from_value(provider.oidc(changes)).unwrap();
    Authenticator::new(&oidc, &oidc.client_secret, pace)
}
