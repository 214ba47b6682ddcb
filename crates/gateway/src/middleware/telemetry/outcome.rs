//! How a request ended. A call may fail although the HTTP status is 200.

use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use skep_mcp::{Envelope, Message, Outcome, sse};

use super::names::OTHER;
use crate::{http::Ended, limits};

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::middleware) enum Failure {
    /// The response is an HTTP error.
    Http(StatusCode),
    /// The response is a JSON-RPC error, with this code.
    Rpc(i64),
    /// The tool reported an error.
    Tool,
    /// The client did not wait for the response.
    Abandoned,
}

impl Failure {
    /// OpenTelemetry's `error.type`. An error of the client is none.
    pub(super) fn error_type(self) -> Option<String> {
        match self {
            Self::Http(status) if status.is_server_error() => Some(status.as_str().to_owned()),
            Self::Http(_) => None,
            // Other codes are the server's own, and unbounded in number.
            Self::Rpc(code) if (-32768..=-32000).contains(&code) => Some(code.to_string()),
            Self::Rpc(_) => Some(OTHER.to_owned()),
            Self::Tool => Some("tool_error".to_owned()),
            Self::Abandoned => Some("cancelled".to_owned()),
        }
    }

    /// Whether the names in the request may be made up.
    pub(super) fn is_doubtful(self) -> bool {
        match self {
            Self::Http(status) => !status.is_server_error(),
            Self::Rpc(_) | Self::Abandoned => true,
            Self::Tool => false,
        }
    }
}

/// The failure that an HTTP status means.
pub(super) fn failed(status: StatusCode) -> Option<Failure> {
    (status.is_client_error() || status.is_server_error()).then_some(Failure::Http(status))
}

/// The failure, if there is one, as far as the start of the response shows it.
pub(in crate::middleware) fn failure(end: &Ended) -> Option<Failure> {
    if let Some(failure) = failed(end.status) {
        return Some(failure);
    }
    if end.prefix.first() == Some(&b'{') {
        let whole = end.bytes == end.prefix.len() as u64;
        return if whole { error_in(&end.prefix) } else { None };
    }
    // A stream: one of its events is the response.
    let mut decoder = sse::Decoder::new(limits::PARSED_PREFIX);
    decoder.feed(&end.prefix);
    while let Ok(Some(frame)) = decoder.frame() {
        let sse::Frame::Event(event) = &frame else { continue };
        if let Some(failure) = event.data().and_then(|data: &Bytes| error_in(data)) {
            return Some(failure);
        }
    }
    None
}

fn error_in(message: &[u8]) -> Option<Failure> {
    #[derive(Deserialize)]
    struct Error {
        code: i64,
    }
    #[derive(Deserialize)]
    struct ToolResult {
        #[serde(default, rename = "isError")]
        is_error: bool,
    }
    let envelope = Envelope::parse(message).ok()?;
    let Message::Response { outcome, .. } = envelope.message() else { return None };
    match outcome {
        Outcome::Error(error) => {
            let error = serde_json::from_str::<Error>(error.as_str()).ok();
            Some(Failure::Rpc(error.map_or(0, |error| error.code)))
        }
        Outcome::Result(result) => {
            let result = serde_json::from_str::<ToolResult>(result.as_str()).ok()?;
            result.is_error.then_some(Failure::Tool)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16, body: &str) -> Option<Failure> {
        let prefix = body.as_bytes().to_vec();
        failure(&Ended { status: StatusCode::from_u16(status).unwrap(), bytes: prefix.len() as u64, prefix })
    }

    #[test]
    fn failures_are_detected_whatever_the_http_status_is() {
        let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"m"}}"#;
        let result = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;
        let failed = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":true}}"#;
        let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#;
        assert_eq!(of(200, result), None);
        assert_eq!(of(200, error), Some(Failure::Rpc(-32602)));
        assert_eq!(of(200, failed), Some(Failure::Tool));
        assert_eq!(of(200, &format!("data: {progress}\n\ndata: {error}\n\n")), Some(Failure::Rpc(-32602)));
        assert_eq!(of(200, &format!("data: {progress}\n\ndata: {result}\n\n")), None);
        assert_eq!(of(403, error), Some(Failure::Http(StatusCode::FORBIDDEN)));
        assert_eq!(of(202, ""), None);
        assert_eq!(of(200, "what is this"), None);
    }

    #[test]
    fn an_error_type_is_one_of_few() {
        let types = [
            Failure::Http(StatusCode::FORBIDDEN),
            Failure::Http(StatusCode::BAD_GATEWAY),
            Failure::Rpc(-32603),
            Failure::Rpc(123_456_789),
            Failure::Tool,
        ]
        .map(Failure::error_type);
        let expected = [None, Some("502"), Some("-32603"), Some(OTHER), Some("tool_error")];
        assert_eq!(types, expected.map(|text| text.map(str::to_owned)));
    }
}
