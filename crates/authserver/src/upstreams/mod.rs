//! The identity providers where users log in, and whose tokens the server keeps.

mod client;
mod discovery;
mod identity;
mod path;
mod refreshes;
mod registration;
mod response;
mod sessions;
mod tokens;

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use form_urlencoded::Serializer;
use http::StatusCode;
use skep_auth::{ExpectedIdToken, Fetcher, IssuerKeys, id_token_subject};
use tokio::sync::Mutex;

use crate::{
    config::{Identity, Kind, UpstreamSettings},
    limits,
    rules::challenge_of,
    store::{self, Store},
};
use client::UpstreamClient;
use discovery::Endpoints;
pub(crate) use identity::{Login, Subject};
use registration::Registrar;
use response::TokenResponse;
pub use sessions::SessionError;
pub(crate) use tokens::Connection;
pub(crate) use tokens::row_life;
pub use tokens::{UpstreamTokenError, UpstreamTokens};

/// Why an upstream did not do it. For logs: nothing of a request or a response is in it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpstreamError {
    #[error("{0}")]
    Fetch(#[from] skep_auth::FetchError),
    /// The code or the refresh token is not valid (any more).
    #[error("it refuses the code or refresh token")]
    InvalidGrant,
    /// The provider refuses.
    #[error("it responds with status {0}")]
    Refused(StatusCode),
    #[error("{0}")]
    Response(&'static str),
    #[error("its ID token is not accepted: {0}")]
    IdToken(String),
}

/// Whether a status is of an upstream that cannot respond now (RFC 9110, sections 15.5.9 and 15.6, RFC 6585, section 4).
pub(crate) fn is_transient(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS)
}

/// Why an upstream cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    /// That may change.
    #[error("{0}")]
    Unavailable(String),
    /// It does not accept this server as a client.
    #[error("registration failed: {0}")]
    Refused(String),
}

/// An upstream, with what was found out about it.
pub(crate) struct Upstream {
    pub(crate) name: String,
    settings: UpstreamSettings,
    fetcher: Fetcher,
    /// Logins have connections of their own: strangers begin as many as they like, and these do not delay the refreshes of users.
    for_logins: Fetcher,
    connected: RwLock<Option<Arc<Connected>>>,
    /// Held while the upstream is discovered.
    turn: Mutex<()>,
}

struct Connected {
    endpoints: Endpoints,
    client: UpstreamClient,
    keys: Option<IssuerKeys>,
}

impl Upstream {
    pub(crate) fn new(settings: UpstreamSettings) -> Result<Self, String> {
        let fetcher = || Fetcher::new(settings.reach, None).map_err(|error| error.to_string());
        Ok(Self {
            name: settings.name.clone(),
            fetcher: fetcher()?,
            for_logins: fetcher()?,
            settings,
            connected: RwLock::default(),
            turn: Mutex::default(),
        })
    }

    /// Discovers the endpoints, and registers this server where it is no client yet, or its registration has expired.
    pub(crate) async fn connect(
        &self,
        store: &dyn Store,
        issuer: &str,
        now: u64,
    ) -> Result<(), ConnectError> {
        let _turn = self.turn.lock().await;
        if self.time_left(now).is_none_or(|left| !left.is_zero()) {
            return Ok(());
        }
        let endpoints = discovery::endpoints(&self.settings, &self.fetcher).await;
        let endpoints = endpoints.map_err(ConnectError::Unavailable)?;
        let registrar = Registrar { settings: &self.settings, endpoints: &endpoints, fetcher: &self.fetcher };
        let client = registrar.client(store, issuer, now).await?;
        let keys = endpoints.keys.as_ref().map(|address| self.issuer_keys(address)).transpose();
        let keys = keys.map_err(ConnectError::Unavailable)?;
        let connected = Arc::new(Connected { endpoints, client, keys });
        *self.connected.write().unwrap_or_else(PoisonError::into_inner) = Some(connected);
        Ok(())
    }

    /// How long it can be used, before it must be connected (again). `None`: for ever.
    pub(crate) fn time_left(&self, now: u64) -> Option<Duration> {
        match self.connected() {
            Err(_) => Some(Duration::ZERO),
            Ok(connected) => {
                let expires = connected.client.expires.checked_sub(limits::REGISTRATION_MARGIN.as_secs());
                (connected.client.expires != 0)
                    .then(|| Duration::from_secs(expires.unwrap_or_default().saturating_sub(now)))
            }
        }
    }

    /// Whether it names its users. Otherwise each login is another user.
    pub(crate) fn names_users(&self) -> bool {
        !matches!(&self.settings.kind, Kind::Oauth2 { identity, .. } if matches!(**identity, Identity::Nowhere))
    }

    /// Whether it has been discovered.
    pub(crate) fn is_connected(&self) -> bool {
        self.connected().is_ok()
    }

    fn issuer_keys(&self, address: &str) -> Result<IssuerKeys, String> {
        let fetcher = Fetcher::new(self.settings.reach, None).map_err(|error| error.to_string())?;
        IssuerKeys::new(fetcher, address, "", skep_auth::Pace::default()).map_err(|error| error.to_string())
    }

    fn connected(&self) -> Result<Arc<Connected>, UpstreamError> {
        let connected = self.connected.read().unwrap_or_else(PoisonError::into_inner).clone();
        connected.ok_or(UpstreamError::Response("it has not been discovered yet"))
    }

