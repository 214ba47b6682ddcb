//! Headers that are added to requests, and those that carry tokens.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::zero::zero;

/// Headers to add to requests to a remote server.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct HeaderForward {
    /// Headers with plain values.
    pub add_plaintext_headers: BTreeMap<String, String>,
    /// Headers whose values are secrets, with the [names](crate::env::header_secret) of these.
    pub add_headers_from_secret: BTreeMap<String, String>,
}

/// The header for a token that replaces the caller's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HeaderStrategy {
    /// `Authorization`.
    Replace,
    /// A header with a configured name.
    Custom,
}
