//! Calls of a tool, as calls of the client that called it.

use std::{
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use skep_gateway::{
    http::Body,
    message::{Exchange, Origin, Part},
    middleware::InFlight as ObservedCall,
};
use skep_mcp::{ConnectAnswer, Envelope, Era, Message, Method, Object, Outcome, Raw, Rejection, SessionId};
use skep_workflow::{Answer, CallError, Question};
use tokio::sync::{mpsc, oneshot};

use super::{CallingClient, NeededInput, NoTree, Sent, Trees, input_time::InputTime};
use crate::{
    backend::{BackendError, Link},
    catalog::{BackendTool, Catalog, Composite, Entry, Provider},
    front::{
        ClientRequest, Front,
        answer::tool_error,
        connect::{Elicited, Opener},
        measured::Measured,
        relay::{Relay, Step},
        resolve::Route,
        rpc,
        running::cancelled,
        workflow::{KeptRuns, Reports, Start, Steps},
    },
    session::{ClientSession, Numbering},
};

/// How the user is sent an elicitation.
pub(in crate::front) struct Elicitation<'a> {
    /// The id of the request to an older client.
    pub(in crate::front) id: String,
    /// Whether the client has it already.
    pub(in crate::front) is_known: bool,
    /// By what any replica can go on with the call, if it is kept.
    pub(in crate::front) state: Option<SessionId>,
    /// Where another replica puts the answer that it receives.
    pub(in crate::front) runs: Option<&'a KeptRuns>,
}

/// What makes the calls of one tool.
pub(in crate::front) struct Calls {
    front: Arc<Front>,
    /// The request of the client, whose copies the calls are.
    origin: Exchange,
    era: Era,
    session: Arc<ClientSession>,
    pub(super) client: Arc<Mutex<CallingClient>>,
    /// What the client sees.
    pub(in crate::front) catalog: Arc<Catalog>,
    sent: mpsc::Sender<Sent>,
    /// What each request of 2026-07-28 has, as JSON.
    meta: String,
    /// What the user has answered who was to connect an account.
    connect: Option<ConnectAnswer>,
    input_time: InputTime,
}

impl Calls {
    pub(super) fn new(
        front: Arc<Front>,
        request: &ClientRequest<'_>,
        catalog: Arc<Catalog>,
        sent: mpsc::Sender<Sent>,
    ) -> Result<Self, Rejection> {
        let target = request.envelope.target().map(|target| target.name().into_owned()).unwrap_or_default();
        let meta = request.envelope.params().and_then(|params| params.get("_meta"));
        let mut reserved = Object::default();
        for (name, value) in meta.and_then(|meta| meta.entries().ok()).unwrap_or_default() {
            if name.decoded().starts_with("io.modelcontextprotocol/") {
                reserved.put(name.raw().as_str(), value.as_str());
            }
        }
        Ok(Self {
            front,
            origin: request.exchange.call(&target, request.exchange.body.clone())?,
            era: request.era,
            session: request.session.clone(),
            client: Arc::new(Mutex::new(CallingClient::of(request))),
            catalog,
            sent,
            meta: reserved.json(),
            connect: ConnectAnswer::of(request.envelope.params()),
            input_time: InputTime::default(),
        })
    }

    /// Calls a tool with these arguments, as JSON, if the policies and limits of the client allow it, and returns its result as the tool
    /// sent it.
    pub(in crate::front) async fn call(
        &self,
        part: &Part,
        entry: &Entry,
        arguments: &str,
        trees: &Trees,
    ) -> Result<Value, CallError> {
        match &entry.provider {
            Provider::Backend(origin) => {
                self.call_backend(part, BackendTool { entry, origin }, arguments, trees).await
            }
            Provider::Composite(composite) => {
                let call = self.allowed(part, entry, arguments).await?;
                let response = self.run_composite(&call.exchange, composite, arguments).await;
                self.respond(call, Ok(response), trees).await
            }
            Provider::Scripts => Err(failed("a script cannot run another")),
        }
    }

