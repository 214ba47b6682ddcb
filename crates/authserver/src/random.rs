//! Random values and hashes.

use aws_lc_rs::rand;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// The randomness of the system failed.
#[derive(Debug, thiserror::Error)]
#[error("the system has no random bytes")]
pub(crate) struct NoRandomness;

/// Random bytes.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N], NoRandomness> {
    let mut bytes = [0; N];
    rand::fill(&mut bytes).map_err(|_| NoRandomness)?;
    Ok(bytes)
}

/// A random text of 256 bits.
pub(crate) fn text() -> Result<String, NoRandomness> {
    bytes::<32>().map(|bytes| base64(&bytes))
}

/// base64url without padding.
pub(crate) fn base64(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The SHA-256 hash in base64url.
pub(crate) fn hash(bytes: impl AsRef<[u8]>) -> String {
    base64(&Sha256::digest(bytes.as_ref()))
}

/// The SHA-256 hash in hex.
pub(crate) fn hex_hash(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A keyed hash of parts, of which none can be taken for a piece of another.
pub(crate) fn tag(key: &[u8], label: &str, parts: &[&str]) -> String {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return String::new() };
    for part in [&[label], parts].concat() {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part.as_bytes());
    }
    base64(&mac.finalize().into_bytes()[..16])
}

/// Whether two secrets are equal, in a time that does not depend on where they differ.
pub(crate) fn is_same(left: &str, right: &str) -> bool {
    !left.is_empty()
        && aws_lc_rs::constant_time::verify_slices_are_equal(left.as_bytes(), right.as_bytes()).is_ok()
}
