//! The OAuth authorization server that a proxy can run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Placeholder.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EmbeddedAuthServer {}