    /// The same for a tool of a backend. The steps of a workflow call these, and so nothing that makes calls itself.
    pub(in crate::front) async fn call_backend(
        &self,
        part: &Part,
        tool: BackendTool<'_>,
        arguments: &str,
        trees: &Trees,
    ) -> Result<Value, CallError> {
        let call = self.allowed(part, tool.entry, arguments).await?;
        let mut elicited = None;
        let sent = self.send(&call.exchange, tool, &mut elicited).await;
        let outcome = self.respond(call, sent, trees).await;
        if let Some(elicited) = elicited {
            // The client calls again: nothing else is called for this call.
            self.end_with(elicited).await;
            return std::future::pending().await;
        }
        outcome
    }

    /// A call that the policies and limits of the client allow.
    async fn allowed(
        &self,
        part: &Part,
        entry: &Entry,
        arguments: &str,
    ) -> Result<ObservedCall<'_>, CallError> {
        let mut exchange = self
            .exchange(entry, arguments)
            .map_err(|error| failed(format!("the call could not be made: {error:?}")))?;
        exchange.origin = Origin::Part(part.clone());
        let mut call = self.front.chain.observed_call(exchange);
        let Err(rejection) = self.front.chain.call(&mut call.exchange).await else { return Ok(call) };
        let (head, body) = (*rejection).into_parts();
        let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        let reason = reason(&body);
        record(call, http::Response::from_parts(head, Body::Whole(body))).await;
        Err(reason)
    }

    /// Records how a call ended, and returns the result in its response.
    async fn respond(
        &self,
        call: ObservedCall<'_>,
        sent: Result<Bytes, CallError>,
        trees: &Trees,
    ) -> Result<Value, CallError> {
        let body = match &sent {
            Ok(body) => body.clone(),
            Err(error) => rpc::RpcError::internal(error.message.clone()).body(&id_of(&call.exchange)).into(),
        };
        record(call, rpc::reply(http::StatusCode::OK, body, self.era)).await;
        sent.and_then(|response| result_of(&response, trees))
    }

    /// Runs the workflow of a composite tool, and returns the response as a message.
    async fn run_composite(&self, exchange: &Exchange, composite: &Composite, arguments: &str) -> Bytes {
        let part = composite.part(exchange.audit_id());
        // It is part of a run that cannot be kept.
        let steps = Steps::new(self, part, Reports::Nothing, None, self.trees());
        let result = self.front.workflow_result(composite, Start::New(arguments.into()), &steps).await;
        rpc::result_body(&id_of(exchange), &result).into()
    }

    /// The call as a request of the client, with the name that clients use.
    fn exchange(&self, entry: &Entry, arguments: &str) -> Result<Exchange, Rejection> {
        let mut params = Object::default();
        params.put("\"name\"", &json!(entry.key).to_string());
        params.put("\"arguments\"", arguments);
        if self.era == Era::Modern {
            params.put("\"_meta\"", &self.meta);
        }
        let (id, params) = (self.front.next_number(), params.json());
        let body = format!(r#"{{"jsonrpc":"2.0","id":"call-{id}","method":"tools/call","params":{params}}}"#);
        let mut call = self.origin.call(&entry.key, body.into())?;
        call.hints = Some(entry.hints());
        Ok(call)
    }

    /// Sends the call to its backend, and returns the response as a message. `elicited` is what the client gets if its user must
    /// connect an account first.
    async fn send(
        &self,
        exchange: &Exchange,
        tool: BackendTool<'_>,
        elicited: &mut Option<Elicited>,
    ) -> Result<Bytes, CallError> {
        let origin = tool.origin;
        let internal = |_| failed("the call could not be made");
        let message = exchange.message.as_ref().ok_or(Rejection::Internal).map_err(internal)?;
        let envelope = message.envelope().map_err(internal)?;
        let id = id_of(exchange);
        let backend = self.front.views.backend(&origin.backend);
        let backend =
            backend.ok_or_else(|| failed(format!("backend {} has been removed", origin.backend)))?;
        exchange.backend.set(backend.name.clone()).ok();
        let caller = self.client().caller.clone();
        let request = ClientRequest {
            exchange,
            envelope,
            method: Method::ToolsCall,
            era: self.era,
            id: &id,
            session: self.session.clone(),
            caller,
        };
        let number = self.front.next_number();
        let in_flight = self.session.begin(&id, &backend.name, number, Numbering::Own);
        let measured = Measured::new(&self.front, &request, &backend, Some(&origin.name));
        let route = Route::to(tool);
        let forwarded =
            self.front.forward_when_connected(&request, &backend, &route, &in_flight, self.connect);
        let sent = forwarded.await.map_err(|error| {
            measured.record(None, true);
            let opener = Opener { answer: self.connect, ..Opener::of(&request) };
            *elicited = opener.elicitation(&error, &self.front.name);
            let is_final = matches!(error, BackendError::NotConnected { .. });
            CallError { is_final, ..failed(format!("backend {}: {error}", backend.name)) }
        })?;
        let link = sent.link.clone();
        let mut relay = Relay::new(&self.front, &request, backend, sent, in_flight, measured);
        loop {
            let step = self.waiting(&link, relay.next()).await;
            match step {
                Some(Step::Message(message)) => drop(self.sent.send(Sent::Message(message)).await),
                Some(Step::Response(_, response)) => return Ok(response.into_bytes()),
                Some(Step::NeedsInput(needed)) => {
                    let input = self.ask(needed.json(), None).await?;
                    let provided = relay.provide(&needed, &input).await;
                    provided.map_err(|error| failed(format!("backend {}: {error}", origin.backend)))?;
                }
                None => return Err(failed("the backend sent no response")),
            }
        }
    }

    /// Waits for this. The time in which the backend waits for the client is that of the user.
    async fn waiting<T>(&self, link: &Link, next: impl Future<Output = T>) -> T {
        let mut next = pin!(next);
        loop {
            let is_asked = link.questions.are_open();
            let _waiting = is_asked.then(|| self.input_time.wait());
            tokio::select! {
                done = &mut next => return done,
                () = link.questions.changed(is_asked) => {}
            }
        }
    }

    /// Has a client of 2026-07-28 provide input. Returns the result, as JSON.
    async fn ask(&self, request: &str, state: Option<SessionId>) -> Result<String, CallError> {
        let _waiting = self.input_time.wait();
        let (reply, answer) = oneshot::channel();
        let state = state.unwrap_or_else(SessionId::random);
        self.sent.send(Sent::NeedsInput(NeededInput { request: request.into(), state, reply })).await.ok();
        answer.await.map_err(|_| failed("the client did not provide input"))
    }

    /// Ends the call of the client with this error.
    pub(in crate::front) async fn end(&self, reason: &str) {
        self.sent.send(Sent::Result(Bytes::from(tool_error(reason)).into())).await.ok();
    }

    /// Ends the call of the client with what its user is to do.
    async fn end_with(&self, elicited: Elicited) {
        let sent = match elicited {
            Ok(result) => Sent::Result(Bytes::from(result).into()),
            Err(error) => Sent::Error(error),
        };
        self.sent.send(sent).await.ok();
    }

    /// Whether the client can ask its user.
    pub(in crate::front) fn check_elicitation(&self) -> Result<(), CallError> {
        if self.session.elicits_by_form() {
            return Ok(());
        }
        Err(CallError { is_final: true, ..failed("the client does not support elicitation by forms") })
    }

    /// Has the user answer a question.
    pub(in crate::front) async fn elicit(
        &self,
        question: Question,
        elicitation: Elicitation<'_>,
        trees: &Trees,
    ) -> Result<Answer, CallError> {
        let params = json!({
            "mode": "form", "message": question.message, "requestedSchema": question.schema,
        });
        let result: Value = if self.era == Era::Modern {
            let request = json!({"method": "elicitation/create", "params": params});
            let answer = self.ask(&request.to_string(), elicitation.state).await?;
            trees.tree(&answer).map_err(|error| failed(format!("{ANSWER} {error}")))?
        } else {
            let _waiting = self.input_time.wait();
            let id = json!(elicitation.id);
            let mut withdrawal = Withdrawal { sent: &self.sent, id: id.to_string(), is_answered: false };
            let mut reply = self.session.expect_reply(&id.to_string());
            let request =
                json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params});
            if !elicitation.is_known {
                self.sent.send(Sent::Question(request.to_string().into(), elicitation.state)).await.ok();
            }
            let elsewhere = async {
                match elicitation.runs {
                    Some(runs) => runs.answer(&elicitation.id).await,
                    None => None,
                }
            };
            let message = tokio::select! {
                message = reply.message() => message.ok_or_else(|| failed("the session has ended"))?,
                Some(message) = elsewhere => message,
            };
            withdrawal.is_answered = true;
            result_of(&message, trees)?
        };
        answer_of(result)
    }

    /// What trees of a part of it take.
    pub(in crate::front) fn trees(&self) -> Trees {
        Trees::new(&self.front.budget.part_of(Some(self.origin.holder())))
    }

    fn client(&self) -> MutexGuard<'_, CallingClient> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long calls have waited for input of the user.
    pub(in crate::front) fn input_time(&self) -> Duration {
        self.input_time.total()
    }

    /// Sends progress to a client that wants it.
    pub(in crate::front) fn report_progress(&self, done: usize, of: Option<usize>, message: &str) {
        let Some(token) = self.client().progress.clone() else { return };
        let total = of.map(|of| format!(r#""total":{of},"#)).unwrap_or_default();
        let message = json!(message);
        let params = format!(r#"{{"progressToken":{token},"progress":{done},{total}"message":{message}}}"#);
        let message = format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}"#);
        // A client that reads slowly can do without.
        self.sent.try_send(Sent::Message(Bytes::from(message).into())).ok();
    }
}

/// A question to an older client. If it is dropped without its answer, as its time has passed, the client is sent that it is
/// withdrawn.
struct Withdrawal<'a> {
    sent: &'a mpsc::Sender<Sent>,
    /// Its id, as it is spelled.
    id: String,
    is_answered: bool,
}

