//! The steps of a workflow, as calls of the client that called the composite tool.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http_body_util::BodyExt;
use serde_json::{Map, Value, json};
use skep_gateway::{http::Body, message::Exchange};
use skep_mcp::{Era, List, Method, Raw, Rejection};
use skep_workflow::{Answer, CallError, Event, Host, Question};
use tokio::sync::{mpsc, oneshot};

use super::{NeededInput, Sent};
use crate::{
    backend::{Backend, Caller, Link},
    catalog::{Catalog, Entry},
    front::{
        ClientRequest, Front, Sender,
        call::Route,
        measured::Measured,
        relay::{Relay, Step},
        rpc,
    },
    session::ClientSession,
};

/// What calls the tools of one run.
pub(super) struct Steps {
    front: Arc<Front>,
    /// The request of the client, whose copies the calls are.
    origin: Exchange,
    era: Era,
    session: Arc<ClientSession>,
    pub(super) caller: Arc<Mutex<Caller>>,
    /// What the client sees.
    catalog: Arc<Catalog>,
    sent: mpsc::Sender<Sent>,
    /// What the client wants progress for, as it is spelled.
    progress: Option<Box<str>>,
    /// What each request of 2026-07-28 has, as JSON.
    meta: Value,
}

impl Steps {
    pub(super) fn new(
        front: Arc<Front>,
        request: &ClientRequest<'_>,
        catalog: Arc<Catalog>,
        sent: mpsc::Sender<Sent>,
    ) -> Result<Self, Rejection> {
        let target = request.envelope.target().map(|target| target.name().into_owned()).unwrap_or_default();
        let meta = request.envelope.params().and_then(|params| params.get("_meta"));
        let progress = meta.and_then(|meta| meta.get("progressToken")).map(|token| token.as_str().into());
        let meta: Map<String, Value> =
            meta.and_then(|meta| serde_json::from_str(meta.as_str()).ok()).unwrap_or_default();
        let reserved = meta.into_iter().filter(|(name, _)| name.starts_with("io.modelcontextprotocol/"));
        Ok(Self {
            front,
            origin: request.exchange.call(&target, request.exchange.body.clone())?,
            era: request.era,
            session: request.session.clone(),
            caller: Arc::new(Mutex::new(request.caller.clone())),
            catalog,
            sent,
            progress,
            meta: Value::Object(reserved.collect()),
        })
    }

    fn tool(&self, name: &str) -> Option<&Entry> {
        self.catalog.table(List::Tools).step(name)
    }

    /// The call as a request of the client, with the name that clients use.
    fn exchange(
        &self,
        entry: &Entry,
        id: &str,
        arguments: Map<String, Value>,
    ) -> Result<Exchange, Rejection> {
        let mut params = json!({"name": entry.key, "arguments": arguments});
        if self.era == Era::Modern {
            params["_meta"] = self.meta.clone();
        }
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        self.origin.call(&entry.key, body.to_string().into())
    }

    /// Sends the call to its backend, and returns the response as a message.
    async fn send(&self, exchange: &Exchange, entry: &Entry) -> Result<Bytes, CallError> {
        let internal = |_| failed("the call could not be made");
        let message = exchange.message.as_ref().ok_or(Rejection::Internal).map_err(internal)?;
        let envelope = message.envelope().map_err(internal)?;
        let id = envelope.id().map(|id| id.raw().as_str().to_owned()).unwrap_or_default();
        let backend = self.front.views.backend(&entry.backend);
        let backend = backend.ok_or_else(|| failed(format!("backend {} has been removed", entry.backend)))?;
        exchange.backend.set(backend.name.clone()).ok();
        let caller = self.caller.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let request = ClientRequest {
            exchange,
            envelope,
            method: Method::ToolsCall,
            era: self.era,
            id: &id,
            session: self.session.clone(),
            caller: caller.clone(),
            sender: Sender::Workflow,
        };
        let in_flight = self.session.begin(&id, &backend.name, self.front.next_number());
        let measured = Measured::new(&self.front, &request, &backend, Some(&entry.original));
        let route = Route::of(entry, None);
        let number = in_flight.number;
        let sent = self.front.forward(&request, &backend, &route, number).await.map_err(|error| {
            measured.record(None, true);
            failed(format!("backend {}: {error}", backend.name))
        })?;
        let link = sent.link.clone();
        let mut running = Running { backend: backend.clone(), link, caller, number, has_ended: false };
        let mut relay = Relay::new(&self.front, &request, backend, sent, in_flight, measured);
        loop {
            match relay.next().await {
                Some(Step::Message(message)) => drop(self.sent.send(Sent::Message(message)).await),
                Some(Step::Response(_, response)) => {
                    running.has_ended = true;
                    return Ok(response);
                }
                Some(Step::NeedsInput(needed)) => {
                    let input = self.ask(needed.json()).await?;
                    let provided = relay.provide(&needed, &input).await;
                    provided.map_err(|error| failed(format!("backend {}: {error}", entry.backend)))?;
                }
                None => return Err(failed("the backend sent no response")),
            }
        }
    }

