//! The authorization server of a proxy or a virtual server, in the same process.

use std::{
    collections::BTreeMap,
    fs,
    net::IpAddr,
    path::Path,
    sync::{Arc, Weak},
    time::Duration,
};

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt, ready};
use http::{Request, Response};
use hyper::body::Incoming;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value, json};
use skep_auth::{AuthenticationError, OwnTokens};
use skep_authserver::{
    AuthServer, Event, EventKind, EventOutcome, SessionError, SessionFilter, StoreError, UpstreamTokenError,
    UserConnection, UserConnections,
};
use skep_config::{FieldError, RunConfig, field::joined, paths::VMCP_AUTH_SERVER_FILE as FILE};
use skep_proxy::{
    Administration, AdministrationError, AdministrationPage, AdministrationRequest, AuthorizationServer,
    CallsPage, Connection, ConnectionSource, Connections, Extras, OauthEvent, OauthObserver,
    ProviderTokenError, Which,
};
use tracing::{info, warn};

use crate::manifests::located;

/// The first and the longest pause between checks.
const RETRY_FIRST: Duration = Duration::from_secs(2);
const RETRY_LAST: Duration = Duration::from_secs(30);

/// The parts that a pod adds to the endpoint of an object: a page for the console of the cluster, if the operator has named
/// one, and endpoints for administrators of the authorization server, if there is one.
pub(crate) fn pod_extras(
    variables: &BTreeMap<String, String>,
    kind: &str,
    name: &str,
    server: Option<&Arc<Embedded>>,
) -> Extras {
    let administration =
        server.cloned().and_then(|server| AdministrationPage::in_a_pod(variables, kind, name, server));
    let extras = Extras {
        authorization_server: server.cloned().map(|server| server as _),
        administration: administration.map(Arc::new),
        ..Extras::default()
    };
    match CallsPage::in_a_pod(variables, kind, name) {
        Some(page) => extras.with_calls_page(page),
        None => extras,
    }
}

/// An authorization server, as a proxy or virtual server sees it.
pub(crate) struct Embedded {
    server: AuthServer,
    /// Where it is configured, for messages.
    place: String,
}

impl Embedded {
    /// The authorization server that a RunConfig describes, if it does.
    pub(crate) fn of(config: &RunConfig) -> anyhow::Result<Option<Arc<Self>>> {
        let server = config.embedded_auth_server_config.as_ref();
        server.map(|server| Self::new(server, "embedded_auth_server_config")).transpose()
    }

    /// The authorization server of a configuration at this place.
    pub(crate) fn new(config: &skep_config::AuthServer, place: &str) -> anyhow::Result<Arc<Self>> {
        let server = Self::checked(config, place);
        server.map_err(|errors| anyhow::anyhow!("invalid {place}: {}", joined(&errors)))
    }

    fn checked(config: &skep_config::AuthServer, place: &str) -> Result<Arc<Self>, Vec<FieldError>> {
        Ok(Arc::new(Self { server: AuthServer::new(config)?, place: place.to_owned() }))
    }

    /// The authorization server that is configured beside this file, if there is one, or everything that is wrong with its file, each
    /// with its line.
    pub(crate) fn beside(config: &Path) -> Result<Option<Arc<Self>>, Vec<String>> {
        let file = config.with_file_name(FILE);
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(vec![format!("cannot read {}: {error}", file.display())]),
        };
        let config = skep_config::AuthServer::parse(&text);
        let server = config.and_then(|config| Self::checked(&config, &file.display().to_string()));
        server.map(Some).map_err(|errors| located(&file, &text, &errors))
    }

    /// Checks that its store and its upstreams can be used. Those that cannot be used yet are tried again while it serves.
    pub(crate) async fn check(self: &Arc<Self>) -> anyhow::Result<()> {
        let missing = self.server.check().await;
        let missing = missing.map_err(|error| anyhow::anyhow!("{}: {error}", self.place))?;
        self.report(&missing);
        info!(issuer = self.server.issuer(), "the authorization server is ready");
        tokio::spawn(keep_connected(Arc::downgrade(self)));
        Ok(())
    }

    fn report(&self, missing: &[FieldError]) {
        for error in missing {
            warn!(place = self.place, %error, "an identity provider is missing; retrying");
        }
    }
}