impl Drop for Withdrawal<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.sent.try_send(Sent::Message(Bytes::from(cancelled(&self.id)).into())).ok();
        }
    }
}

/// The entry of the audit log is written when the response has been read.
async fn record(call: ObservedCall<'_>, response: http::Response<Body>) {
    call.respond(response).into_body().collect().await.ok();
}

/// The id of a call, as it is spelled.
fn id_of(exchange: &Exchange) -> String {
    exchange.id().map(|id| id.raw().as_str().to_owned()).unwrap_or_default()
}

fn failed(message: impl Into<String>) -> CallError {
    CallError { message: message.into(), is_final: false }
}

/// The name of an answer in errors.
pub(in crate::front) const ANSWER: &str = "the answer of the user";

/// The answer in the result of an elicitation.
pub(in crate::front) fn answer_of(mut result: Value) -> Result<Answer, CallError> {
    match result["action"].as_str() {
        Some("accept") => {
            let content = result.get_mut("content").map(Value::take);
            Ok(Answer::Accept(content.unwrap_or_else(|| json!({}))))
        }
        Some("decline") => Ok(Answer::Decline),
        Some("cancel") => Ok(Answer::Cancel),
        _ => Err(failed("the client's response to the elicitation is malformed")),
    }
}

/// How deep the result of a tool may be nested: as deep as a reader of trees accepts it.
const RESULT_DEPTH: u32 = 127;

/// The result of a response. If it cannot be read, the tool has run.
fn result_of(response: &[u8], trees: &Trees) -> Result<Value, CallError> {
    let unreadable = |error: NoTree| CallError {
        is_final: error == NoTree::TooLarge,
        ..failed(format!("its result {error}"))
    };
    let envelope =
        Envelope::parse_within(response, RESULT_DEPTH).map_err(|_| unreadable(NoTree::Malformed))?;
    match envelope.message() {
        Message::Response { outcome: Outcome::Result(result), .. } => {
            trees.tree(result.as_str()).map_err(unreadable)
        }
        Message::Response { outcome: Outcome::Error(error), .. } => {
            let message = error.get("message").and_then(Raw::as_text);
            Err(failed(message.as_deref().unwrap_or("it has no result")))
        }
        _ => Err(unreadable(NoTree::Malformed)),
    }
}

/// Why a call was rejected. Another attempt may only help against a limit.
fn reason(response: &[u8]) -> CallError {
    let response: Value = serde_json::from_slice(response).unwrap_or_default();
    let error = &response["error"];
    let message = error["message"].as_str().unwrap_or("it is rejected").to_owned();
    CallError { message, is_final: error["data"].get("retryAfterSeconds").is_none() }
}
