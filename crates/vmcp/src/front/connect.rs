//! A call that needs an identity provider to which its user is not connected. A client that opens addresses gets the one
//! where the user connects it; others get it within the message of the error.

use serde_json::Value;
use skep_gateway::connect_page;

use super::rpc::RpcError;
use crate::backend::BackendError;

/// The error for a client with these capabilities, if it opens addresses and the call needs that.
pub(super) fn elicitation(capabilities: &str, error: &BackendError) -> Option<RpcError> {
    let BackendError::NotConnected { provider, url, .. } = error else { return None };
    let capabilities: Value = serde_json::from_str(capabilities).ok()?;
    let rejection = connect_page(&capabilities, provider, url)?;
    let error = RpcError::new(rejection.code().into(), rejection.message());
    Some(RpcError { data: rejection.data(), ..error })
}
