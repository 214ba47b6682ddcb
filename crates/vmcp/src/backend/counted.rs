//! Messages of backends, which count against the budget of bodies.

use std::{ops::Deref, sync::Arc};

use bytes::Bytes;
use skep_gateway::body::Share;

/// A message, which counts for as long as it, or what was made of it, is in memory.
#[derive(Clone)]
pub(crate) struct CountedBytes {
    bytes: Bytes,
    /// Small ones do not count.
    share: Option<Arc<Share>>,
}

impl CountedBytes {
    pub(crate) fn new(bytes: Bytes, share: Share) -> Self {
        Self { bytes, share: Some(share).filter(Share::is_counted).map(Arc::new) }
    }

    /// What was made of it. It counts in its place.
    pub(crate) fn remade(&self, bytes: impl Into<Bytes>) -> Self {
        Self { bytes: bytes.into(), share: self.share.clone() }
    }

    /// The same as bytes, which count until the last part of them is dropped.
    pub(crate) fn into_bytes(self) -> Bytes {
        if self.share.is_some() { Bytes::from_owner(self) } else { self.bytes }
    }
}

/// One that was made here, and is small.
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
    use skep_gateway::body::Budget;

    use super::*;

    #[test]
    fn a_message_counts_until_the_last_part_of_what_was_made_of_it_is_dropped() {
        let budget = Budget::new(64 << 10);
        let is_free = || budget.share().grow(80 << 10).is_ok();
        let mut share = budget.share();
        share.grow(40 << 10).unwrap();
        let message = CountedBytes::new(vec![1; 40 << 10].into(), share);
        let made = message.remade(vec![2; 40 << 10]);
        drop(message);
        let mut bytes = made.into_bytes();
        let part = bytes.split_to(1);
        drop(bytes);
        assert!(!is_free());
        drop(part);
        assert!(is_free());
    }
}
