//! How a request ended. A call may fail although the HTTP status is 200.

use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use skep_mcp::{Envelope, Message, Outcome, sse};

use super::names::OTHER;
use crate::http::Ended;

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
    in_messages(end, |message| match message {
        Part::Whole(message) => failure_in(message),
        Part::Beginning(message) => beginning_of_error(message).map(|error| Failure::Rpc(error.code)),
    })
}

/// The error of a response, if it is one, as far as its start shows it.
pub(in crate::middleware) fn rpc_error(end: &Ended) -> Option<RpcError> {
    in_messages(end, |message| match message {
        Part::Whole(message) => error_in(message),
        Part::Beginning(message) => beginning_of_error(message),
    })
}

/// An error of JSON-RPC.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(in crate::middleware) struct RpcError {
    pub(in crate::middleware) code: i64,
    pub(in crate::middleware) message: String,
}

/// A message, as far as the start of a response has it.
enum Part<'a> {
    Whole(&'a [u8]),
    Beginning(&'a [u8]),
}

/// What is found in the first message of a response that has it.
fn in_messages<T>(end: &Ended, find: impl Fn(Part<'_>) -> Option<T>) -> Option<T> {
    let is_whole = end.bytes == end.prefix.len() as u64;
    if end.prefix.trim_ascii_start().first() == Some(&b'{') {
        return find(if is_whole { Part::Whole(&end.prefix) } else { Part::Beginning(&end.prefix) });
    }
    // A stream: one of its events is the response.
    let mut decoder = sse::Decoder::new(end.prefix.len());
    decoder.feed(&end.prefix);
    while let Ok(Some(frame)) = decoder.frame() {
        let sse::Frame::Event(event) = &frame else { continue };
        if let Some(found) = event.data().and_then(|data: &Bytes| find(Part::Whole(data))) {
            return Some(found);
        }
    }
    let rest = decoder.rest();
    let data =
        rest.split(|byte| matches!(byte, b'\n' | b'\r')).find_map(|line| line.strip_prefix(b"data:"))?;
    find(Part::Beginning(data))
}

fn error_in(message: &[u8]) -> Option<RpcError> {
    let envelope = Envelope::parse(message).ok()?;
    let Message::Response { outcome: Outcome::Error(error), .. } = envelope.message() else { return None };
    Some(serde_json::from_str(error.as_str()).unwrap_or_default())
}

/// The error in a message whose end is missing: it may have very long data. Without its code, that is 0.
fn beginning_of_error(message: &[u8]) -> Option<RpcError> {
    let error = member(message, b"error").filter(|error| error.first() == Some(&b'{'))?;
    let code = member(error, b"code").unwrap_or_default();
    let length = code.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'-').count();
    let code = std::str::from_utf8(&code[..length]).ok().and_then(|code| code.parse().ok());
    Some(RpcError { code: code.unwrap_or_default(), message: String::new() })
}

/// From the value of this member on, in the object that the text begins with.
fn member<'a>(text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (mut depth, mut at) = (0_usize, 0);
    let mut is_name = false;
    while let Some(byte) = text.get(at) {
        at += 1;
        match byte {
            b'"' => {
                let start = at;
                while *text.get(at)? != b'"' {
                    at += if text[at] == b'\\' { 2 } else { 1 };
                }
                let is_it = is_name && depth == 1 && text[start..at] == *name;
                at += 1;
                if is_it {
                    return Some(text[at..].trim_ascii_start().strip_prefix(b":")?.trim_ascii_start());
                }
                is_name = false;
            }
            b'{' | b'[' => (depth, is_name) = (depth + 1, *byte == b'{'),
            b'}' | b']' => depth = depth.checked_sub(1).filter(|depth| *depth > 0)?,
            b',' => is_name = true,
            _ => {}
        }
    }
    None
}

fn failure_in(message: &[u8]) -> Option<Failure> {
    #[derive(Deserialize)]
    struct ToolResult {
        #[serde(default, rename = "isError")]
        is_error: bool,
    }
    let envelope = Envelope::parse(message).ok()?;
    let Message::Response { outcome, .. } = envelope.message() else { return None };
    match outcome {
        Outcome::Error(error) => {
            let error: RpcError = serde_json::from_str(error.as_str()).unwrap_or_default();
            Some(Failure::Rpc(error.code))
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
    use crate::limits;

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
    fn an_error_is_one_however_long_it_is() {
        let of = |body: &str| {
            let prefix = body.as_bytes()[..limits::PARSED_PREFIX].to_vec();
            let end = Ended { status: StatusCode::OK, bytes: body.len() as u64, prefix };
            assert_eq!(failure(&end).is_some(), rpc_error(&end).is_some());
            rpc_error(&end).map(|error| error.code)
        };
        let long = "x".repeat(8 << 10);
        let first =
            format!(r#"{{"jsonrpc":"2.0","id":"\"error\"","error":{{"code":-32602,"data":"{long}"}}}}"#);
        let last =
            format!(r#"{{"id":{{"error":{{}}}}, "error" : {{"data":["code",1,"{long}"],"code":-32602}}}}"#);
        let result = format!(r#"{{"id":"error","result":{{"error":{{"code":1}},"text":"{long}"}}}}"#);
        for (message, expected) in [(&first, Some(-32602)), (&last, Some(0)), (&result, None)] {
            assert_eq!(of(message), expected);
            assert_eq!(of(&format!(": a\n\nevent: message\ndata: {message}\n\n")), expected, "as an event");
        }
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
