//! A tool that runs scripts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::{apply, skip_serializing_none};

use crate::{Duration, number, unset};

/// A tool, execute_tool_script, that runs a script in Starlark. The script calls other tools as functions, so that
/// their results do not pass through the model. Policies and limits apply to each call as to those of the caller.
#[apply(
    Option<bool> => #[serde(default, deserialize_with = "unset::non_zero")],
    Option<i64> => #[serde(default, deserialize_with = "unset::non_zero")],
    Option<Duration> => #[serde(default, deserialize_with = "unset::non_zero_duration")],
)]
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CodeMode {
    /// Whether the tool is offered.
    pub enabled: Option<bool>,
    /// How many steps of computation a script may take. A thread of parallel gets its share of those that are left.
    #[schemars(range(min = 1), extend("default" = 100_000))]
    pub step_limit: Option<i64>,
    /// How many tools a script may call at the same time.
    #[schemars(range(min = 1), extend("default" = 10), transform = number::plain_integer)]
    pub parallel_max_concurrency: Option<i64>,
    /// How long a single tool call may take, without the time in which the user is waited for. A script has a minute.
    #[schemars(extend("default" = "30s"))]
    pub tool_call_timeout: Option<Duration>,
}
