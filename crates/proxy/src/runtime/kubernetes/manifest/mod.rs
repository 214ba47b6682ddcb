//! The StatefulSet and the Services of a server, computed from its RunConfig. Nothing here does I/O.

mod container;
mod ports;
mod security;
mod services;
mod stateful_set;
mod template;

use std::collections::BTreeMap;

use skep_config::{RunConfig, labels};

pub use services::services;
pub use stateful_set::stateful_set;

/// Why a RunConfig has no StatefulSet: the field that is at fault, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct ManifestError {
    field: String,
    problem: String,
}

impl ManifestError {
    fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }
}

/// The name of the StatefulSet.
pub(super) fn name(config: &RunConfig) -> Result<&str, ManifestError> {
    [&config.container_name, &config.name]
        .into_iter()
        .find(|name| !name.is_empty())
        .map(String::as_str)
        .ok_or_else(|| ManifestError::new("container_name", "the server has no name"))
}

/// The labels of all objects: those of the RunConfig, and the two by which objects are selected.
fn all_labels(config: &RunConfig, name: &str) -> BTreeMap<String, String> {
    let ours = [(labels::APP, name), (labels::TOOLHIVE, labels::TRUE)];
    let ours = ours.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
    config.container_labels.clone().into_iter().chain(ours).collect()
}

/// The selector of the server's pods.
fn selector(name: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(labels::APP.to_owned(), name.to_owned())])
}
