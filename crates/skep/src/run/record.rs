//! The state of a server, for programs.

use serde::{Deserialize, Serialize};

use super::table::Row;

/// A server as it is printed by `-o json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ServerRecord {
    pub(super) name: String,
    pub(super) kind: String,
    /// Empty if it cannot run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) url: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) transport: String,
    pub(super) phase: String,
    /// Its tools, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tools: Option<Vec<String>>,
    /// The reason of a problem, with its position.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) message: String,
}

impl From<&Row> for ServerRecord {
    fn from(Row { place, owner, name, state, .. }: &Row) -> Self {
        let message = &state.message;
        Self {
            name: name.clone(),
            kind: owner.split(' ').next().unwrap_or_default().to_owned(),
            url: state.url.clone(),
            transport: state.transport.to_owned(),
            phase: state.phase.as_str().to_owned(),
            tools: state.tools.clone(),
            message: if message.is_empty() { String::new() } else { format!("{place}{message}") },
        }
    }
}
