//! Responses of JSON-RPC, in the form of the client's revision.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::json;
use skep_gateway::http::{Body, response};
use skep_mcp::{Era, Object};

use crate::backend::BackendError;

/// Why a request has no result.
#[derive(Debug)]
pub(super) struct RpcError {
    pub(super) code: i64,
    pub(super) message: String,
    /// JSON.
    pub(super) data: Option<Box<str>>,
}

pub(super) const INVALID_PARAMS: i64 = -32602;
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
/// Why a call cannot go on.
pub(super) const UNKNOWN_STATE: &str =
    "params.requestState is unknown, or the call has been waiting for too long";
/// The same for a request with the state of another one.
pub(super) const OTHER_CALL: &str =
    "params.requestState is that of another call: send it with the parameters of that call";
const INTERNAL: i64 = -32603;
/// The codes of 2026-07-28 for requests that can only be processed in another form: between them is that for a capability
/// that the client does not have.
const HEADER_MISMATCH: i64 = -32020;
const UNSUPPORTED_VERSION: i64 = -32022;

impl RpcError {
    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self::new(INTERNAL, message)
    }

    /// The error of a backend, which is named.
    pub(super) fn of_backend(backend: &str, error: &BackendError) -> Self {
        match error {
            BackendError::Rpc { code, message, data } => {
                Self { data: data.clone(), ..Self::new(*code, message.clone()) }
            }
            error => Self::internal(format!("backend {backend}: {error}")),
        }
    }

    /// The status of HTTP. Before 2026-07-28 an error of JSON-RPC has none.
    pub(super) fn status(&self, era: Era) -> StatusCode {
        match (era, self.code) {
            (Era::Modern, INVALID_PARAMS | UNSUPPORTED_VERSION..=HEADER_MISMATCH) => StatusCode::BAD_REQUEST,
            (Era::Modern, METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
            _ => StatusCode::OK,
        }
    }

    pub(super) fn body(&self, id: &str) -> String {
        let mut error = Object::default();
        error.put("\"code\"", &self.code.to_string());
        error.put("\"message\"", &json!(self.message).to_string());
        if let Some(data) = &self.data {
            error.put("\"data\"", data);
        }
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{}}}"#, error.json())
    }

    pub(super) fn response(&self, id: &str, era: Era) -> Response<Body> {
        reply(self.status(era), self.body(id), era)
    }
}

/// The message with this result.
pub(super) fn result_body(id: &str, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

/// The response with this result.
pub(super) fn result(id: &str, result: &str, era: Era) -> Response<Body> {
    reply(StatusCode::OK, result_body(id, result), era)
}

pub(super) fn reply(status: StatusCode, body: impl Into<Bytes>, era: Era) -> Response<Body> {
    let mut response = response::json(status, body);
    if era == Era::Modern {
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    }
    response
}

/// What a result is about: since 2026-07-28 some may be cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cacheable {
    Yes,
    No,
}

/// Adds what a result of 2026-07-28 has.
pub(super) fn complete(result: &mut Object, server: &str, meta: Object, cacheable: Cacheable) {
    result.put("\"resultType\"", "\"complete\"");
    if cacheable == Cacheable::Yes {
        // What one caller sees is not for others, and may change at any time.
        result.put("\"ttlMs\"", "0");
        result.put("\"cacheScope\"", "\"private\"");
    }
    put_meta(result, server, meta);
}

/// Adds what a result of 2026-07-28 has that needs input of the client.
pub(super) fn needing_input(result: &mut Object, server: &str, meta: Object) {
    result.put("\"resultType\"", "\"input_required\"");
    put_meta(result, server, meta);
}

fn put_meta(result: &mut Object, server: &str, mut meta: Object) {
    let info = json!({"name": server, "version": crate::backend::VERSION}).to_string();
    meta.put("\"io.modelcontextprotocol/serverInfo\"", &info);
    result.put("\"_meta\"", &meta.json());
}
