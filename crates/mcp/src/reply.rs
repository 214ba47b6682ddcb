//! Responses of the proxy itself, as bytes: the one place where a rejection gets its status, code and message.

use serde_json::{Value, json};

use crate::{Fault, Id, Revision, RevisionFault, connect::input_required};

/// Why a message is not forwarded to the server, or the server's response not to the caller.
///
/// | rejection | HTTP | JSON-RPC | ToolHive's proxyrunner, where it differs |
/// | --- | --- | --- | --- |
/// | `Message` | 400 | -32700, -32600, -32602 | text, except for batches |
/// | `Revision` | 400 | -32020, -32022, -32602 | see [`era`](crate::era) |
/// | `Capability` | 400 | -32021 | |
/// | `Origin` | 403 | -32600 | |
/// | `Denied` | 403 | 403 | |
/// | `WebhookDenied` | 403, 422 | 403 | |
/// | `Session` | 404 | -32001 | |
/// | `Method` | 404 | -32601 | |
/// | `TooLarge` | 413 | -32600 | text |
/// | `RateLimited` | 429 | 429 | |
/// | `Connect` | 200 | -32042, or a result since 2026-07-28 | 401 |
/// | `HiddenTool` | 200 | -32602 | 400 without a body if the caller does not accept JSON |
/// | `Internal` | 500 | -32603 | |
/// | `Unreachable` | 502 | -32603 | no body |
/// | `Unavailable` | 503 | -32603 | text |
/// | `Timeout` | 504 | -32000 | text, if it is not in a stream |
/// | `SlowReader` | 503 | -32000 | events are lost |
///
/// In a stream that has started, status and headers have been sent, and the body is one more event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rejection {
    /// The body is not a valid message.
    Message(Fault),
    /// Its revision is not supported.
    Revision(RevisionFault),
    /// The server needs a capability that the client does not declare.
    Capability {
        /// What is needed, as capabilities are declared.
        required: Value,
    },
    /// Its `Origin` is not allowed.
    Origin,
    /// A policy does not allow it.
    Denied,
    /// A policy of a virtual server does not permit it: to call, to read, or to get a prompt.
    DeniedBy {
        /// What was denied.
        what: &'static str,
    },
    /// A webhook does not allow it.
    WebhookDenied {
        /// 403, or the 422 that a mutating webhook may return.
        status: u16,
        /// The message of the error.
        message: String,
    },
    /// Its session is unknown, or has ended.
    Session,
    /// There is no such method.
    Method,
    /// The body is larger than the limit.
    TooLarge,
    /// There were too many requests.
    RateLimited {
        /// When to retry.
        retry_after_seconds: u64,
    },
    /// The tool is hidden, so for callers it does not exist.
    HiddenTool,
    /// The user must first connect an account, on a page that the client opens (MCP, elicitation in URL mode).
    Connect {
        /// What the user is to do.
        message: String,
        /// The page.
        url: String,
        /// The id of the elicitation. Since 2026-07-28 there is none: it is input that a result needs.
        id: Option<String>,
    },
    /// An internal error.
    Internal,
    /// The server cannot be reached.
    Unreachable,
    /// A dependency is unavailable.
    Unavailable(&'static str),
    /// The server did not respond in time.
    Timeout,
    /// The client did not read the stream of the response in time.
    SlowReader,
}

impl Rejection {
    /// The status of the HTTP response.
    pub fn status(&self) -> u16 {
        match self {
            Self::HiddenTool | Self::Connect { .. } => 200,
            Self::Message(_) | Self::Revision(_) | Self::Capability { .. } => 400,
            Self::Origin | Self::Denied | Self::DeniedBy { .. } => 403,
            Self::WebhookDenied { status, .. } => *status,
            Self::Session | Self::Method => 404,
            Self::TooLarge => 413,
            Self::RateLimited { .. } => 429,
            Self::Internal => 500,
            Self::Unreachable => 502,
            Self::Unavailable(_) | Self::SlowReader => 503,
            Self::Timeout => 504,
        }
    }

    /// The code of the JSON-RPC error.
    pub fn code(&self) -> i32 {
        match self {
            Self::Message(fault) => fault_code(fault),
            Self::Revision(RevisionFault::Header { .. } | RevisionFault::Mismatch { .. }) => -32020,
            Self::Capability { .. } => -32021,
            Self::Revision(RevisionFault::Unsupported { .. }) => -32022,
            Self::Revision(RevisionFault::Params { .. }) | Self::HiddenTool => -32602,
            Self::Origin | Self::TooLarge => -32600,
            // HTTP's numbers, where JSON-RPC has none: they are outside of the range it reserves.
            Self::Denied | Self::DeniedBy { .. } | Self::WebhookDenied { .. } => 403,
            Self::RateLimited { .. } => 429,
            Self::Session => -32001,
            Self::Connect { .. } => -32042,
            Self::Method => -32601,
            Self::Internal | Self::Unreachable | Self::Unavailable(_) => -32603,
            Self::Timeout | Self::SlowReader => -32000,
        }
    }

