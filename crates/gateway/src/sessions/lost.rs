//! How servers say that they do not know a session.

use http::StatusCode;

/// Whether a server may respond with this status because it does not know the session. Servers use one of two.
pub fn may_be_lost(status: StatusCode) -> bool {
    matches!(status, StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST)
}

/// Whether a server that has responded with this status has lost the session. Some use it for other errors, and what they have processed
/// must not be sent again: a session is lost if a ping in it gets the same response.
pub async fn is_lost(status: StatusCode, ping: impl Future<Output = Option<StatusCode>>) -> bool {
    may_be_lost(status) && ping.await == Some(status)
}
