//! The server.

use std::{net::IpAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::future::join_all;
use http::{Request, Response};
use serde_json::{Map, Value};
use skep_auth::Places;
use skep_config::FieldError;

use crate::{
    clients::Documents,
    clock::Clock,
    config::{Settings, StorageSettings, storage},
    endpoints,
    events::{Event, EventKind, EventOutcome, Events, Observer},
    grants::InFlight,
    keys::session_of,
    limits,
    rates::Rates,
    store::{MemoryStore, RedisStore, Store, StoreError},
    upstreams::{ConnectError, SessionError, Upstream, UpstreamTokens},
};

/// The authorization server.
pub struct AuthServer {
    pub(crate) settings: Settings,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) upstreams: Arc<Vec<Upstream>>,
    pub(crate) documents: Option<Documents>,
    pub(crate) rates: Rates,
    pub(crate) in_flight: InFlight,
    pub(crate) events: Events,
    /// The bodies that arrive.
    pub(crate) bodies: Arc<Places>,
    pub(crate) clock: Clock,
    tokens: UpstreamTokens,
    is_injection_disabled: bool,
}

impl AuthServer {
    /// The server of a configuration. All its mistakes are reported at once.
    pub fn new(config: &skep_config::AuthServer) -> Result<Self, Vec<FieldError>> {
        let clock = Clock::default();
        let store: Result<Arc<dyn Store>, _> = storage(config).and_then(|settings| match settings {
            StorageSettings::Memory => Ok(Arc::new(MemoryStore::new(clock.clone())) as _),
            StorageSettings::Redis(settings) => RedisStore::new(*settings, clock.clone())
                .map(|store| Arc::new(store) as _)
                .map_err(|error| vec![FieldError::new("storage.redis_config", error)]),
        });
        match (Settings::new(config), store) {
            (Ok((settings, upstreams)), Ok(store)) => Self::with(config, settings, upstreams, store, clock),
            (Err(mut errors), Err(others)) => {
                errors.extend(others);
                Err(errors)
            }
            (Err(errors), _) | (_, Err(errors)) => Err(errors),
        }
    }

    fn with(
        config: &skep_config::AuthServer,
        mut settings: Settings,
        upstreams: Vec<crate::config::UpstreamSettings>,
        store: Arc<dyn Store>,
        clock: Clock,
    ) -> Result<Self, Vec<FieldError>> {
        let wrong = |field: &'static str| move |error: String| vec![FieldError::new(field, error)];
        let upstreams: Result<Vec<_>, _> = upstreams.into_iter().map(Upstream::new).collect();
        let upstreams = Arc::new(upstreams.map_err(wrong("upstreams"))?);
        let is_local = settings.is_local();
        let documents = settings.documents.take().map(|documents| Documents::new(documents, is_local));
        let documents = documents.transpose().map_err(wrong("cimd"))?;
        let tokens = UpstreamTokens::new(store.clone(), upstreams.clone(), clock.clone());
        Ok(Self {
            settings,
            store,
            upstreams,
            documents,
            rates: Rates::default(),
            in_flight: InFlight::default(),
            events: Events::default(),
            bodies: Places::new(limits::BODIES, limits::BODIES_OF_AN_ADDRESS),
            clock,
            tokens,
            is_injection_disabled: config.disable_upstream_token_injection,
        })
    }

    /// The server of a configuration, with this store.
    #[cfg(test)]
    pub(crate) fn with_store(config: &skep_config::AuthServer, store: Arc<dyn Store>) -> Self {
        let (settings, upstreams) = Settings::new(config).map_err(|errors| format!("{errors:?}")).unwrap();
        let server = Self::with(config, settings, upstreams, store, Clock::default());
        server.map_err(|errors| format!("{errors:?}")).unwrap()
    }

