//! One backend: how it is reached, what it speaks, what it offers, and whether it is healthy.
//!
//! [`Backend::run`] looks after it for as long as the virtual server runs: it opens a session of its own, reads the lists,
//! reads them again when they change, and checks its health. Clients have their own sessions, see [`Link`].

mod blueprint;
mod capabilities;
mod credentials;
mod error;
mod health;
mod http_sse;
mod link;
mod listen;
mod listing;
mod messages;
mod open;
mod questions;
mod request;
mod result_type;
mod resume;
mod run;
mod send;
#[cfg(test)]
mod signing_tests;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::Full;
use jiff::Timestamp;
use skep_api::vmcp::BackendTransport;
use skep_gateway::{
    body::Budget,
    identity::{Holder, Identity},
    outbound::Client,
};
use skep_mcp::{Era, Revision};
use tokio::sync::{Notify, watch};

use crate::{catalog::Lists, limits};
pub(crate) use blueprint::{Authorities, Blueprint, Factory};
pub(crate) use capabilities::{Capabilities, Spoken};
use credentials::{Authentication, Credentials};
pub(crate) use error::BackendError;
pub(crate) use health::{Circuit, Health, Status, Thresholds};
pub(crate) use link::{Link, Resumable};
pub(crate) use listen::Interest;
use messages::Head;
pub(crate) use messages::{Listening, Messages, Place};
pub(crate) use questions::Claim;
pub(crate) use request::{Form, Rename, VERSION, request, unreserved};
pub(crate) use result_type::ResultType;
pub(crate) use send::{OutgoingRequest, is_for, rpc_error};

/// For whom a request is sent.
#[derive(Clone, Default)]
pub(crate) struct Caller {
    /// The caller. The virtual server itself has none.
    pub(crate) identity: Option<Arc<Identity>>,
    /// The caller's token, for strategies that exchange it.
    pub(crate) token: Option<Arc<str>>,
    /// The headers of the request that are forwarded.
    pub(crate) headers: HeaderMap,
    /// Whose memory the responses take.
    pub(crate) holder: Option<Holder>,
}

/// How a backend is configured.
struct Settings {
    blueprint: Blueprint,
    uri: Uri,
    transport: BackendTransport,
    credentials: Credentials,
    /// Headers that every request has.
    headers: HeaderMap,
    /// How long it may take to send a message.
    timeout: Duration,
    checks: Checks,
    /// What the messages of all backends may take.
    budget: Budget,
}

/// How its health is checked.
#[derive(Clone, Debug)]
pub(crate) struct Checks {
    pub(crate) interval: Duration,
    pub(crate) timeout: Duration,
    pub(crate) thresholds: Thresholds,
}

/// One backend.
pub(crate) struct Backend {
    pub(crate) name: Arc<str>,
    /// What it was made from.
    pub(crate) blueprint: Blueprint,
    pub(crate) transport: BackendTransport,
    pub(crate) credentials: Credentials,
    pub(crate) timeout: Duration,
    client: Arc<Client>,
    uri: Uri,
    headers: HeaderMap,
    checks: Checks,
    budget: Budget,
    state: Mutex<State>,
    /// Numbers requests of the virtual server itself.
    number: AtomicU64,
    /// Reads its lists again.
    refresh: Notify,
    /// How often its lists have been read, or could not be.
    checked: watch::Sender<u64>,
    /// What depends on it has changed.
    changed: Arc<watch::Sender<u64>>,
}

/// What is known of a backend.
struct State {
    health: Health,
    /// Which revisions it speaks, once that is known.
    spoken: Option<Spoken>,
    revision: Option<Revision>,
    /// What it declared when a session was last opened.
    declared: Option<Capabilities>,
    lists: Option<Arc<Lists>>,
    /// When it was last tried to read the lists.
    tried: Option<Instant>,
    /// Whether changes of its lists are announced.
    is_watched: bool,
}

impl Backend {
    /// A backend. `changed` counts what changes about any of them.
    fn new(settings: Settings, client: Arc<Client>, changed: Arc<watch::Sender<u64>>) -> Self {
        let Settings { blueprint, uri, transport, credentials, headers, timeout, checks, budget } = settings;
        let state = State {
            health: Health::new(Timestamp::now()),
            spoken: (transport == BackendTransport::Sse).then_some(Spoken::LEGACY),
            revision: None,
            declared: None,
            lists: None,
            tried: None,
            is_watched: false,
        };
        Self {
            name: blueprint.name.clone(),
            blueprint,
            transport,
            credentials,
            timeout,
            client,
            uri,
            headers,
            checks,
            budget,
            state: Mutex::new(state),
            number: AtomicU64::new(1),
            refresh: Notify::new(),
            checked: watch::Sender::new(0),
            changed,
        }
    }