/// Checks a server again while providers are missing, and when its registration at one expires, until it ends.
async fn keep_connected(server: Weak<Embedded>) {
    let mut pause = RETRY_FIRST;
    loop {
        let Some(wait) = server.upgrade().and_then(|server| server.server.next_check()) else { return };
        tokio::time::sleep(wait.max(pause)).await;
        let Some(server) = server.upgrade() else { return };
        match server.server.check().await {
            Ok(missing) => server.report(&missing),
            Err(error) => server.report(&[error]),
        }
        let is_missing = server.server.next_check().is_some_and(|wait| wait.is_zero());
        pause = if is_missing { (pause * 2).min(RETRY_LAST) } else { RETRY_FIRST };
    }
}

impl Embedded {
    /// Checks it again and again, until it can be used. Every failure is reported.
    pub(crate) async fn wait_until_ready(self: &Arc<Self>, failed: impl Fn(&str)) {
        let mut pause = RETRY_FIRST;
        while let Err(error) = self.check().await {
            failed(&error.to_string());
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(RETRY_LAST);
        }
    }
}

impl OwnTokens for Embedded {
    fn issuer(&self) -> &str {
        self.server.issuer()
    }

    fn claims<'a>(
        &'a self,
        token: &'a str,
    ) -> BoxFuture<'a, Result<Map<String, Value>, AuthenticationError>> {
        let claims = self.server.verified(token).ok_or(AuthenticationError::Token("the token is not valid"));
        // A delegated token has no session of its own to check, and ends with that of its user.
        match claims {
            Ok(claims) if claims.contains_key("sid") => self
                .server
                .claims(token)
                .map(|claims| match claims {
                    Ok(claims) => claims.ok_or(AuthenticationError::Token("its session has ended")),
                    Err(_) => Err(AuthenticationError::Unavailable),
                })
                .boxed(),
            claims => ready(claims).boxed(),
        }
    }
}

impl ConnectionSource for Embedded {
    fn connections(&self, most: usize) -> BoxFuture<'_, Result<Connections, ProviderTokenError>> {
        let found = self.server.user_connections(most);
        found.map(|found| found.map(connections).map_err(|_| ProviderTokenError::Unavailable)).boxed()
    }
}

impl Administration for Embedded {
    fn administer<'a>(
        &'a self,
        request: &'a AdministrationRequest,
    ) -> BoxFuture<'a, Result<Value, AdministrationError>> {
        async move {
            match request {
                AdministrationRequest::Sessions { which, from } => {
                    page(self.server.list_sessions(&filter(which), from).await)
                }
                AdministrationRequest::EndSessions { which, from } => {
                    page(self.server.end_sessions(&filter(which), from).await)
                }
                AdministrationRequest::Clients { from } => page(self.server.list_clients(from).await),
                AdministrationRequest::ForgetClient { client } => page(
                    self.server
                        .forget_client(client)
                        .await
                        .map(|registered| json!({"registered": registered})),
                ),
            }
        }
        .boxed()
    }
}

fn oauth_event<'a>(event: &Event<'a>) -> OauthEvent<'a> {
    let type_ = match event.kind {
        EventKind::Login => "oauth_login",
        EventKind::Consent => "oauth_consent",
        EventKind::Refresh => "oauth_refresh",
        EventKind::Reuse => "oauth_token_reuse",
        EventKind::Revocation => "oauth_revocation",
        EventKind::SessionEnd => "oauth_session_end",
        EventKind::Registration => "oauth_registration",
    };
    let outcome = match event.outcome {
        EventOutcome::Success => "success",
        EventOutcome::Denied => "denied",
        EventOutcome::Failure => "failure",
    };
    OauthEvent { type_, outcome, user: event.user, client: event.client, peer: event.peer }
}

