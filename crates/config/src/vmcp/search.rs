//! What is offered in place of, or beside, the tools themselves.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::{duration, zero::zero};

/// A search for tools.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Optimizer {
    /// The service that turns texts into vectors.
    pub embedding_service: String,
    /// How long a request to it may take.
    #[serde(with = "duration::text")]
    pub embedding_service_timeout: Duration,
    /// What kind of service it is: `tei` or `openai`.
    pub embedding_provider: String,
    /// The model to ask for.
    pub embedding_model: String,
    /// Headers for requests to it.
    pub embedding_headers: BTreeMap<String, String>,
    /// How many tools a search finds at most.
    pub max_tools_to_return: i64,
    /// Which part of the tools found goes by meaning.
    pub hybrid_search_semantic_ratio: String,
    /// How far in meaning a tool may be from what was searched for.
    pub semantic_distance_threshold: String,
}

/// A tool that runs scripts, which call other tools.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct CodeMode {
    /// Whether it is offered.
    pub enabled: bool,
    /// How many steps of computation a script may take.
    pub step_limit: i64,
    /// How many tools a script may call at the same time.
    pub parallel_max_concurrency: i64,
    /// How long a single call may take.
    #[serde(with = "duration::text")]
    pub tool_call_timeout: Duration,
}
