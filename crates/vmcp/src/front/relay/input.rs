//! Input that a backend needs of the client before it can respond.
//!
//! Since 2026-07-28 a backend responds with `input_required`, and gets the request again with the input. Before, it sends
//! requests of its own while it processes one. A client of the same era gets either as it is; for another one, the virtual
//! server translates.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use skep_gateway::body::CountedBytes;
use skep_mcp::{Envelope, Fault, Kind, Message, Method, Object, Outcome, Raw};

use crate::{
    backend::{BackendError, ResultType},
    front::{from_backend::capability, rpc},
    limits,
    session::{ClientSession, Reply},
};

/// The key of the only input that a request of an older backend needs.
const ONLY: &str = "1";

/// A result that needs further input.
pub(super) struct InputRequired<'a> {
    /// The requests for the client, by their keys.
    requests: Vec<(Raw<'a>, Raw<'a>)>,
    state: Option<Raw<'a>>,
}

impl<'a> InputRequired<'a> {
    /// The input that this result needs, if it does.
    pub(super) fn of(result: Raw<'a>) -> Option<Result<Self, BackendError>> {
        matches!(ResultType::of(result), Ok(ResultType::InputRequired)).then(|| {
            let requests = result.get("inputRequests").map(Raw::entries).transpose();
            let requests = requests.map_err(|_| BackendError::input("inputRequests is malformed"))?;
            let requests =
                requests.unwrap_or_default().into_iter().map(|(key, request)| (key.raw(), request));
            Ok(Self { requests: requests.collect(), state: result.get("requestState") })
        })
    }

    /// The requests as an older client gets them, and what waits for its responses.
    pub(super) fn requests_of_2025(
        &self,
        session: &Arc<ClientSession>,
        prefix: &str,
    ) -> Result<(Vec<Bytes>, PendingInput), BackendError> {
        if self.requests.len() > limits::INPUTS {
            return Err(BackendError::input("it needs too many inputs at once"));
        }
        let mut messages = Vec::new();
        let mut replies = Vec::new();
        for (index, (key, request)) in self.requests.iter().enumerate() {
            let method = request.get("method").and_then(Raw::as_text).unwrap_or_default();
            let needed = capability(Method::named(&method));
            if !needed.is_some_and(|capability| session.can(capability)) {
                return Err(BackendError::input(format!(
                    "it needs {method} of the client, which does not support it"
                )));
            }
            let id = Value::from(format!("{prefix}-{index}")).to_string();
            let mut message = Object::default();
            message.put("\"jsonrpc\"", "\"2.0\"");
            message.put("\"id\"", &id);
            for field in ["method", "params"] {
                if let Some(value) = request.get(field) {
                    message.put(&Value::from(field).to_string(), value.as_str());
                }
            }
            replies.push((key.as_str().into(), session.expect_reply(&id)));
            messages.push(message.json().into());
        }
        Ok((messages, PendingInput { replies, state: self.state.map(|state| state.as_str().into()) }))
    }
}

/// Input that an older client is providing.
pub(super) struct PendingInput {
    replies: Vec<(Box<str>, Reply)>,
    state: Option<Box<str>>,
}

/// What is to be added to a request that is sent again.
pub(super) struct Input {
    /// The results of the client by their keys, as JSON.
    responses: String,
    state: Option<Box<str>>,
}

impl PendingInput {
    /// Waits for all of it.
    pub(super) async fn received(&mut self) -> Result<Input, BackendError> {
        let mut responses = Object::default();
        for (key, reply) in &mut self.replies {
            let message =
                reply.message().await.ok_or_else(|| BackendError::input("the session has ended"))?;
            let envelope = Envelope::parse(&message)
                .map_err(|_| BackendError::input("the client's response is malformed"))?;
            match envelope.message() {
                Message::Response { outcome: Outcome::Result(result), .. } => {
                    responses.put(key, result.as_str())
                }
                _ => {
                    return Err(BackendError::input(
                        "the client responded with an error to a request for input",
                    ));
                }
            }
        }
        Ok(Input { responses: responses.json(), state: self.state.clone() })
    }
}

impl Input {
    /// The request, with the input and with another id.
    pub(super) fn added_to(&self, request: &[u8], id: &str) -> Result<Bytes, Fault> {
        let envelope = Envelope::parse(request)?;
        let mut params = Object::default();
        for (key, value) in envelope.params().map(Raw::entries).transpose()?.unwrap_or_default() {
            if !["inputResponses", "requestState"].contains(&&*key.decoded()) {
                params.put(key.raw().as_str(), value.as_str());
            }
        }
        params.put("\"inputResponses\"", &self.responses);
        if let Some(state) = &self.state {
            params.put("\"requestState\"", state);
        }
        let method = Value::from(envelope.method_name().unwrap_or_default());
        Ok(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{}}}"#, params.json()).into())
    }
}

