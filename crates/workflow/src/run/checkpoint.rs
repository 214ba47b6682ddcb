//! A run that waits for an answer, as it can be kept, and go on elsewhere.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where a run waits for an answer of the user. No other step runs then.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Checkpoint {
    /// The step that waits.
    pub step: String,
    /// Since when.
    pub(crate) sent: Timestamp,
    /// The steps that have started and not ended: this one, and others that have a question.
    pub(crate) started: Vec<String>,
    /// Parameters and results, as templates see them.
    pub(crate) data: Value,
    /// The output of the last step that completed.
    pub(crate) last: Value,
    /// Whether no other step starts.
    pub(crate) skips_rest: bool,
    /// How many bytes results may still have.
    pub(crate) room: usize,
}
