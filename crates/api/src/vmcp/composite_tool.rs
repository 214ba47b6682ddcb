//! Composite tools: tools that clients call like any other, and that run a workflow of steps.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::{apply, skip_serializing_none};
use skep_config::{FieldError, FieldPath};

use crate::{Duration, RawObject, RawValue, enums::text_enum, number, strict, tools::ToolAnnotations, unset};

/// A tool that runs a workflow.
#[apply(
    Option<String> => #[serde(default, deserialize_with = "unset::non_zero")],
    Option<RawObject> => #[serde(default, deserialize_with = "unset::non_zero")],
    Option<Duration> => #[serde(default, deserialize_with = "unset::non_zero_duration")],
    Option<RunAs> => #[serde(default, deserialize_with = "unset::non_zero")],
)]
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompositeTool {
    /// The name of the tool. It must differ from the names of all other tools.
    pub name: String,
    /// What the tool does, for the model that chooses it. A workflow without it is rejected.
    pub description: Option<String>,
    /// The arguments that the tool takes, as a JSON Schema of type object. Steps read them as .params.
    pub parameters: Option<RawObject>,
    /// How long the whole workflow may take. The default is 30m.
    pub timeout: Option<Duration>,
    /// The steps of the workflow. Those that do not depend on each other run at the same time.
    pub steps: Vec<Step>,
    /// The output of the tool. Without it, the result of the last completed step is returned.
    pub output: Option<Output>,
    /// Hints for clients about what the tool does. Those not set are derived from the tools that the steps call, and
    /// none may contradict them.
    pub annotations: Option<ToolAnnotations>,
    /// As whom the steps call their tools, as policies see it. The virtual server must allow workflow, by
    /// allowRunAsWorkflow. Rate limits, the audit log and credentials are always those of the caller.
    // Without a default in the schema, which would become part of every stored composite tool and replace pods.
    pub run_as: Option<RunAs>,
}

text_enum! {
    /// As whom the steps of a workflow call tools.
    pub enum RunAs {
        /// As the caller, who needs a policy for the tool of each step.
        #[default]
        Caller = "caller",
        /// As the workflow, which policies name Workflow::"NAME". The caller needs a policy for the composite tool only.
        Workflow = "workflow",
    }
}

impl CompositeTool {
    /// The unknown keys and wrong types in the parts that are stored as they were written. Fields are below the tool.
    pub fn nested_errors(&self) -> Vec<FieldError> {
        let steps = self.steps.iter().enumerate().flat_map(|(index, step)| {
            let field = FieldPath::from("steps").index(index).join("step");
            step.inner()
                .and_then(Result::err)
                .into_iter()
                .flatten()
                .map(move |error| error.within(field.clone()))
        });
        let properties = self.output.iter().flat_map(|output| &output.properties);
        let properties = properties.flat_map(|(name, property)| {
            let field = FieldPath::from("output.properties").key(name);
            property.nested_errors().into_iter().map(move |error| error.within(field.clone()))
        });
        steps.chain(properties).collect()
    }
}

text_enum! {
    /// What a step does.
    pub enum StepType {
        /// It calls a tool.
        #[default]
        Tool = "tool",
        /// It prompts the user (elicitation).
        Elicitation = "elicitation",
        /// It runs another step for each item of a list.
        ForEach = "forEach",
    }
}

/// One step of a workflow.
#[apply(
    Option<StepType> => #[serde(default, deserialize_with = "unset::non_zero")],
    Option<String> => #[serde(default, deserialize_with = "unset::non_zero")],
    Option<RawObject> => #[serde(default, deserialize_with = "unset::non_zero")],
    Option<RawValue> => #[serde(default, deserialize_with = "unset::non_empty_raw")],
    Option<Duration> => #[serde(default, deserialize_with = "unset::non_zero_duration")],
    Option<i64> => #[serde(default, deserialize_with = "unset::non_zero")],
)]
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
    /// The tool to call, by the name that is offered to clients or as workload.tool. It may be hidden from clients.
    /// Set it with type tool.
    pub tool: Option<String>,
    /// The arguments for the tool. Strings within them are Go templates over .params, .steps and .workflow, with the
    /// functions json, fromJson and quote.
    pub arguments: Option<RawObject>,
    /// A Go template that renders to true or false. On false the step is skipped, and defaultResults are its result.
    pub condition: Option<String>,
    /// The steps that must complete before this one starts, by their ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// What happens when the step fails. The default is to abort the workflow.
    pub on_error: Option<OnError>,
    /// The prompt for the user, as a Go template. Set it with type elicitation.
    pub message: Option<String>,
    /// The requested answer, as a JSON Schema. Set it with type elicitation.
    pub schema: Option<RawObject>,
    /// How long the step may take, or how long to wait for the user. The default is 5m.
    pub timeout: Option<Duration>,
    /// What happens when the user declines to answer.
    pub on_decline: Option<OnNoAnswer>,
    /// What happens when the user dismisses the prompt, or does not answer in time.
    pub on_cancel: Option<OnNoAnswer>,
    /// The result of the step when it was skipped or its failure was ignored. It must have every field of the result
    /// that the rest of the workflow refers to.
    pub default_results: Option<RawValue>,
    /// A Go template that renders to a JSON array: the items to iterate over. Set it with type forEach.
    pub collection: Option<String>,
    /// The name of the current item in templates: .forEach.NAME. The default is item; .forEach.index is its position.
    pub item_var: Option<String>,
    /// How many items are processed in parallel, up to 50. The default is 10.
    #[schemars(transform = number::plain_integer)]
    pub max_parallel: Option<i64>,
    /// How many items there may be at most, up to 1000. The default is 100.
    #[schemars(transform = number::plain_integer)]
    pub max_iterations: Option<i64>,
    /// The step to run for each item, with an id of its own. It must be of type tool. Set it with type forEach.
    pub step: Option<RawObject>,
}

