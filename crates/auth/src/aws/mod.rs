//! Credentials of AWS for a caller's token, and requests that are signed with them.

mod sigv4;
mod sts;

pub use sigv4::{CannotSign, Signer};
pub use sts::{Sts, StsError};

/// Credentials that end by themselves.
#[derive(Clone)]
pub struct Credentials {
    /// Which they are.
    pub access_key_id: String,
    /// What is signed with.
    pub secret_access_key: String,
    /// The session that they are of.
    pub session_token: String,
}

/// Which they are, and nothing that could be used.
impl std::fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Credentials").finish_non_exhaustive()
    }
}
