//! An OAuth authorization server in the same process, as an endpoint sees it. Its crate and this one do not know each other:
//! the program connects them.

use std::{net::IpAddr, sync::Arc};

use bytes::Bytes;
use futures::{FutureExt, StreamExt, TryFutureExt, future::BoxFuture, stream::FuturesUnordered};
use http::{Request, Response};
use hyper::body::Incoming;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use skep_auth::{AuthenticationError, OwnTokens};
use skep_mcp::{Era, Kind, Raw, Rejection, SessionId};

use crate::middleware::OauthEvent;

/// Why there is no token of an identity provider for a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProviderTokenError {
    /// The user has never logged in there.
    #[error("the caller is not connected to this provider")]
    NotConnected,
    /// The user must log in again.
    #[error("the caller's token of this provider has expired, and cannot be refreshed")]
    Expired,
    /// The provider does not issue ID tokens, or was not requested to.
    #[error("the provider has issued no ID token")]
    NoIdToken,
    /// What the provider issued cannot be used.
    #[error("the provider's token is malformed")]
    Malformed,
    /// The provider or the store does not respond.
    #[error("the provider is unavailable")]
    Unavailable,
}

/// A connection of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// The subject of the user, as calls have it.
    pub user: Box<str>,
    /// The name of the provider.
    pub provider: Box<str>,
    /// The subject of the user there.
    pub account: Box<str>,
    /// When the user connected it, if that is known.
    pub since: Option<Timestamp>,
    /// When its access token expires, if it does.
    pub until: Option<Timestamp>,
    /// Whether it is renewed then.
    pub renewed: bool,
}

/// The connections of all users.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    /// Whether they are known at this time.
    pub available: bool,
    /// Whether all replicas have the same ones.
    pub shared: bool,
    /// How many there are.
    pub total: u64,
    /// Some of them, the newest first.
    pub shown: Vec<Connection>,
}

/// What knows the connections of all users.
pub trait ConnectionSource: Send + Sync {
    /// The connections of all users, at most so many of them. It must not take longer if there are more.
    fn connections(&self, most: usize) -> BoxFuture<'_, Result<Connections, ProviderTokenError>>;
}

/// What is told of what happens at an authorization server.
pub type OauthObserver = Arc<dyn Fn(&OauthEvent<'_>) + Send + Sync>;

/// An authorization server whose routes share the listener, and which has the tokens of callers at identity providers.
pub trait AuthorizationServer: OwnTokens + ConnectionSource {
    /// Whether a path is one of its routes.
    fn serves(&self, path: &str) -> bool;

    /// The response to a request for one of its routes.
    fn respond(&self, request: Request<Incoming>, peer: IpAddr) -> BoxFuture<'_, Response<Bytes>>;

    /// The audiences that its tokens may have.
    fn audiences(&self) -> &[String];

    /// Checks that the session of a caller, whose token is valid, goes on and is of use: one provider that fails makes its own
    /// backends fail, but if none of them has a token left, the caller must log in again. Each request waits for it.
    fn check_session<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<(), AuthenticationError>> {
        check_tokens(self, session).map_err(AuthenticationError::from).boxed()
    }

    /// Has this told of what happens to sessions and clients from now on. It does not wait.
    fn observe(&self, _observer: OauthObserver) {}

    /// The identity providers, in the order of the login.
    fn providers(&self) -> Vec<&str>;

    /// Whether backends get the tokens of providers.
    fn injects_tokens(&self) -> bool;

    /// The page where the user of a session connects providers.
    fn connections_url(&self, session: &str) -> String;

    /// The caller's token of a provider, refreshed if that is needed.
    fn provider_token<'a>(
        &'a self,
        session: &'a str,
        provider: &'a str,
    ) -> BoxFuture<'a, Result<String, ProviderTokenError>>;

    /// The caller's ID token of a provider, refreshed if that is needed and possible.
    fn provider_id_token<'a>(
        &'a self,
        session: &'a str,
        provider: &'a str,
    ) -> BoxFuture<'a, Result<String, ProviderTokenError>>;

    /// The claims of the caller's token. `None`: it is not a JWT.
    fn provider_claims<'a>(
        &'a self,
        session: &'a str,
        provider: &'a str,
    ) -> BoxFuture<'a, Result<Option<Map<String, Value>>, ProviderTokenError>>;
}

/// What a client with these capabilities gets for a call that needs a provider to which its user is not connected: the page
/// where the user connects it, if the client opens addresses (MCP, elicitation in URL mode).
pub fn connect_page(capabilities: Raw<'_>, era: Era, provider: &str, url: &str) -> Option<Rejection> {
    capabilities.get("elicitation")?.get("url").filter(|url| url.kind() == Kind::Object)?;
    Some(Rejection::Connect {
        message: format!("Connect your account at {provider}, then repeat the call."),
        url: url.to_owned(),
        id: (era == Era::Legacy).then(|| SessionId::random().as_str().to_owned()),
    })
}

/// Checks that a session has a token of one provider at least.
async fn check_tokens<S: AuthorizationServer + ?Sized>(
    server: &S,
    session: &str,
) -> Result<(), ProviderTokenError> {
    let providers = server.providers().into_iter().filter(|_| server.injects_tokens());
    // One that does not respond delays no caller who has a token of another.
    let mut tokens: FuturesUnordered<_> =
        providers.map(|provider| server.provider_token(session, provider)).collect();
    let mut failure = None;
    while let Some(token) = tokens.next().await {
        match token {
            Ok(_) => return Ok(()),
            Err(ProviderTokenError::NotConnected) => {}
            // Another login is of no use while a provider does not respond.
            Err(error) if failure != Some(ProviderTokenError::Unavailable) => failure = Some(error),
            Err(_) => {}
        }
    }
    failure.map_or(Ok(()), Err)
}

/// Why the session of a valid token is of no use.
impl From<ProviderTokenError> for AuthenticationError {
    fn from(error: ProviderTokenError) -> Self {
        match error {
            ProviderTokenError::Unavailable => Self::Unavailable,
            _ => Self::Token("the token of the identity provider has expired: authenticate again"),
        }
    }
}
