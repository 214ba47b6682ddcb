//! The response to a call of a tool of the virtual server itself.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Response, StatusCode};
use skep_gateway::{body::CountedBytes, http::Body};
use skep_mcp::{Era, SessionId, sse};
use tokio::{sync::mpsc, time::timeout};

use super::{CallingClient, NeededInput, Sent};
use crate::{
    front::{
        AbortOnDrop, ClientRequest, Front,
        answer::tool_error,
        call_digest::CallDigest,
        relay::{ParkedCalls, Waiting, event, given, needing},
        rpc::{self, RpcError},
        stream::kept_alive,
        workflow::Keeper,
    },
    limits,
    session::{ClientSession, InFlight, Numbering},
};

/// A call whose tool runs. The tool ends with it.
pub(in crate::front) struct OwnCall {
    server: Arc<str>,
    parked: Arc<ParkedCalls>,
    peer: IpAddr,
    era: Era,
    /// The client's id, as it is spelled.
    id: Box<str>,
    session: Arc<ClientSession>,
    in_flight: InFlight,
    sent: mpsc::Receiver<Sent>,
    /// Which call it is, where the client may have to send it again.
    digest: Option<CallDigest>,
    client: Arc<Mutex<CallingClient>>,
    /// What keeps it while it waits, so that another replica can go on with it.
    keeper: Option<Arc<Keeper>>,
    _task: AbortOnDrop,
}

impl OwnCall {
    pub(super) fn new(
        front: &Front,
        request: &ClientRequest<'_>,
        sent: mpsc::Receiver<Sent>,
        client: Arc<Mutex<CallingClient>>,
        keeper: Option<Arc<Keeper>>,
        task: AbortOnDrop,
    ) -> Self {
        // No backend has the call itself.
        let in_flight = request.session.begin(request.id, &"".into(), front.next_number(), Numbering::Own);
        Self {
            server: front.name.clone(),
            parked: front.parked.clone(),
            peer: request.exchange.peer.ip(),
            era: request.era,
            id: request.id.into(),
            session: request.session.clone(),
            in_flight,
            sent,
            digest: (request.era == Era::Modern).then(|| CallDigest::of(&request.envelope)),
            client,
            keeper,
            _task: task,
        }
    }

    async fn next(&mut self) -> Sent {
        let failed = |reason: &str| Sent::Result(Bytes::from(tool_error(reason)).into());
        tokio::select! {
            sent = self.sent.recv() => sent.unwrap_or_else(|| failed("the tool ended without a result")),
            () = self.in_flight.cancelled() => {
                self.forget();
                failed("the client has cancelled the request")
            }
        }
    }

    /// Has no replica go on with it.
    pub(in crate::front) fn forget(&self) {
        self.keeper.iter().for_each(Keeper::forget);
    }

    /// The response: in JSON if the tool sends nothing before its result, or else as a stream.
    pub(in crate::front) async fn respond(mut self) -> Response<Body> {
        let era = self.era;
        let Ok(first) = timeout(limits::HEARTBEAT, self.next()).await else { return self.stream(None) };
        let first = match first {
            Sent::Result(result) => {
                return rpc::reply(StatusCode::OK, message(&self.id, &result).into_bytes(), era);
            }
            Sent::Error(error) => return error.response(&self.id, era),
            Sent::NeedsInput(needed) => return rpc::reply(StatusCode::OK, self.park(needed), era),
            Sent::Message(first) => event(&first),
            Sent::Question(question, state) => question_event(&question, state),
        };
        self.stream(Some(first))
    }

    /// The response as a stream, with this event first.
    pub(in crate::front) fn stream(self, first: Option<Bytes>) -> Response<Body> {
        let rest = stream::unfold(Some(self), |call| async move {
            let mut call = call?;
            let (event, call) = match call.next().await {
                Sent::Message(message) => (event(&message), Some(call)),
                Sent::Question(question, state) => (question_event(&question, state), Some(call)),
                Sent::Result(result) => (event(&message(&call.id, &result)), None),
                Sent::Error(error) => (sse::encoded("message", error.body(&call.id).as_bytes()), None),
                Sent::NeedsInput(needed) => (sse::encoded("message", &call.park(needed)), None),
            };
            Some((Ok(event), call))
        });
        kept_alive(stream::iter(first.map(Ok)).chain(rest))
    }

    /// Keeps the call until the client sends its request again, with the input. Returns the response.
    fn park(self, needed: NeededInput) -> Bytes {
        let state = needed.state.clone();
        let result = needing(&needed.request, state.as_str(), &self.server);
        let (parked, id, peer) = (self.parked.clone(), self.id.clone(), self.peer);
        // Only a client of 2026-07-28 provides input so.
        let Some(digest) = self.digest else {
            return RpcError::internal("the call cannot wait").body(&id).into();
        };
        let key = (self.session.owner, digest);
        match parked.park(&state, Waiting::Own(Box::new(self), needed), key, peer) {
            Ok(()) => rpc::result_body(&id, &result).into(),
            Err(_) => RpcError::internal("too many calls wait for input of clients").body(&id).into(),
        }
    }

    /// Goes on with the input that the request has.
    pub(in crate::front) async fn resume(
        mut self: Box<Self>,
        needed: NeededInput,
        request: &ClientRequest<'_>,
    ) -> Response<Body> {
        self.id = request.id.into();
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = CallingClient::of(request);
        self.in_flight = self.session.begin_again(request.id, &"".into(), &self.in_flight);
        match given(request.envelope.params()) {
            Some(given) => {
                needed.reply.send(given.as_str().to_owned()).ok();
                self.respond().await
            }
            None => {
                let era = self.era;
                rpc::reply(StatusCode::OK, self.park(needed), era)
            }
        }
    }
}

/// The message with this result.
fn message(id: &str, result: &CountedBytes) -> CountedBytes {
    result.remade(rpc::result_body(id, std::str::from_utf8(result).unwrap_or_default()))
}

/// The event of a question. With an id, any replica can go on with the stream.
fn question_event(question: &[u8], state: Option<SessionId>) -> Bytes {
    let event = sse::encoded("message", question);
    match state {
        Some(state) => [b"id: ", state.as_str().as_bytes(), b"\n", &event].concat().into(),
        None => event,
    }
}
