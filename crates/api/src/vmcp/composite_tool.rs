//! Composite tools: tools that clients call like any other, and that run a workflow of steps.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{Duration, RawObject, RawValue, enums::text_enum, number, tools::ToolAnnotations};

/// A tool that runs a workflow.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompositeTool {
    /// The name that clients call the tool by. It must differ from those of all other tools.
    pub name: String,
    /// What the tool does, for the model that chooses it. A workflow without it is refused.
    pub description: Option<String>,
    /// The arguments that the tool takes, as a JSON Schema of type object. Steps read them as .params.
    pub parameters: Option<RawObject>,
    /// How long the whole workflow may take. The default is 30m.
    pub timeout: Option<Duration>,
    /// The steps of the workflow. Those that do not depend on each other run at the same time.
    pub steps: Vec<Step>,
    /// What the tool answers. Without it, the answer is that of the last step that was done.
    pub output: Option<Output>,
    /// Hints for clients about what the tool does. Those left out are worked out from the tools that the steps call,
    /// and none may promise more than those keep.
    pub annotations: Option<ToolAnnotations>,
}

text_enum! {
    /// What a step does.
    pub enum StepType {
        /// It calls a tool.
        #[default]
        Tool = "tool",
        /// It asks the user for something.
        Elicitation = "elicitation",
        /// It runs another step for each item of a list.
        ForEach = "forEach",
    }
}

/// One step of a workflow.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// The name of the step, unique within the workflow. Others refer to its result as .steps.ID.output.
    pub id: String,
    /// What the step does.
    #[serde(rename = "type")]
    #[schemars(extend("default" = StepType::default()))]
    pub type_: Option<StepType>,
    /// The tool to call, by the name that clients know it by or as workload.tool. It may be one that clients do not
    /// see. Set it with type tool.
    pub tool: Option<String>,
    /// The arguments for the tool. Texts within them are Go templates over .params, .steps and .workflow, with the
    /// functions json, fromJson and quote.
    pub arguments: Option<RawObject>,
    /// A Go template that renders to true or false. On false the step is skipped, and defaultResults stand for its
    /// result.
    pub condition: Option<String>,
    /// The steps that must be done before this one starts, by their ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// What happens when the step fails. The default is to end the workflow with an error.
    pub on_error: Option<OnError>,
    /// What to ask the user, as a Go template. Set it with type elicitation.
    pub message: Option<String>,
    /// The answer to ask for, as a JSON Schema. Set it with type elicitation.
    pub schema: Option<RawObject>,
    /// How long the step may take, or how long to wait for the user. The default is 5m.
    pub timeout: Option<Duration>,
    /// What happens when the user declines to answer.
    pub on_decline: Option<OnNoAnswer>,
    /// What happens when the user dismisses the question, or does not answer in time.
    pub on_cancel: Option<OnNoAnswer>,
    /// The result of the step when it was skipped or when its failure was passed over. It must have every field of
    /// the result that the rest of the workflow refers to.
    pub default_results: Option<RawValue>,
    /// A Go template that renders to a JSON array: the items to go through. Set it with type forEach.
    pub collection: Option<String>,
    /// The name of the current item in templates: .forEach.NAME. The default is item; .forEach.index is its position.
    pub item_var: Option<String>,
    /// How many items are worked on at the same time, up to 50. The default is 10.
    #[schemars(transform = number::plain_integer)]
    pub max_parallel: Option<i64>,
    /// How many items there may be at most, up to 1000. The default is 100.
    #[schemars(transform = number::plain_integer)]
    pub max_iterations: Option<i64>,
    /// The step to run for each item, with an id of its own. It must be of type tool. Set it with type forEach.
    pub step: Option<RawObject>,
}

text_enum! {
    /// What to do about a step that failed.
    pub enum ErrorAction {
        /// End the workflow with an error.
        #[default]
        Abort = "abort",
        /// Go on, with defaultResults as the result of the step.
        Continue = "continue",
        /// Try again, and end the workflow with an error when the last try fails as well.
        Retry = "retry",
    }
}

/// What happens when a step fails.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OnError {
    /// What to do.
    #[schemars(extend("default" = ErrorAction::default()))]
    pub action: Option<ErrorAction>,
    /// How often to try again, from 1 to 10. Needed with action retry.
    #[schemars(transform = number::plain_integer)]
    pub retry_count: Option<i64>,
    /// How long to wait before the first further try; each later wait is longer. The default is 1s.
    pub retry_delay: Option<Duration>,
}

text_enum! {
    /// What to do about a question that the user did not answer.
    pub enum NoAnswerAction {
        /// Leave out the steps that are still to come. The workflow counts as done.
        SkipRemaining = "skip_remaining",
        /// End the workflow with an error.
        #[default]
        Abort = "abort",
        /// Go on without the answer.
        Continue = "continue",
    }
}

/// What happens when the user does not answer.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OnNoAnswer {
    /// What to do.
    #[schemars(extend("default" = NoAnswerAction::default()))]
    pub action: Option<NoAnswerAction>,
}

/// The answer of a composite tool: an object made from the results of its steps.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// The fields of the answer, by name.
    pub properties: BTreeMap<String, OutputProperty>,
    /// The fields that the answer must have. The tool fails when one of them has no value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<String>,
}

text_enum! {
    /// The JSON type of a field.
    pub enum OutputType {
        /// A text.
        #[default]
        String = "string",
        /// A whole number.
        Integer = "integer",
        /// A number.
        Number = "number",
        /// True or false.
        Boolean = "boolean",
        /// An object.
        Object = "object",
        /// A list.
        Array = "array",
    }
}

/// One field of a composite tool's answer.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutputProperty {
    /// The JSON type of the field. What value renders to is turned into it.
    #[serde(rename = "type")]
    pub type_: OutputType,
    /// What the field means, for the model that reads the answer.
    pub description: Option<String>,
    /// A Go template for the value, for example {{.steps.search.output.count}}. An object may have properties instead.
    pub value: Option<String>,
    /// The fields of an object, each written as in output.properties. Set it with type object, instead of value.
    pub properties: Option<RawObject>,
    /// The value to answer with when the template gives none.
    pub default: Option<RawValue>,
}
