//! Tools that run a workflow of steps.

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
    /// The name that clients call it by.
    #[serde_with(skip_apply)]
    pub name: String,
    /// What it does.
    pub description: String,
    /// The arguments that it takes, as a JSON Schema.
    #[serde_with(skip_apply)]
    #[serde(skip_serializing_if = "Free::is_empty")]
    pub parameters: Free,
    /// How long the whole workflow may take.
    #[serde(with = "duration::text")]
    pub timeout: Duration,
    /// The steps.
    #[serde_with(skip_apply)]
    pub steps: Vec<Step>,
    /// What it answers.
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
    /// A template that says whether it is done.
    pub condition: String,
    /// The steps that must be done before it.
    pub depends_on: Vec<String>,
    /// What happens when it fails.
    pub on_error: Option<OnError>,
    /// What to ask the user.
    pub message: String,
    /// The answer to ask for, as a JSON Schema.
    #[serde_with(skip_apply)]
    #[serde(skip_serializing_if = "Free::is_empty")]
    pub schema: Free,
    /// How long it may take.
    #[serde(with = "duration::text")]
    pub timeout: Duration,
    /// What happens when the user declines to answer.
    pub on_decline: Option<OnNoAnswer>,
    /// What happens when the user does not answer.
    pub on_cancel: Option<OnNoAnswer>,
    /// Its result when it was not done.
    #[serde_with(skip_apply)]
    #[serde(skip_serializing_if = "Free::is_empty")]
    pub default_results: Free,
    /// A template that gives the items to go through.
    pub collection: String,
    /// The name of the current item.
    pub item_var: String,
    /// How many items are worked on at the same time.
    pub max_parallel: i64,
    /// How many items there may be.
    pub max_iterations: i64,
    /// The step to run for each item.
    pub step: Option<Box<Step>>,
}

/// What happens when a step fails.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct OnError {
    /// What to do: `abort`, `continue` or `retry`.
    pub action: String,
    /// How often to try again.
    pub retry_count: i64,
    /// How long to wait before that.
    #[serde(with = "duration::text")]
    pub retry_delay: Duration,
}

/// What happens when the user does not answer.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct OnNoAnswer {
    /// What to do: `skip_remaining`, `abort` or `continue`.
    pub action: String,
}

/// What a composite tool answers.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Output {
    /// The fields of the answer.
    #[serde_with(skip_apply)]
    pub properties: BTreeMap<String, OutputProperty>,
    /// The fields that it must have.
    pub required: Vec<String>,
}

/// One field of an answer.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct OutputProperty {
    /// Its JSON type.
    #[serde_with(skip_apply)]
    #[serde(rename = "type")]
    pub type_: String,
    /// What it means.
    #[serde_with(skip_apply)]
    pub description: String,
    /// A template for its value.
    pub value: String,
    /// The fields of an object.
    pub properties: BTreeMap<String, OutputProperty>,
    /// Its value when the template gives none.
    pub default: Option<Free>,
}