/// A request of an older backend, which a client of 2026-07-28 gets as the result of its own.
pub(in crate::front) struct BackendRequest {
    /// Its id at the backend, as it is spelled.
    id: Box<str>,
    /// Its method and parameters, as JSON.
    json: Box<str>,
    /// The share of its message, which counts for as long as it waits for the client.
    _memory: CountedBytes,
}

impl BackendRequest {
    /// The request in this message. `None`: it is not one.
    pub(super) fn new(envelope: &Envelope<'_>, message: &CountedBytes) -> Option<Self> {
        let mut object = Object::default();
        object.put("\"method\"", &Value::from(envelope.method_name()?).to_string());
        if let Some(params) = envelope.params() {
            object.put("\"params\"", params.as_str());
        }
        let id = envelope.id()?.raw().as_str().into();
        Some(Self { id, json: object.json().into(), _memory: message.remade(Bytes::new()) })
    }

    /// Its method and parameters, as JSON.
    pub(in crate::front) fn json(&self) -> &str {
        &self.json
    }

    /// The result that needs this input. `state` is what the request must have when it is sent again.
    pub(super) fn result(&self, state: &str, server: &str) -> String {
        needing(&self.json, state, server)
    }

    /// The response for the backend with this result.
    pub(super) fn answer(&self, result: &str) -> Bytes {
        rpc::result_body(&self.id, result).into()
    }

    /// The response for the backend, if the request of the client has it.
    pub(super) fn response(&self, params: Option<Raw<'_>>) -> Option<Bytes> {
        given(params).map(|given| self.answer(given.as_str()))
    }
}

/// A result that needs the input of one request, by its method and parameters.
pub(in crate::front) fn needing(request: &str, state: &str, server: &str) -> String {
    let mut object = Object::default();
    object.put("\"inputRequests\"", &format!("{{\"{ONLY}\":{request}}}"));
    object.put("\"requestState\"", &Value::from(state).to_string());
    rpc::needing_input(&mut object, server, Object::default());
    object.json()
}

/// The input that a request has, which is sent again.
pub(in crate::front) fn given(params: Option<Raw<'_>>) -> Option<Raw<'_>> {
    params?.get("inputResponses")?.get(ONLY).filter(|given| given.kind() == Kind::Object)
}

#[cfg(test)]
mod tests {
    use skep_gateway::body::Budget;

    use super::*;

    #[test]
    fn a_request_is_sent_again_with_the_input_and_the_state_as_they_are_spelled() {
        let request = br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","arguments":{"n":1e2},"requestState":"old"}}"#;
        let input =
            Input { responses: r#"{"k":{"action":"accept"}}"#.into(), state: Some(r#""new""#.into()) };
        assert_eq!(
            input.added_to(request, "\"7-1\"").unwrap(),
            r#"{"jsonrpc":"2.0","id":"7-1","method":"tools/call","params":{"name":"a","arguments":{"n":1e2},"inputResponses":{"k":{"action":"accept"}},"requestState":"new"}}"#
        );
    }

    #[test]
    fn a_request_of_an_older_backend_becomes_a_result_and_its_input_the_response() {
        let request =
            br#"{"jsonrpc":"2.0","id":"e1","method":"elicitation/create","params":{"message":"?"}}"#;
        let envelope = Envelope::parse(request).unwrap();
        let budget = Budget::new(64 << 10);
        let is_free = || budget.share().grow(80 << 10).is_ok();
        let mut share = budget.share();
        share.grow(40 << 10).unwrap();
        let request = BackendRequest::new(&envelope, &CountedBytes::new(Bytes::new(), share)).unwrap();
        assert!(!is_free(), "it counts while it waits");
        let result: Value = serde_json::from_str(&request.result("s1", "kit")).unwrap();
        assert_eq!(result["resultType"], "input_required");
        assert_eq!(result["inputRequests"]["1"]["method"], "elicitation/create");
        assert_eq!(result["requestState"], "s1");
        let retried = Raw::spelled(r#"{"inputResponses":{"1":{"action":"decline"}},"requestState":"s1"}"#);
        assert_eq!(
            request.response(retried).unwrap(),
            r#"{"jsonrpc":"2.0","id":"e1","result":{"action":"decline"}}"#
        );
        assert_eq!(request.response(Raw::spelled(r#"{"inputResponses":{}}"#)), None);
        drop(request);
        assert!(is_free());
    }
}
