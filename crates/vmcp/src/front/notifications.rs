//! Messages of clients that have no response: notifications, and responses to requests of backends.

use bytes::Bytes;
use futures::future::join_all;
use http::{Response, StatusCode};
use serde_json::json;
use skep_gateway::{
    http::{Body, response},
    message::Exchange,
    sessions::RedisUnavailable,
};
use skep_mcp::{Edits, Envelope, Era, Id, Json, Message, Method, Raw, Rejection};

use super::{
    Front,
    from_backend::RequestId,
    questions::{ClientAnswer, Undelivered},
    subscribe::report,
    workflow::{PassedOn, QUESTION},
};
use crate::{
    backend::{Backend, Caller, Link},
    limits,
    session::{Cancelled, ClientSession},
};

/// The code of JSON-RPC for an invalid request.
const INVALID_REQUEST: i64 = -32600;

impl Front {
    /// Processes a notification, or the response to a request of a backend.
    pub(super) async fn received(&self, exchange: &Exchange, envelope: &Envelope<'_>) -> Response<Body> {
        let session = match self.session(exchange).await {
            Ok(session) => session,
            Err(error) => return error.response(),
        };
        let caller = self.caller(exchange);
        match (envelope.message(), envelope.method()) {
            (Message::Response { id: Some(id), .. }, _) => {
                return self.return_response(&session, &caller, envelope, id).await;
            }
            (_, Some(Method::Cancelled)) => self.cancel(&session, &caller, envelope).await,
            (_, Some(Method::Progress)) => self.report_progress(&session, &caller, envelope).await,
            (_, Some(Method::RootsListChanged)) => {
                let open = session.links.open();
                join_all(open.iter().map(|(backend, link)| async {
                    let body = Bytes::copy_from_slice(envelope.bytes());
                    report(backend, backend.notify(link, &caller, body).await);
                }))
                .await;
            }
            _ => {}
        }
        response::empty(StatusCode::ACCEPTED)
    }

    /// Returns a response to the call that waits for it, or to the backend whose request it answers. Another replica may have that
    /// call, or have relayed that request.
    async fn return_response(
        &self,
        session: &ClientSession,
        caller: &Caller,
        envelope: &Envelope<'_>,
        id: Id<'_>,
    ) -> Response<Body> {
        let accepted = response::empty(StatusCode::ACCEPTED);
        if session.reply(id.raw().as_str(), envelope.bytes()) {
            return accepted;
        }
        let Some(id_text) = id.raw().as_text() else { return accepted };
        if id_text.starts_with(QUESTION) {
            let passed_on = self.pass_answer_on(session, &id_text, envelope.bytes()).await;
            return rejection(passed_on).unwrap_or(accepted);
        }
        let Some(id_parts) = RequestId::parse(&id_text) else { return accepted };
        let (Some(backend), Some(original)) =
            (self.views.backend(&id_parts.backend), Raw::spelled(&id_parts.id))
        else {
            return accepted;
        };
        let edits = Edits::of(envelope.bytes()).replace(id.raw(), Json::Raw(original));
        let Ok(message) = edits.bytes() else { return accepted };
        let (public, message) = (&*id_text, message.into());
        let answer = ClientAnswer { session, backend, caller, public, id: id_parts, message };
        match self.answer_backend(answer).await {
            Ok(()) => accepted,
            Err(error) => error.response(),
        }
    }

    /// Passes the answer to a question on to the replica that waits for it.
    async fn pass_answer_on(
        &self,
        session: &ClientSession,
        question: &str,
        answer: &[u8],
    ) -> Result<PassedOn, RedisUnavailable> {
        match &self.kept {
            Some(runs) => runs.pass_on(session, question, answer).await,
            None => Ok(PassedOn::NoQuestion),
        }
    }

    /// Cancels a request in flight, which another replica may have. A backend of 2026-07-28 sees that its response is no longer
    /// read. The client does not wait for a backend that is busy with the request.
    async fn cancel(&self, session: &ClientSession, caller: &Caller, envelope: &Envelope<'_>) {
        let id = envelope.params().and_then(|params| params.get("requestId"));
        let Some(id) = id else { return };
        let notification = |link: &Link, there: &str| {
            let there = Raw::spelled(there).filter(|_| link.revision.era() == Era::Legacy)?;
            Edits::of(envelope.bytes()).replace(id, Json::Raw(there)).bytes().ok()
        };
        let sent = async |backend: &Backend, link: &Link, caller: &Caller, body: Vec<u8>| {
            report(backend, backend.notify(link, caller, body.into()).await);
        };
        if let Some(Cancelled { backend, link, id: there }) = session.links.cancel(id.as_str()) {
            if let (Some(backend), Some(link)) = (self.views.backend(&backend), link)
                && let Some(body) = notification(&link, &there)
            {
                let caller = caller.clone();
                tokio::spawn(async move { sent(&backend, &link, &caller, body).await });
            }
            return;
        }
        let Some(there) = session.links.shared_id(id.as_str()) else { return };
        // The client may use the id again before the replica that has the request stores that.
        if session.give_up(id.as_str(), &there) {
            self.store(session).await;
        }
        let backends = self.views.backends();
        join_all(backends.values().map(async |backend| {
            if let Some(link) = session.links.existing(backend, caller).await
                && let Some(body) = notification(&link, &there)
            {
                sent(backend, &link, caller, body).await;
            }
        }))
        .await;
    }

    /// Passes progress on to the backend that has requested it.
    async fn report_progress(&self, session: &ClientSession, caller: &Caller, envelope: &Envelope<'_>) {
        let token = envelope.params().and_then(|params| params.get("progressToken"));
        let Some(token) = token else { return };
        for (backend, link) in session.links.open() {
            if link.questions.want_progress(token) {
                let body = Bytes::copy_from_slice(envelope.bytes());
                report(&backend, backend.notify(&link, caller, body).await);
            }
        }
    }
}

/// The response to an answer that no workflow gets.
fn rejection(passed_on: Result<PassedOn, RedisUnavailable>) -> Option<Response<Body>> {
    match passed_on {
        Ok(PassedOn::Yes) => None,
        Ok(PassedOn::Answered | PassedOn::NoQuestion) => Some(rejected(
            StatusCode::BAD_REQUEST,
            "no workflow waits for this answer: it was answered, its time has passed, or the server of the \
                 question has ended; call the tool again",
        )),
        Ok(PassedOn::TooLarge) => Some(Undelivered::TooLarge.response()),
        Err(_) => Some(Undelivered::Unavailable.response()),
    }
}

impl Undelivered {
    fn response(&self) -> Response<Body> {
        match self {
            Self::NoQuestion => rejected(
                StatusCode::BAD_REQUEST,
                "no backend waits for this answer: its time has passed, or the request that needed it has ended",
            ),
            Self::TooLarge => {
                let limit = limits::KEPT_RUN >> 10;
                rejected(StatusCode::PAYLOAD_TOO_LARGE, &format!("an answer may have {limit} KiB"))
            }
            Self::Unavailable => response::error(&Rejection::Unavailable("session store"), None),
            Self::Backend(backend, error) => rejected(
                StatusCode::BAD_GATEWAY,
                &format!("backend {backend} did not accept the answer: {error}: send it again"),
            ),
        }
    }
}

fn rejected(status: StatusCode, message: &str) -> Response<Body> {
    let error = json!({"jsonrpc": "2.0", "error": {"code": INVALID_REQUEST, "message": message}});
    response::json(status, error.to_string())
}