impl Step {
    /// The step to run for each item.
    pub fn inner(&self) -> Option<Result<Self, Vec<FieldError>>> {
        self.step.clone().map(|step| strict::parse(Value::Object(step.0)))
    }
}

text_enum! {
    /// What to do about a step that failed.
    pub enum ErrorAction {
        /// Abort the workflow with an error.
        #[default]
        Abort = "abort",
        /// Continue, with defaultResults as the result of the step.
        Continue = "continue",
        /// Retry, and abort the workflow when the last attempt fails as well.
        Retry = "retry",
    }
}

/// What happens when a step fails.
#[apply(
    Option<ErrorAction> => #[serde(default, deserialize_with = "unset::non_zero")],
    Option<i64> => #[serde(default, deserialize_with = "unset::non_zero")],
    Option<Duration> => #[serde(default, deserialize_with = "unset::non_zero_duration")],
)]
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OnError {
    /// What to do.
    #[schemars(extend("default" = ErrorAction::default()))]
    pub action: Option<ErrorAction>,
    /// How many times to retry, from 1 to 10. Needed with action retry.
    #[schemars(transform = number::plain_integer)]
    pub retry_count: Option<i64>,
    /// The delay before the first retry; it grows with each retry. The default is 1s.
    pub retry_delay: Option<Duration>,
}

text_enum! {
    /// What to do about a prompt that the user did not answer.
    pub enum NoAnswerAction {
        /// Skip the remaining steps. The workflow counts as completed.
        SkipRemaining = "skip_remaining",
        /// Abort the workflow with an error.
        #[default]
        Abort = "abort",
        /// Continue without the answer.
        Continue = "continue",
    }
}

/// What happens when the user does not answer.
#[apply(Option<NoAnswerAction> => #[serde(default, deserialize_with = "unset::non_zero")])]
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OnNoAnswer {
    /// What to do.
    #[schemars(extend("default" = NoAnswerAction::default()))]
    pub action: Option<NoAnswerAction>,
}

/// The output of a composite tool: an object built from the results of its steps.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// The fields of the output, by name.
    pub properties: BTreeMap<String, OutputProperty>,
    /// The fields that the output must have. The tool fails when one of them has no value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<String>,
}

text_enum! {
    /// The JSON type of a field.
    pub enum OutputType {
        /// A string.
        #[default]
        String = "string",
        /// An integer.
        Integer = "integer",
        /// A number.
        Number = "number",
        /// A boolean.
        Boolean = "boolean",
        /// An object.
        Object = "object",
        /// An array.
        Array = "array",
    }
}

/// One field of a composite tool's output.
#[apply(Option<String> => #[serde(default, deserialize_with = "unset::non_zero")])]
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutputProperty {
    /// The JSON type of the field. The rendered value is converted to it.
    #[serde(rename = "type")]
    pub type_: OutputType,
    /// What the field means, for the model that reads the output.
    pub description: Option<String>,
    /// A Go template for the value, for example {{.steps.search.output.count}}. An object may have properties instead.
    pub value: Option<String>,
    /// The fields of an object, each written as in output.properties. Set it with type object, instead of value.
    pub properties: Option<RawObject>,
    /// The default when the template renders no value.
    pub default: Option<RawValue>,
}

impl OutputProperty {
    /// The fields of an object.
    pub fn inner(&self) -> Option<Result<BTreeMap<String, Self>, Vec<FieldError>>> {
        self.properties.clone().map(|properties| strict::parse(Value::Object(properties.0)))
    }

    /// The same as [`CompositeTool::nested_errors`], with fields below this one.
    fn nested_errors(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        match self.inner() {
            None => {}
            Some(Err(own)) => errors = own,
            Some(Ok(inner)) => {
                for (name, property) in inner {
                    let nested = property.nested_errors().into_iter();
                    errors.extend(nested.map(|error| error.within(FieldPath::default().key(&name))));
                }
            }
        }
        errors.into_iter().map(|error| error.within("properties")).collect()
    }
}
