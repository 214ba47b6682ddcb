//! Values as fingerprints.

use serde_json::Value;
use xxhash_rust::xxh3::xxh3_128;

/// A fingerprint of a JSON value: equal values have equal digests, whatever the order of their keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest(u128);

impl Digest {
    /// The digest of a value.
    pub fn of(value: &Value) -> Self {
        // serde_json keeps the keys of objects sorted, so the text is the same for the same value.
        Self(xxh3_128(value.to_string().as_bytes()))
    }
}
