//! JSON of clients and backends as trees, which may be a hundred times as large as the text: what they take is counted before they are
//! built.

use std::sync::{Mutex, PoisonError};

use serde::de::DeserializeOwned;
use skep_gateway::body::{Budget, Share};
use skep_mcp::tree_size;

/// The memory of the trees of one call, for as long as this lives.
pub(in crate::front) struct Trees(Mutex<Share>);

/// Why there is no tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::front) enum NoTree {
    #[error("is malformed")]
    Malformed,
    #[error("takes more memory than there is now: have fewer values in it, or try again later")]
    TooLarge,
}

impl Trees {
    pub(in crate::front) fn new(budget: &Budget) -> Self {
        Self(Mutex::new(budget.share()))
    }

    /// The tree of this text.
    pub(in crate::front) fn tree<T: DeserializeOwned>(&self, json: &str) -> Result<T, NoTree> {
        self.reserve(tree_size(json))?;
        serde_json::from_str(json).map_err(|_| NoTree::Malformed)
    }

    /// Counts this many bytes for a tree that is built elsewhere.
    pub(in crate::front) fn reserve(&self, bytes: usize) -> Result<(), NoTree> {
        let counted = self.0.lock().unwrap_or_else(PoisonError::into_inner).grow(bytes);
        counted.map_err(|_| NoTree::TooLarge)
    }
}
