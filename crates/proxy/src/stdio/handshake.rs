//! The one `initialize` of a server, and the responses to clients that connect later.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;
use skep_mcp::{Edits, Envelope, Json, Message, Outcome, Revision};

/// How the server was initialized. A process has one session, so it is initialized once, and again after a restart.
pub(super) struct Handshake {
    /// The request of the first client.
    pub(super) request: Bytes,
    /// The server's response to it, for the id of that client.
    pub(super) answer: Bytes,
    /// The negotiated revision.
    version: String,
    /// The revision that the first client requested.
    requested: String,
    /// The first client's `notifications/initialized`.
    pub(super) initialized: Option<Bytes>,
}

impl Handshake {
    /// The handshake of a request and its response, unless that is an error.
    pub(super) fn of(request: &[u8], answer: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Negotiated {
            protocol_version: String,
        }
        let Message::Response { outcome: Outcome::Result(result), .. } =
            Envelope::parse_within(answer, super::DEPTH).ok()?.message()
        else {
            return None;
        };
        let negotiated: Negotiated = serde_json::from_str(result.as_str()).ok()?;
        let requested = requested(&Envelope::parse(request).ok()?);
        // Copies: those of the client count against its memory.
        let [request, answer] = [request, answer].map(Bytes::copy_from_slice);
        Some(Self { request, answer, version: negotiated.protocol_version, requested, initialized: None })
    }

    /// The response to a client that connects later, for its own id.
    ///
    /// The server cannot speak a second revision. A client that requests the negotiated one, or a newer one, gets the
    /// server's response, and decides whether it supports that: this is how MCP negotiates. One that requests an older
    /// one cannot know the negotiated one, and gets its own: up to 2025-11-25, revisions only add to each other, and a client
    /// ignores what it does not know. An unknown one gets an error.
    pub(super) fn answer(&self, initialize: &Envelope<'_>) -> Option<Vec<u8>> {
        let id = initialize.id()?;
        let version = requested(initialize);
        let answer = Envelope::parse_within(&self.answer, super::DEPTH).ok()?;
        let edits = Edits::of(&self.answer).replace(answer.id()?.raw(), Json::Raw(id.raw()));
        if version == self.requested || version >= self.version {
            return edits.bytes().ok();
        }
        if Revision::named(version.as_bytes()).is_none() {
            let error = json!({
                "code": -32602,
                "message": "Unsupported protocol version",
                "data": {"supported": [self.version], "requested": version},
            });
            let id = id.raw().as_str();
            return Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#).into_bytes());
        }
        let Message::Response { outcome: Outcome::Result(result), .. } = answer.message() else {
            return None;
        };
        edits.replace(result.get("protocolVersion")?, Json::Text(&version)).bytes().ok()
    }
}

fn requested(initialize: &Envelope<'_>) -> String {
    initialize.requested_version().map(|version| version.decoded().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn initialize(id: &str, version: &str) -> Bytes {
        let params = json!({"protocolVersion": version});
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{params}}}"#).into()
    }

    fn answer(handshake: &Handshake, request: &Bytes) -> String {
        String::from_utf8(handshake.answer(&Envelope::parse(request).unwrap()).unwrap()).unwrap()
    }

    #[test]
    fn a_client_that_connects_later_gets_the_response_for_its_own_id_or_an_error() {
        let first = initialize("1", "2099-01-01");
        let response =
            Bytes::from(r#"{"result":{"protocolVersion":"2025-06-18","x":1e2},"id":1,"jsonrpc":"2.0"}"#);
        let handshake = Handshake::of(&first, &response).unwrap();
        for version in ["2025-06-18", "2025-11-25", "2099-01-01"] {
            let expected = r#"{"result":{"protocolVersion":"2025-06-18","x":1e2},"id":"b","jsonrpc":"2.0"}"#;
            assert_eq!(answer(&handshake, &initialize("\"b\"", version)), expected, "{version}");
        }
        let expected = r#"{"result":{"protocolVersion":"2024-11-05","x":1e2},"id":"b","jsonrpc":"2.0"}"#;
        assert_eq!(answer(&handshake, &initialize("\"b\"", "2024-11-05")), expected);
        let error = answer(&handshake, &initialize("\"b\"", "2023-01-01"));
        assert!(error.contains(r#""supported":["2025-06-18"]"#), "{error}");
    }

    #[test]
    fn an_error_is_no_handshake() {
        let error = Bytes::from(r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}"#);
        assert!(Handshake::of(&initialize("1", "2025-06-18"), &error).is_none());
    }
}
