//! The HTTP status of a response: a stdio server sends none, and since 2026-07-28 some errors have one.

use http::StatusCode;
use serde::Deserialize;
use skep_mcp::{Envelope, Message, Outcome};

#[derive(Deserialize)]
struct Error {
    code: i64,
}

/// Whether the status of the response may be another than 200.
///
/// Until 2025-11-25, errors of the server have status 200.
pub(super) fn may_have_status(request: &Envelope<'_>) -> bool {
    request.meta().protocol_version().is_some()
}

/// The status of the server's response to a request.
pub(super) fn of(answer: &[u8], request: &Envelope<'_>) -> StatusCode {
    if !may_have_status(request) {
        return StatusCode::OK;
    }
    let Ok(answer) = Envelope::parse_within(answer, super::DEPTH) else { return StatusCode::OK };
    let Message::Response { outcome: Outcome::Error(error), .. } = answer.message() else {
        return StatusCode::OK;
    };
    match serde_json::from_str(error.as_str()) {
        // A header that does not match, a capability that is missing, a revision that is not served.
        Ok(Error { code: -32022..=-32020 }) => StatusCode::BAD_REQUEST,
        // There is no such method.
        Ok(Error { code: -32601 }) => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(meta: &str, answer: &str) -> u16 {
        let request = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{meta}}}}}"#);
        let answer = format!(r#"{{"jsonrpc":"2.0","id":1,{answer}}}"#);
        of(answer.as_bytes(), &Envelope::parse(request.as_bytes()).unwrap()).as_u16()
    }

    #[test]
    fn an_error_has_a_status_since_2026_07_28() {
        let modern = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
        let error = |code: i32| format!(r#""error":{{"message":"m","code":{code}}}"#);
        for (code, expected) in [
            (-32601, 404),
            (-32020, 400),
            (-32021, 400),
            (-32022, 400),
            (-32602, 200),
            (-32603, 200),
            (7, 200),
        ] {
            assert_eq!(status(modern, &error(code)), expected, "{code}");
            assert_eq!(status("", &error(code)), 200, "{code}");
        }
        assert_eq!(status(modern, r#""result":{"code":-32601}"#), 200);
        assert_eq!(status(modern, r#""error":{"message":"m"}"#), 200);
    }
}
