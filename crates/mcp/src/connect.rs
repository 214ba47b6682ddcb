//! Accounts that users connect before a call works, on a page that the client opens, and how a client of 2026-07-28 answers.

use serde_json::{Value, json};

use crate::Raw;

/// The key of the elicitation among the input that a result needs. No server behind the proxy has it.
pub const CONNECT_INPUT: &str = "skep/connect-account";

/// What the user has answered. The account may be connected later, or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectAnswer {
    /// The user opens the page.
    Accepted,
    /// The user declines, or has dismissed the question.
    Refused,
}

impl ConnectAnswer {
    /// The answer in the parameters of a request that is sent again.
    pub fn of(params: Option<Raw<'_>>) -> Option<Self> {
        let answer = params?.get("inputResponses")?.get(CONNECT_INPUT)?;
        let action = answer.get("action").and_then(Raw::as_text);
        Some(if action.is_some_and(|action| action == "accept") { Self::Accepted } else { Self::Refused })
    }
}

/// The result that needs the user to open a page (MCP 2026-07-28, multi round-trip requests, and elicitation in URL mode).
pub(crate) fn input_required(message: &str, url: &str) -> Value {
    let params = json!({"mode": "url", "url": url, "message": message});
    let request = json!({"method": "elicitation/create", "params": params});
    json!({"resultType": "input_required", "inputRequests": {CONNECT_INPUT: request}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_found_by_its_key() {
        let of = |responses: Value| {
            let params = json!({"name": "a", "inputResponses": responses}).to_string();
            ConnectAnswer::of(Raw::spelled(&params))
        };
        assert_eq!(of(json!({CONNECT_INPUT: {"action": "accept"}})), Some(ConnectAnswer::Accepted));
        for refused in [json!({"action": "decline"}), json!({"action": "cancel"}), json!({}), json!(1)] {
            assert_eq!(of(json!({CONNECT_INPUT: refused})), Some(ConnectAnswer::Refused));
        }
        for other in [json!({"1": {"action": "accept"}}), json!([]), json!(null)] {
            assert_eq!(of(other), None);
        }
        assert_eq!(ConnectAnswer::of(None), None);
    }
}