    /// Takes the place of another, whose settings were different: what that offered is offered until it is known better.
    pub(crate) fn replace(&self, other: &Self) {
        let lists = other.state().lists.clone();
        self.state().lists = lists;
    }

    /// Its health.
    pub(crate) fn health(&self) -> Health {
        self.state().health.clone()
    }

    /// The revision that was agreed on, if one was.
    pub(crate) fn revision(&self) -> Option<Revision> {
        self.state().revision
    }

    /// What it offers, if that is known.
    pub(crate) fn offered(&self) -> Option<Arc<Lists>> {
        self.state().lists.clone()
    }

    /// Whether new sessions see what it offers.
    pub(crate) fn is_usable(&self) -> bool {
        !matches!(self.state().health.status, Status::Unhealthy | Status::Unauthenticated)
    }

    /// Whether requests are not sent to it, as its circuit is open.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.state().health.circuit == Circuit::Open
    }

    /// How long it may take for a whole request, whatever it sends meanwhile.
    pub(crate) fn request_time(&self) -> Duration {
        self.timeout.saturating_mul(limits::REQUEST_TIMES)
    }

    /// What responses to this caller may take.
    fn budget_of(&self, caller: &Caller) -> Budget {
        self.budget.part_of(caller.holder)
    }

    fn spoken(&self) -> Option<Spoken> {
        self.state().spoken
    }

    fn set_spoken(&self, spoken: Spoken) {
        self.state().spoken = Some(spoken);
    }

    fn set_declared(&self, declared: Capabilities) {
        self.state().declared = Some(declared);
    }

    /// What it declares for sessions. It is the same for all of them.
    fn declared(&self) -> Capabilities {
        let state = self.state();
        let modern = state.spoken.and_then(|spoken| spoken.modern_for(Era::Modern));
        state.declared.or(modern).unwrap_or_default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The headers of every request for this caller, but for what authenticates it.
    fn headers(&self, caller: &Caller) -> HeaderMap {
        let mut headers = self.headers.clone();
        headers.extend(caller.headers.iter().map(|(name, value)| (name.clone(), value.clone())));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers
    }

    async fn send(
        &self,
        caller: &Caller,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Head, BackendError> {
        self.send_to(&self.uri, caller, method, headers, body).await
    }

    async fn send_to(
        &self,
        uri: &Uri,
        caller: &Caller,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Head, BackendError> {
        self.send_within(self.timeout, uri, caller, method, headers, body).await
    }

    /// Authenticates a request, which has all other headers, and sends it. Its response must begin in this time. A token that was
    /// issued for the backend may have been revoked since.
    async fn send_within(
        &self,
        time: Duration,
        uri: &Uri,
        caller: &Caller,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Head, BackendError> {
        let credential = self.credentials.of(caller).await?;
        let head =
            self.send_with(&credential, time, uri, method.clone(), headers.clone(), body.clone()).await?;
        if head.response.status() != StatusCode::UNAUTHORIZED
            || !self.credentials.forget(caller, &credential).await
        {
            return Ok(head);
        }
        let credential = self.credentials.of(caller).await?;
        self.send_with(&credential, time, uri, method, headers, body).await
    }

    async fn send_with(
        &self,
        authentication: &Authentication,
        time: Duration,
        uri: &Uri,
        method: Method,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<Head, BackendError> {
        authentication.apply((&method, uri), &mut headers, &body)?;
        let request = |to: Uri| {
            let mut headers = headers.clone();
            // A signature is for one address. If there is none for that of a redirect, the backend rejects the first one.
            if to != *uri {
                authentication.apply((&method, &to), &mut headers, &body).ok();
            }
            let mut request = Request::new(Full::new(body.clone()));
            *request.method_mut() = method.clone();
            *request.uri_mut() = to;
            *request.headers_mut() = headers;
            request
        };
        let deadline = tokio::time::Instant::now() + time;
        let sent = tokio::time::timeout_at(deadline, self.client.send(uri, request)).await;
        let response = sent.map_err(|_| BackendError::Timeout(time))??;
        Ok(Head { response, deadline })
    }
}
