//! Temporary credentials of AWS for a caller's token, and requests that are signed with them.

mod sigv4;
mod sts;

pub use sigv4::{SignError, Signer};
pub use sts::{Sts, StsError};

/// Temporary credentials.
#[derive(Clone)]
pub struct Credentials {
    /// The access key id.
    pub access_key_id: String,
    /// The secret access key.
    pub secret_access_key: String,
    /// The session token.
    pub session_token: String,
}

/// Only the access key id, which is not secret.
impl std::fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Credentials").finish_non_exhaustive()
    }
}
