//! Bytes that count against the budget of bodies.

use std::{ops::Deref, sync::Arc};

use bytes::Bytes;

use super::Share;

/// Bytes that count for as long as they, or what was made of them, are in memory: also while they wait in a connection whose client
/// does not read.
#[derive(Clone)]
pub struct CountedBytes {
    bytes: Bytes,
    /// Small ones do not count.
    share: Option<Arc<Share>>,
}

impl CountedBytes {
    /// These bytes, whose share this is.
    pub fn new(bytes: Bytes, share: Share) -> Self {
        Self { bytes, share: Some(share).filter(Share::is_counted).map(Arc::new) }
    }

    /// Whether they count already.
    pub fn are_counted(&self) -> bool {
        self.share.is_some()
    }

    /// What was made of them. It counts in their place.
    pub fn remade(&self, bytes: impl Into<Bytes>) -> Self {
        Self { bytes: bytes.into(), share: self.share.clone() }
    }

    /// The same, which count until the last part of them is dropped.
    pub fn into_bytes(self) -> Bytes {
        if self.share.is_some() { Bytes::from_owner(self) } else { self.bytes }
    }
}

/// What was made here, and is small.
impl From<Bytes> for CountedBytes {
    fn from(bytes: Bytes) -> Self {
        Self { bytes, share: None }
    }
}

impl Deref for CountedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::Budget;

    #[test]
    fn bytes_count_until_the_last_part_of_what_was_made_of_them_is_dropped() {
        let budget = Budget::new(64 << 10);
        let is_free = || budget.share().grow(80 << 10).is_ok();
        let mut share = budget.share();
        share.grow(40 << 10).unwrap();
        let bytes = CountedBytes::new(vec![1; 40 << 10].into(), share);
        let made = bytes.remade(vec![2; 40 << 10]);
        drop(bytes);
        let mut rest = made.into_bytes();
        let part = rest.split_to(1);
        drop(rest);
        assert!(!is_free());
        drop(part);
        assert!(is_free());
    }
}