    /// Checks that the store and the upstreams can be used, and registers the server where it is no client yet. To be
    /// called before it serves, and again at [`Self::next_check`]. Returns the upstreams that cannot be used yet: the others
    /// can. It is an error if none can, or if one refuses to register the server.
    pub async fn check(&self) -> Result<Vec<FieldError>, FieldError> {
        let redis = |error: String| FieldError::new("storage.redis_config", error);
        self.store.check().await.map_err(redis)?;
        let (issuer, now) = (&self.settings.issuer, self.clock.now());
        let connecting = self.upstreams.iter().map(async |upstream| {
            let connected = upstream.connect(&*self.store, issuer, now).await;
            connected.map_err(|error| {
                let is_refused = matches!(error, ConnectError::Refused(_));
                let message = format!("{} cannot be used: {error}", upstream.name);
                (is_refused, FieldError::new("upstreams", message))
            })
        });
        let mut failures: Vec<_> = join_all(connecting).await.into_iter().filter_map(Result::err).collect();
        let fatal = match failures.iter().position(|(is_refused, _)| *is_refused) {
            None if failures.len() == self.upstreams.len() => Some(0),
            refused => refused,
        };
        match fatal.filter(|fatal| *fatal < failures.len()) {
            Some(fatal) => Err(failures.swap_remove(fatal).1),
            None => Ok(failures.into_iter().map(|(_, error)| error).collect()),
        }
    }

    /// In how much time it should be checked again: at once if an upstream cannot be used yet, or when a registration there
    /// expires. `None`: never.
    pub fn next_check(&self) -> Option<Duration> {
        let now = self.clock.now();
        self.upstreams.iter().filter_map(|upstream| upstream.time_left(now)).min()
    }

    /// The issuer in its tokens.
    pub fn issuer(&self) -> &str {
        &self.settings.issuer
    }

    /// The audiences that its tokens may have.
    pub fn audiences(&self) -> &[String] {
        &self.settings.audiences
    }

    /// The keys that verify its tokens (RFC 7517).
    pub fn verification_keys(&self) -> Value {
        self.settings.keys.published()
    }

    /// The tokens of sessions at upstreams.
    pub fn upstream_tokens(&self) -> &UpstreamTokens {
        &self.tokens
    }

    /// Whether the tokens of upstreams are not for backends.
    pub fn is_injection_disabled(&self) -> bool {
        self.is_injection_disabled
    }

    /// The claims of one of its own access tokens, if the signature is right. Whether its session goes on is to be checked as well.
    pub fn verified(&self, token: &str) -> Option<Map<String, Value>> {
        self.settings.keys.verified(token)
    }

    /// Checks that a session goes on, and is of use to its client.
    pub async fn check_session(&self, session: &str) -> Result<(), SessionError> {
        self.tokens.check(session, !self.is_injection_disabled).await
    }

    /// The claims of one of its own access tokens, if the signature is right and the session has not ended. `Ok(None)`: it
    /// is not accepted. `Err`: that cannot be decided now.
    pub async fn claims(&self, token: &str) -> Result<Option<Map<String, Value>>, StoreError> {
        let Some(claims) = self.verified(token) else { return Ok(None) };
        match session_of(&claims) {
            Some(session) if self.store.is_ended(session).await? => Ok(None),
            _ => Ok(Some(claims)),
        }
    }

    /// Has this observer told of each event from now on.
    pub fn observe(&self, observer: Observer) {
        self.events.set(observer);
    }

    pub(crate) fn tell(
        &self,
        (kind, outcome): (EventKind, EventOutcome),
        (user, client): (&str, &str),
        peer: Option<IpAddr>,
    ) {
        self.events.tell(&Event { kind, outcome, user, client, peer });
    }

    /// Whether a path is one of its routes.
    pub fn serves(&self, path: &str) -> bool {
        endpoints::route(path, &self.settings).is_some()
    }

    /// The response to a request of an address.
    pub async fn respond<B>(&self, request: Request<B>, peer: IpAddr) -> Response<Bytes>
    where
        B: http_body::Body,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        endpoints::respond(self, request, peer).await
    }
}
