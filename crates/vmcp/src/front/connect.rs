//! A call that needs an identity provider to which its user is not connected. A client that opens addresses gets the one
//! where the user connects it (MCP 2025-11-25, elicitation in URL mode); others get it within the message of the error.

use serde_json::{Value, json};
use skep_mcp::SessionId;

use super::rpc::RpcError;
use crate::backend::BackendError;

/// The code of `URLElicitationRequiredError`.
const URL_ELICITATION_REQUIRED: i64 = -32042;

/// The error for a client with these capabilities, if it opens addresses and the call needs that.
pub(super) fn elicitation(capabilities: &str, error: &BackendError) -> Option<RpcError> {
    let BackendError::NotConnected { provider, url, .. } = error else { return None };
    let capabilities: Value = serde_json::from_str(capabilities).ok()?;
    capabilities["elicitation"].get("url").filter(|url| url.is_object())?;
    let message = format!("Connect your account at {provider}, then repeat the call.");
    let elicitation = json!({
        "mode": "url", "elicitationId": SessionId::random().as_str(), "url": url, "message": message,
    });
    let error = RpcError::new(URL_ELICITATION_REQUIRED, message);
    Some(RpcError { data: Some(json!({"elicitations": [elicitation]})), ..error })
}