fn filter(which: &Which) -> SessionFilter {
    let Which { session, user, client } = which.clone();
    SessionFilter { session, user, client }
}

fn page(found: Result<impl Serialize, StoreError>) -> Result<Value, AdministrationError> {
    let page = found.map_err(|_| AdministrationError)?;
    serde_json::to_value(page).map_err(|_| AdministrationError)
}

fn connections(UserConnections { total, shown, is_shared }: UserConnections) -> Connections {
    let time =
        |seconds: u64| i64::try_from(seconds).ok().and_then(|second| Timestamp::from_second(second).ok());
    let connection = |one: UserConnection| Connection {
        user: one.user.into(),
        provider: one.provider.into(),
        account: one.account.into(),
        since: one.since.and_then(time),
        until: one.expires_at.and_then(time),
        renewed: one.is_renewed,
    };
    let shown = shown.into_iter().map(connection).collect();
    Connections { available: true, shared: is_shared, total: total as u64, shown }
}

impl AuthorizationServer for Embedded {
    fn serves(&self, path: &str) -> bool {
        self.server.serves(path)
    }

    fn respond(&self, request: Request<Incoming>, peer: IpAddr) -> BoxFuture<'_, Response<Bytes>> {
        self.server.respond(request, peer).boxed()
    }

    fn observe(&self, observer: OauthObserver) {
        self.server.observe(Arc::new(move |event: &Event<'_>| observer(&oauth_event(event))));
    }

    fn check_session<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<(), AuthenticationError>> {
        let checked = self.server.check_session(session);
        checked.map(|checked| checked.map_err(session_error)).boxed()
    }

    fn audiences(&self) -> &[String] {
        self.server.audiences()
    }

    fn providers(&self) -> Vec<&str> {
        self.server.upstream_tokens().providers().collect()
    }

    fn injects_tokens(&self) -> bool {
        !self.server.is_injection_disabled()
    }

    fn connections_url(&self, session: &str) -> String {
        self.server.connections_url(session)
    }

    fn provider_token<'a>(
        &'a self,
        session: &'a str,
        provider: &'a str,
    ) -> BoxFuture<'a, Result<String, ProviderTokenError>> {
        let token = self.server.upstream_tokens().access_token(session, provider);
        token.map(|token| token.map_err(provider_error)).boxed()
    }

    fn provider_id_token<'a>(
        &'a self,
        session: &'a str,
        provider: &'a str,
    ) -> BoxFuture<'a, Result<String, ProviderTokenError>> {
        let token = self.server.upstream_tokens().id_token(session, provider);
        token.map(|token| token.map_err(provider_error)).boxed()
    }

    fn provider_claims<'a>(
        &'a self,
        session: &'a str,
        provider: &'a str,
    ) -> BoxFuture<'a, Result<Option<Map<String, Value>>, ProviderTokenError>> {
        let claims = self.server.upstream_tokens().claims(session, provider);
        claims.map(|claims| claims.map_err(provider_error)).boxed()
    }
}

fn session_error(error: SessionError) -> AuthenticationError {
    match error {
        SessionError::Ended => AuthenticationError::Token("its session has ended"),
        SessionError::Expired => ProviderTokenError::Expired.into(),
        SessionError::Unavailable => AuthenticationError::Unavailable,
    }
}

fn provider_error(error: UpstreamTokenError) -> ProviderTokenError {
    match error {
        UpstreamTokenError::NotConnected => ProviderTokenError::NotConnected,
        UpstreamTokenError::Expired => ProviderTokenError::Expired,
        UpstreamTokenError::NoIdToken => ProviderTokenError::NoIdToken,
        UpstreamTokenError::Malformed => ProviderTokenError::Malformed,
        UpstreamTokenError::Unavailable => ProviderTokenError::Unavailable,
    }
}