    /// Has a client of 2026-07-28 provide input. Returns the result, as JSON.
    async fn ask(&self, request: &str) -> Result<String, CallError> {
        let (reply, answer) = oneshot::channel();
        self.sent.send(Sent::NeedsInput(NeededInput { request: request.into(), reply })).await.ok();
        answer.await.map_err(|_| failed("the client did not provide input"))
    }
}

impl Host for Steps {
    async fn call(&self, tool: &str, arguments: Map<String, Value>) -> Result<Value, CallError> {
        let entry = self.tool(tool).ok_or_else(|| failed(format!("no backend has the tool {tool:?}")))?;
        let id = format!("step-{}", self.front.next_number());
        let exchange = self.exchange(entry, &id, arguments);
        let mut exchange =
            exchange.map_err(|error| failed(format!("the call could not be made: {error:?}")))?;
        let chain = &self.front.chain;
        let (response, outcome) = match chain.call(&mut exchange).await {
            Err(rejection) => {
                let (head, body) = (*rejection).into_parts();
                let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
                let reason = reason(&body);
                (http::Response::from_parts(head, Body::Whole(body)), Err(reason))
            }
            Ok(()) => {
                let sent = self.send(&exchange, entry).await;
                let body = match &sent {
                    Ok(body) => body.clone(),
                    Err(error) => rpc::RpcError::internal(error.message.clone()).body(&id).into(),
                };
                let response = rpc::reply(http::StatusCode::OK, body, self.era);
                (response, sent.and_then(|response| result_of(&response)))
            }
        };
        // The entry is written when the response has been read.
        chain.audited(&exchange, response).into_body().collect().await.ok();
        outcome
    }

    async fn elicit(&self, question: Question) -> Result<Answer, CallError> {
        if !self.session.can("elicitation") {
            return Err(CallError { is_final: true, ..failed("the client does not support elicitation") });
        }
        let params = json!({
            "mode": "form", "message": question.message, "requestedSchema": question.schema,
        });
        let result: Value = if self.era == Era::Modern {
            let request = json!({"method": "elicitation/create", "params": params});
            serde_json::from_str(&self.ask(&request.to_string()).await?).unwrap_or_default()
        } else {
            let id = json!(format!("workflow-{}", self.front.next_number()));
            let mut reply = self.session.expect_reply(&id.to_string());
            let request =
                json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params});
            self.sent.send(Sent::Message(request.to_string().into())).await.ok();
            let message = reply.message().await.ok_or_else(|| failed("the session has ended"))?;
            result_of(&message)?
        };
        match result["action"].as_str() {
            Some("accept") => Ok(Answer::Accept(result.get("content").cloned().unwrap_or_else(|| json!({})))),
            Some("decline") => Ok(Answer::Decline),
            Some("cancel") => Ok(Answer::Cancel),
            _ => Err(failed("the client's response to the elicitation is malformed")),
        }
    }

    fn input_schema(&self, tool: &str) -> Option<Value> {
        let tool = Raw::spelled(self.tool(tool)?.json())?;
        serde_json::from_str(tool.get("inputSchema")?.as_str()).ok()
    }

    fn record(&self, event: Event<'_>) {
        let (Some(token), Event::Ended { step, status, done, of, .. }) = (&self.progress, event) else {
            return;
        };
        let message = json!(format!("{step} {}", status.as_str()));
        let params =
            format!(r#"{{"progressToken":{token},"progress":{done},"total":{of},"message":{message}}}"#);
        let message = format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}"#);
        // A client that reads slowly can do without.
        self.sent.try_send(Sent::Message(message.into())).ok();
    }
}

/// A call in flight. If it is dropped, a backend of the older era is sent that it is cancelled; another one sees that its
/// response is not read.
struct Running {
    backend: Arc<Backend>,
    link: Arc<Link>,
    caller: Caller,
    number: u64,
    has_ended: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.has_ended || self.link.revision.era() == Era::Modern {
            return;
        }
        let (backend, link, caller) = (self.backend.clone(), self.link.clone(), self.caller.clone());
        let params = json!({"requestId": self.number});
        let body = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        // Without a runtime, the process ends.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { backend.notify(&link, &caller, body.to_string().into()).await });
        }
    }
}

fn failed(message: impl Into<String>) -> CallError {
    CallError { message: message.into(), is_final: false }
}

/// The result of a response.
fn result_of(response: &[u8]) -> Result<Value, CallError> {
    let mut response: Value = serde_json::from_slice(response).map_err(|_| failed("it is malformed"))?;
    match response.get_mut("result").map(Value::take) {
        Some(result) => Ok(result),
        None => Err(failed(response["error"]["message"].as_str().unwrap_or("it has no result"))),
    }
}

/// Why a call was rejected. Another attempt may only help against a limit.
fn reason(response: &[u8]) -> CallError {
    let response: Value = serde_json::from_slice(response).unwrap_or_default();
    let error = &response["error"];
    let message = error["message"].as_str().unwrap_or("it is rejected").to_owned();
    CallError { message, is_final: error["data"].get("retryAfterSeconds").is_none() }
}
