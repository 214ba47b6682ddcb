//! Composite tools: tools that run a workflow.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};
use serde_with::apply;

use super::{Free, ToolHints};
use crate::{duration, zero::zero};

/// A tool that runs a workflow.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct CompositeTool {
    /// Its name for clients.
    #[serde_with(skip_apply)]
    pub name: String,
    /// What it does.
    pub description: String,
    /// The arguments that it takes, as a JSON Schema.
    #[serde_with(skip_apply)]
    #[serde(skip_serializing_if = "Free::is_empty")]
    pub parameters: Free,
    /// The timeout of the whole workflow.
    #[serde(with = "duration::text")]
    pub timeout: Duration,
    /// The steps.
    #[serde_with(skip_apply)]
    pub steps: Vec<Step>,
    /// The output.
    pub output: Option<Output>,
    /// Hints about what it does.
    pub annotations: Option<ToolHints>,
}

/// One step of a workflow.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Step {
    /// The name of the step.
    #[serde_with(skip_apply)]
    pub id: String,
    /// What it does: `tool`, `elicitation` or `forEach`.
    #[serde(rename = "type")]
    pub type_: String,
    /// The tool to call.
    pub tool: String,
    /// The arguments for the tool.
    #[serde_with(skip_apply)]
    #[serde(skip_serializing_if = "Free::is_empty")]
    pub arguments: Free,
    /// A template that renders to true or false. On false the step is skipped.
    pub condition: String,
    /// The steps that must finish before it.
    pub depends_on: Vec<String>,
    /// What happens if it fails.
    pub on_error: Option<OnError>,
    /// The message of an elicitation.
    pub message: String,
    /// The JSON Schema of the user's response.
    #[serde_with(skip_apply)]
    #[serde(skip_serializing_if = "Free::is_empty")]
    pub schema: Free,
    /// The timeout of the step.
    #[serde(with = "duration::text")]
    pub timeout: Duration,
    /// What happens if the user declines.
    pub on_decline: Option<OnNoAnswer>,
    /// What happens if the user cancels.
    pub on_cancel: Option<OnNoAnswer>,
    /// Its result if it is skipped.
    #[serde_with(skip_apply)]
    #[serde(skip_serializing_if = "Free::is_empty")]
    pub default_results: Free,
    /// A template for the items to iterate over.
    pub collection: String,
    /// The name of the current item.
    pub item_var: String,
    /// How many items are processed concurrently.
    pub max_parallel: i64,
    /// The largest number of items.
    pub max_iterations: i64,
    /// The step to run for each item.
    pub step: Option<Box<Step>>,
}

/// What happens if a step fails.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct OnError {
    /// The action: `abort`, `continue` or `retry`.
    pub action: String,
    /// The number of retries.
    pub retry_count: i64,
    /// The delay before a retry.
    #[serde(with = "duration::text")]
    pub retry_delay: Duration,
}

/// What happens if the user cancels.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct OnNoAnswer {
    /// The action: `skip_remaining`, `abort` or `continue`.
    pub action: String,
}

/// The output of a composite tool.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Output {
    /// Its fields.
    #[serde_with(skip_apply)]
    pub properties: BTreeMap<String, OutputProperty>,
    /// The required fields.
    pub required: Vec<String>,
}

/// One field of an output.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct OutputProperty {
    /// Its JSON type.
    #[serde_with(skip_apply)]
    #[serde(rename = "type")]
    pub type_: String,
    /// Its description.
    #[serde_with(skip_apply)]
    pub description: String,
    /// A template for its value.
    pub value: String,
    /// The fields of an object.
    pub properties: BTreeMap<String, OutputProperty>,
    /// Its value if the template renders to none.
    pub default: Option<Free>,
}