    /// The message of the JSON-RPC error.
    pub fn message(&self) -> String {
        match self {
            Self::Message(fault) => fault.to_string(),
            Self::Revision(fault) => fault.to_string(),
            Self::Capability { .. } => "missing required client capability".to_owned(),
            Self::Origin => "Origin not allowed".to_owned(),
            Self::Denied => "Unauthorized".to_owned(),
            Self::DeniedBy { what } => format!("{what} denied by authorization policy"),
            Self::WebhookDenied { message, .. } | Self::Connect { message, .. } => message.clone(),
            Self::Session => "Session not found".to_owned(),
            Self::Method => "Method not found".to_owned(),
            Self::TooLarge => "the request body is too large".to_owned(),
            Self::RateLimited { .. } => "Rate limit exceeded".to_owned(),
            Self::HiddenTool => "tool not found".to_owned(),
            Self::Internal => "internal error".to_owned(),
            Self::Unreachable => "the MCP server cannot be reached".to_owned(),
            Self::Unavailable(what) => format!("{what} unavailable"),
            Self::Timeout => "Timeout".to_owned(),
            Self::SlowReader => "the client reads too slowly, and has lost messages".to_owned(),
        }
    }

    /// The data of the JSON-RPC error.
    pub fn data(&self) -> Option<Value> {
        match self {
            Self::Revision(RevisionFault::Unsupported { requested }) => {
                Some(json!({"supported": [Revision::V2026_07_28.name()], "requested": requested}))
            }
            Self::Revision(RevisionFault::Mismatch { value, body, .. }) => {
                Some(json!({"header": value, "body": body}))
            }
            Self::Capability { required } => Some(json!({"requiredCapabilities": required})),
            Self::Connect { message, url, id: Some(id) } => {
                let elicitation = json!({"mode": "url", "elicitationId": id, "url": url, "message": message});
                Some(json!({"elicitations": [elicitation]}))
            }
            Self::RateLimited { retry_after_seconds } => {
                Some(json!({"retryAfterSeconds": retry_after_seconds}))
            }
            _ => None,
        }
    }

    /// The result in place of an error, for a client of 2026-07-28 that is to provide input.
    pub fn result(&self) -> Option<Value> {
        match self {
            Self::Connect { message, url, id: None } => Some(input_required(message, url)),
            _ => None,
        }
    }

    /// The error, or the result in place of it, as a message. The id is the one of the request as it was spelled; without one it is omitted,
    /// because MCP has no null ids.
    pub fn body(&self, id: Option<Id<'_>>) -> Vec<u8> {
        if let Some(result) = self.result() {
            return reply(id, "result", &result.to_string());
        }
        let mut error = json!({"code": self.code(), "message": self.message()});
        if let Some(data) = self.data() {
            error["data"] = data;
        }
        reply(id, "error", &error.to_string())
    }
}

impl From<Fault> for Rejection {
    fn from(fault: Fault) -> Self {
        Self::Message(fault)
    }
}

impl From<RevisionFault> for Rejection {
    fn from(fault: RevisionFault) -> Self {
        Self::Revision(fault)
    }
}

/// The result `{}` as a message, for requests that the proxy responds to.
pub fn empty_result(id: Id<'_>) -> Vec<u8> {
    reply(Some(id), "result", "{}")
}

fn reply(id: Option<Id<'_>>, key: &str, value: &str) -> Vec<u8> {
    let id = id.map(|id| format!("\"id\":{},", id.raw().as_str())).unwrap_or_default();
    format!("{{\"jsonrpc\":\"2.0\",{id}\"{key}\":{value}}}").into_bytes()
}

fn fault_code(fault: &Fault) -> i32 {
    const PARSE_ERROR: i32 = -32700;
    const INVALID_REQUEST: i32 = -32600;
    const INVALID_PARAMS: i32 = -32602;
    match fault {
        Fault::NotUtf8 { .. } | Fault::ByteOrderMark | Fault::NotJson { .. } | Fault::TooDeep { .. } => {
            PARSE_ERROR
        }
        Fault::Duplicate(field)
        | Fault::Lookalike(field)
        | Fault::Ambiguous(field)
        | Fault::WrongType { field, .. }
            if field.starts_with("params") =>
        {
            INVALID_PARAMS
        }
        _ => INVALID_REQUEST,
    }
}
