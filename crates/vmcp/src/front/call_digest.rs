//! Which call a request makes: a client of 2026-07-28 sends it again with its input, and policies, limits and the audit log see
//! that request.

use sha2::{Digest, Sha256};
use skep_mcp::Envelope;

/// What a client adds to a request that it sends again, or may change.
const OWN: [&str; 3] = ["_meta", "inputResponses", "requestState"];

/// The digest of the method and the parameters of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CallDigest([u8; 32]);

impl CallDigest {
    pub(super) fn of(envelope: &Envelope<'_>) -> Self {
        let params = envelope.params().and_then(|params| params.entries().ok()).unwrap_or_default();
        let mut parts: Vec<_> = params.iter().map(|(key, value)| (key.decoded(), value.as_str())).collect();
        parts.retain(|(name, _)| !OWN.contains(&&**name));
        parts.sort_unstable();
        let mut digest = Sha256::new();
        let method = envelope.method_name().unwrap_or_default();
        for text in [&*method].into_iter().chain(parts.iter().flat_map(|(name, value)| [&**name, *value])) {
            // With its length, so that no letters can move to the next one.
            digest.update(text.len().to_le_bytes());
            digest.update(text);
        }
        Self(digest.finalize().into())
    }

    /// As text, for records.
    pub(super) fn to_text(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(params: &str) -> CallDigest {
        let request = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        CallDigest::of(&Envelope::parse(request.as_bytes()).unwrap())
    }

    #[test]
    fn a_call_that_is_sent_again_with_input_is_the_same() {
        let first = digest(r#"{"name":"a","arguments":{"n":1},"_meta":{"progressToken":1}}"#);
        for (params, is_same) in [
            (r#"{"requestState":"s","arguments":{"n":1},"inputResponses":{},"name":"a"}"#, true),
            (r#"{"name":"b","arguments":{"n":1}}"#, false),
            (r#"{"name":"a","arguments":{"n":2}}"#, false),
            (r#"{"name":"a"}"#, false),
        ] {
            assert_eq!(digest(params) == first, is_same, "{params}");
        }
    }
}