    /// Where the browser goes to log in (RFC 6749, section 4.1.1).
    pub(crate) fn login_url(
        &self,
        state: &str,
        nonce: &str,
        verifier: &str,
    ) -> Result<String, UpstreamError> {
        let connected = self.connected()?;
        let Connected { endpoints, client, .. } = &*connected;
        let mut query = Serializer::new(String::new());
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &client.id)
            .append_pair("redirect_uri", &self.settings.redirect_uri)
            .append_pair("state", state)
            .append_pair("nonce", nonce)
            .append_pair("code_challenge", &challenge_of(verifier))
            .append_pair("code_challenge_method", "S256");
        if !self.settings.scopes.is_empty() {
            query.append_pair("scope", &self.settings.scopes.join(" "));
        }
        query.extend_pairs(&self.settings.parameters);
        let separator = if endpoints.authorize.contains('?') { '&' } else { '?' };
        Ok(format!("{}{separator}{}", endpoints.authorize, query.finish()))
    }

    /// Whether a response comes from this upstream, and not from another one that wants its code (RFC 9207, section 2.4).
    pub(crate) fn is_issuer(&self, named: Option<&str>) -> bool {
        let Ok(connected) = self.connected() else { return false };
        match (named, &connected.endpoints.issuer) {
            (Some(named), Some(issuer)) => named == issuer,
            (Some(_), None) => true,
            (None, _) => !connected.endpoints.names_issuer,
        }
    }

    /// Exchanges the code of a login for tokens, and finds out who logged in.
    pub(crate) async fn log_in(
        &self,
        code: &str,
        verifier: &str,
        nonce: &str,
        now: u64,
    ) -> Result<Login, UpstreamError> {
        let form = BTreeMap::from([
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &self.settings.redirect_uri),
            ("code_verifier", verifier),
        ]);
        let tokens = self.request_tokens(&self.for_logins, form).await?;
        match &self.settings.kind {
            Kind::Oidc { subject_claim, .. } => {
                let claims = self.id_token(&tokens, Some(nonce), subject_claim, now).await?;
                Ok(Login::of_claims(tokens, claims.0, &claims.1))
            }
            Kind::Oauth2 { identity, .. } => identity::login(&self.for_logins, tokens, identity).await,
        }
    }

    /// Exchanges a refresh token (RFC 6749, section 6). The user must stay the same.
    async fn refresh(&self, row: &store::Upstream, now: u64) -> Result<TokenResponse, UpstreamError> {
        let scopes = row.scopes.join(" ");
        let mut form =
            BTreeMap::from([("grant_type", "refresh_token"), ("refresh_token", &*row.refresh_token)]);
        // Some providers narrow the scopes where none are named.
        if !scopes.is_empty() {
            form.insert("scope", &scopes);
        }
        let tokens = self.request_tokens(&self.fetcher, form).await?;
        if let Kind::Oidc { subject_claim, .. } = &self.settings.kind
            && !tokens.id_token.is_empty()
        {
            let (found, _) = self.id_token(&tokens, None, subject_claim, now).await?;
            if found != row.upstream_subject {
                return Err(UpstreamError::IdToken("it is of another user".into()));
            }
        }
        Ok(tokens)
    }

    /// The scopes of a login: what was granted, or else what was requested.
    pub(crate) fn granted(&self, tokens: &TokenResponse) -> Vec<String> {
        if tokens.scopes.is_empty() { self.settings.scopes.clone() } else { tokens.scopes.clone() }
    }

    /// Revokes a token, if the upstream has an endpoint for that. Its response has no content (RFC 7009, section 2.2).
    async fn revoke(&self, token: &str) -> Result<(), UpstreamError> {
        let connected = self.connected()?;
        let Connected { endpoints, client, .. } = &*connected;
        let Some(endpoint) = endpoints.revocation.as_ref().filter(|_| !token.is_empty()) else {
            return Ok(());
        };
        match client.post(&self.fetcher, endpoint, BTreeMap::from([("token", token)])).await {
            Ok(_) | Err(UpstreamError::Response(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn request_tokens(
        &self,
        fetcher: &Fetcher,
        form: BTreeMap<&str, &str>,
    ) -> Result<TokenResponse, UpstreamError> {
        let connected = self.connected()?;
        let Connected { endpoints, client, .. } = &*connected;
        let mapping = match &self.settings.kind {
            Kind::Oauth2 { mapping, .. } => mapping.as_deref(),
            Kind::Oidc { .. } => None,
        };
        let body = client.post(fetcher, &endpoints.token, form).await?;
        TokenResponse::parse(body, mapping)
    }

    /// The subject and the claims of the ID token in a response.
    async fn id_token(
        &self,
        tokens: &TokenResponse,
        nonce: Option<&str>,
        subject_claim: &str,
        now: u64,
    ) -> Result<(String, crate::keys::Claims), UpstreamError> {
        let connected = self.connected()?;
        let Connected { endpoints, client, keys } = &*connected;
        let keys = keys.as_ref().ok_or(UpstreamError::Response("it has no keys"))?;
        if tokens.id_token.is_empty() {
            return Err(UpstreamError::Response("its response has no ID token"));
        }
        let signed =
            keys.verify(&tokens.id_token).await.map_err(|error| UpstreamError::IdToken(error.to_string()))?;
        let issuer = endpoints.issuer.as_deref().unwrap_or_default();
        let expected = ExpectedIdToken { issuer, client_id: &client.id, nonce, subject_claim, now };
        let subject = id_token_subject(&signed.claims, &expected)
            .map_err(|error| UpstreamError::IdToken(error.to_string()))?;
        Ok((subject, signed.claims))
    }
}
