//! What a backend sends for one request, on its way to the client.

mod input;
mod parked;

use std::{collections::VecDeque, net::IpAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{
    FutureExt,
    future::{BoxFuture, ready},
    stream,
};
use http::{HeaderMap, Response, StatusCode};
use skep_gateway::{body::CountedBytes, http::Body};
use skep_mcp::{Envelope, Era, Message, Method, Outcome, SessionId, sse};
use tokio::time::{Instant, timeout};
use tracing::debug;
use uuid::Uuid;

use super::{
    ClientRequest, Front,
    answer::{Recipient, failure, translated},
    call_digest::CallDigest,
    from_backend::{for_client, for_session, readdressed, retagged, with_token, withdrawn},
    measured::Measured,
    own::progress_token,
    questions::Question,
    rpc::{self, RpcError},
    running::Running,
    stream::kept_alive,
    workflow::KeptRuns,
};
use crate::{
    backend::{Backend, BackendError, Caller, Link, Messages, OutgoingRequest, is_for, rpc_error},
    level::Level,
    limits,
    session::{ClientSession, InFlight},
};
pub(super) use input::{BackendRequest, given, needing};
use input::{InputRequired, PendingInput};
use parked::OtherCall;
pub(crate) use parked::ParkedCalls;
pub(super) use parked::Waiting;

/// The messages of a backend for one request of a client.
pub(super) struct Relay {
    server: Arc<str>,
    parked: Arc<ParkedCalls>,
    kept: Option<Arc<KeptRuns>>,
    peer: IpAddr,
    method: Method,
    era: Era,
    recipient: Recipient,
    /// The client's id, as it is spelled.
    id: Box<str>,
    session: Arc<ClientSession>,
    caller: Caller,
    /// Which call it is, where the client may have to send it again.
    digest: Option<CallDigest>,
    /// The progress token that the backend has, as it is spelled, and that of the client, which may have sent its request again.
    tokens: [Option<Box<str>>; 2],
    /// The lowest level of log messages that the client wants for this request.
    log_level: Option<Level>,
    backend: Arc<Backend>,
    sent: Sent,
    messages: Messages,
    in_flight: InFlight,
    /// What the client gets next.
    outgoing: VecDeque<Bytes>,
    /// Input that an older client is providing.
    pending: Option<PendingInput>,
    /// How often the backend has needed input.
    rounds: usize,
    asked: Asked,
    /// How much longer the backend may take, apart from when it waits for the client, and how much longer that may be.
    left: Duration,
    left_for_input: Duration,
    has_ended: bool,
    measured: Measured,
}

/// A request that a backend has been sent.
pub(super) struct Sent {
    pub(super) link: Arc<Link>,
    pub(super) messages: Messages,
    pub(super) running: Running,
    /// What it names there.
    pub(super) name: Option<String>,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// The requests of a backend that belong to one request of the client: they end with it.
struct Asked {
    link: Arc<Link>,
    numbers: Vec<Uuid>,
}

impl Drop for Asked {
    fn drop(&mut self) {
        for number in &self.numbers {
            self.link.questions.end(*number);
        }
    }
}

/// What the client gets.
pub(super) enum Step {
    /// A notification or request, before the response.
    Message(CountedBytes),
    /// The response, as a message.
    Response(StatusCode, CountedBytes),
    /// A response that needs input of a client of 2026-07-28.
    NeedsInput(BackendRequest),
}

impl Relay {
    pub(super) fn new(
        server: &Front,
        request: &ClientRequest<'_>,
        backend: Arc<Backend>,
        mut sent: Sent,
        in_flight: InFlight,
        measured: Measured,
    ) -> Self {
        let messages = std::mem::replace(&mut sent.messages, Messages::Whole(None));
        let left = backend.request_time();
        let token = progress_token(&request.envelope).map(Box::<str>::from);
        let asked = Asked { link: sent.link.clone(), numbers: Vec::new() };
        let may_wait = request.era == Era::Modern && sent.link.revision.era() == Era::Legacy;
        Self {
            server: server.name.clone(),
            parked: server.parked.clone(),
            kept: server.kept.clone(),
            peer: request.exchange.peer.ip(),
            method: request.method,
            era: request.era,
            recipient: Recipient::of(request.exchange),
            id: request.id.into(),
            session: request.session.clone(),
            caller: request.caller.clone(),
            digest: may_wait.then(|| CallDigest::of(&request.envelope)),
            tokens: [token.clone(), token],
            log_level: request.log_level(),
            backend,
            sent,
            messages,
            in_flight,
            left,
            left_for_input: limits::INPUT_TIME_OF_ALL,
            outgoing: VecDeque::new(),
            pending: None,
            rounds: 0,
            asked,
            has_ended: false,
            measured,
        }
    }

    /// The next thing that the client gets, or nothing after the response.
    pub(super) async fn next(&mut self) -> Option<Step> {
        if self.has_ended {
            return None;
        }
        let step = match self.advance().await {
            Ok(step) => step,
            Err(error) => {
                debug!(backend = &*self.backend.name, %error, "a request failed");
                self.sent.running.failed(&error);
                self.measured.record(Some(self.sent.link.revision), true);
                self.has_ended = true;
                return Some(self.failed(&error));
            }
        };
        self.has_ended = !matches!(step, Step::Message(_));
        if matches!(step, Step::Response(..)) {
            self.measured.record(Some(self.sent.link.revision), false);
        }
        Some(step)
    }

    async fn advance(&mut self) -> Result<Step, BackendError> {
        loop {
            if let Some(message) = self.outgoing.pop_front() {
                return Ok(Step::Message(message.into()));
            }
            if let Some(pending) = self.pending.take() {
                self.send_again(pending).await?;
            }
            let message = self.message().await?;
            if let Some(step) = self.step(message).await? {
                return Ok(step);
            }
        }
    }

    /// The next message of the backend.
    async fn message(&mut self) -> Result<CountedBytes, BackendError> {
        let link = self.sent.link.clone();
        loop {
            let started = Instant::now();
            let is_asked = link.questions.are_open();
            let (silence, rest) = match is_asked {
                true => (limits::INPUT_TIME, self.left_for_input),
                false => (self.backend.timeout, self.left),
            };
            let next = self.backend.next(&link, &self.caller, &mut self.messages, silence);
            let message = tokio::select! {
                message = timeout(rest, next) => Some(message.unwrap_or(Err(BackendError::Timeout(rest)))),
                () = self.in_flight.cancelled() => Some(Err(BackendError::Cancelled)),
                () = link.questions.changed(is_asked) => None,
            };
            let left = if is_asked { &mut self.left_for_input } else { &mut self.left };
            *left = left.saturating_sub(started.elapsed());
            // Also if it sends something, or asks something, all the time.
            if left.is_zero() {
                let whole = if is_asked { limits::INPUT_TIME_OF_ALL } else { self.backend.request_time() };
                return Err(BackendError::TooLong(whole));
            }
            if let Some(message) = message {
                return message;
            }
        }
    }

    async fn step(&mut self, message: CountedBytes) -> Result<Option<Step>, BackendError> {
        let envelope = Envelope::parse(&message).map_err(|_| BackendError::Malformed)?;
        match envelope.message() {
            Message::Response { id, outcome } => {
                // One to another request would be a mistake of the backend.
                if !is_for(id, &self.sent.running.id) {
                    return Ok(None);
                }
                self.sent.running.has_ended = true;
                self.messages.finish();
                match outcome {
                    Outcome::Result(result) => self.result(&message, result),
                    Outcome::Error(error) => Err(rpc_error(error)),
                }
            }
            Message::Notification { .. } if envelope.method() == Some(Method::Cancelled) => {
                let sent = withdrawn(&envelope, &self.backend, &self.sent.link);
                Ok(sent.map(|bytes| Step::Message(message.remade(bytes))))
            }
            Message::Notification { .. } => {
                let [of_backend, of_client] = &self.tokens;
                if envelope.method() == Some(Method::Progress) && of_backend != of_client {
                    let sent = of_client.as_deref().and_then(|token| with_token(&envelope, token));
                    return Ok(sent.map(|bytes| Step::Message(message.remade(bytes))));
                }
                let is_forwarded = for_client(&envelope, &self.session, &self.backend, self.log_level);
                let is_same = self.sent.link.revision.era() == Era::Legacy;
                let sent = if is_same {
                    Some(message.clone())
                } else {
                    retagged(&envelope, None).map(|bytes| message.remade(bytes))
                };
                Ok(sent.filter(|_| is_forwarded).map(Step::Message))
            }
            Message::Request { .. } if self.era == Era::Modern && for_session(&envelope, &self.session) => {
                Ok(BackendRequest::new(&envelope, &message).map(Step::NeedsInput))
            }
            Message::Request { id, .. }
                if for_session(&envelope, &self.session)
                    && let Some(number) = self.sent.link.questions.ask(&envelope) =>
            {
                self.asked.numbers.push(number);
                let question = Question {
                    session: &self.session,
                    backend: &self.backend,
                    link: &self.sent.link,
                    caller: &self.caller,
                    id: id.raw().as_str(),
                    number,
                };
                let id = question.announce(self.kept.as_ref()).await;
                Ok(readdressed(&envelope, &id).map(|bytes| Step::Message(message.remade(bytes))))
            }
            Message::Request { .. } => {
                self.backend.decline(&self.sent.link, &self.caller, &envelope).await;
                Ok(None)
            }
        }
    }

    fn result(
        &mut self,
        message: &CountedBytes,
        result: skep_mcp::Raw<'_>,
    ) -> Result<Option<Step>, BackendError> {
        if self.era == Era::Legacy
            && let Some(required) = InputRequired::of(result)
        {
            let prefix = format!("{}-{}", self.in_flight.number, self.rounds);
            let (requests, pending) = required?.requests_of_2025(&self.session, &prefix)?;
            self.outgoing.extend(requests);
            self.pending = Some(pending);
            return Ok(None);
        }
        let result = translated(result, self.method, self.era, self.recipient, &self.server)?;
        Ok(Some(Step::Response(StatusCode::OK, message.remade(rpc::result_body(&self.id, &result)))))
    }

    /// Sends the request again, with the input that the client provides.
    async fn send_again(&mut self, mut pending: PendingInput) -> Result<(), BackendError> {
        let received = tokio::select! {
            received = timeout(limits::INPUT_TIME, pending.received()) => received,
            () = self.in_flight.cancelled() => return Err(BackendError::Cancelled),
        };
        let input =
            received.map_err(|_| BackendError::input("the client did not provide input in time"))??;
        self.rounds += 1;
        if self.rounds > limits::INPUT_ROUNDS {
            return Err(BackendError::input("it needs input again and again"));
        }
        self.sent.running.id = format!("\"{}-{}\"", self.in_flight.number, self.rounds);
        let body =
            input.added_to(&self.sent.body, &self.sent.running.id).map_err(|_| BackendError::Malformed)?;
        let request = OutgoingRequest {
            method: self.method.name().unwrap_or_default(),
            name: self.sent.name.as_deref(),
            headers: self.sent.headers.clone(),
            body,
        };
        self.messages = self.backend.request(&self.sent.link, &self.caller, request).await?;
        Ok(())
    }

    fn failed(&self, error: &BackendError) -> Step {
        match failure(self.method, self.era, &self.backend.name, error) {
            Ok(result) => {
                Step::Response(StatusCode::OK, Bytes::from(rpc::result_body(&self.id, &result)).into())
            }
            Err(error) => Step::Response(error.status(self.era), Bytes::from(error.body(&self.id)).into()),
        }
    }

    /// Responds to a request of the backend, with what the client provides. Its messages go on.
    pub(super) async fn provide(
        &mut self,
        needed: &BackendRequest,
        result: &str,
    ) -> Result<(), BackendError> {
        self.has_ended = false;
        self.backend.notify(&self.sent.link, &self.caller, needed.answer(result)).await
    }

    /// Keeps the call until the client sends its request again, with what the backend needs. Returns the response.
    fn park(mut self, needed: BackendRequest) -> Bytes {
        self.has_ended = false;
        let state = SessionId::random();
        let result = needed.result(state.as_str(), &self.server);
        let (parked, id, peer) = (self.parked.clone(), self.id.clone(), self.peer);
        // The client is of 2026-07-28, and the backend is not.
        let Some(digest) = self.digest else {
            return RpcError::internal("the call cannot wait").body(&id).into();
        };
        let key = (self.session.owner, digest);
        match parked.park(&state, Waiting::Backend(Box::new((self, needed))), key, peer) {
            Ok(()) => rpc::result_body(&id, &result).into(),
            Err(_) => RpcError::internal("too many calls wait for input of clients").body(&id).into(),
        }
    }
}

/// A relay, once it has its next step.
type Advancing = BoxFuture<'static, (Option<Step>, Relay)>;

fn advancing(mut relay: Relay) -> Advancing {
    async move {
        let step = relay.next().await;
        (step, relay)
    }
    .boxed()
}

/// The response: in JSON if the backend responds soon, or else as a stream of what comes before.
pub(super) async fn respond(relay: Relay) -> Response<Body> {
    let era = relay.era;
    let mut first = advancing(relay);
    let Ok((step, relay)) = timeout(limits::HEARTBEAT, &mut first).await else { return streamed(first) };
    match step {
        Some(Step::Response(status, body)) => rpc::reply(status, body.into_bytes(), era),
        Some(Step::NeedsInput(needed)) => rpc::reply(StatusCode::OK, relay.park(needed), era),
        None => RpcError::internal("no response").response(&relay.id, era),
        Some(message @ Step::Message(_)) => streamed(ready((Some(message), relay)).boxed()),
    }
}

/// The response as a stream.
fn streamed(first: Advancing) -> Response<Body> {
    kept_alive(stream::unfold(Some(first), |next| async move {
        let (step, relay) = next?.await;
        let (message, next) = match step? {
            Step::Message(message) => (message, Some(advancing(relay))),
            Step::Response(_, message) => (message, None),
            Step::NeedsInput(needed) => (relay.park(needed).into(), None),
        };
        Some((Ok(event(&message)), next))
    }))
}

/// The event of a message, which counts in its place.
pub(super) fn event(message: &CountedBytes) -> Bytes {
    message.remade(sse::encoded("message", message)).into_bytes()
}

impl Front {
    /// The call that a request goes on with: the client provides what its backend needed.
    pub(super) fn waiting_call(&self, request: &ClientRequest<'_>) -> Result<Option<Waiting>, RpcError> {
        let state = request.envelope.params().and_then(|params| params.get("requestState")?.as_text());
        let Some(state) = state else { return Ok(None) };
        let digest = CallDigest::of(&request.envelope);
        let waiting = self.parked.take(&state, request.session.owner, digest);
        waiting.map_err(|OtherCall| RpcError::invalid(rpc::OTHER_CALL))
    }
}

impl Waiting {
    /// Goes on with it.
    pub(super) async fn resume(self, request: &ClientRequest<'_>) -> Response<Body> {
        let (mut relay, needed) = match self {
            Self::Backend(waiting) => *waiting,
            Self::Own(call, needed) => return call.resume(needed, request).await,
        };
        relay.id = request.id.into();
        relay.caller = request.caller.clone();
        relay.tokens[1] = progress_token(&request.envelope).map(Into::into);
        relay.log_level = request.log_level();
        relay.in_flight = relay.session.begin_again(request.id, &relay.backend.name, &relay.in_flight);
        relay.sent.running.go_on(&request.caller, &relay.in_flight);
        let backend = relay.backend.clone();
        request.exchange.backend.set(backend.name.clone()).ok();
        let params = request.envelope.params();
        let Some(body) = needed.response(params) else {
            return rpc::reply(StatusCode::OK, relay.park(needed), request.era);
        };
        match backend.notify(&relay.sent.link, &request.caller, body).await {
            Ok(()) => respond(relay).await,
            Err(error) => RpcError::of_backend(&backend.name, &error).response(request.id, request.era),
        }
    }
}
