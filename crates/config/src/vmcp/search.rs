//! Tool search and code mode.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::{duration, zero::zero};

/// The search for tools.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Optimizer {
    /// The embedding service.
    pub embedding_service: String,
    /// The timeout of a request to it.
    #[serde(with = "duration::text")]
    pub embedding_service_timeout: Duration,
    /// Its API: `tei` or `openai`.
    pub embedding_provider: String,
    /// The model to request.
    pub embedding_model: String,
    /// Headers for requests to it.
    pub embedding_headers: BTreeMap<String, String>,
    /// The largest number of tools that a search returns.
    pub max_tools_to_return: i64,
    /// The fraction of results from the semantic search.
    pub hybrid_search_semantic_ratio: String,
    /// The largest semantic distance of a result.
    pub semantic_distance_threshold: String,
}

/// A tool that runs scripts, which call other tools.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct CodeMode {
    /// Whether it is offered.
    pub enabled: bool,
    /// The limit of a script's computation steps.
    pub step_limit: i64,
    /// The limit of a script's concurrent calls.
    pub parallel_max_concurrency: i64,
    /// The timeout of a single call.
    #[serde(with = "duration::text")]
    pub tool_call_timeout: Duration,
}
