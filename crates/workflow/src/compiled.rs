//! A workflow whose templates are parsed.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};
use skep_api::{
    Duration as GoDuration,
    vmcp::{
        CompositeTool, ErrorAction, NoAnswerAction, OnNoAnswer, Output, OutputProperty, OutputType, Step,
        StepType,
    },
};
use skep_gocompat::template::{Template, TemplateError};

use crate::{WorkflowError, check, non_empty};

const WORKFLOW_TIME: Duration = Duration::from_secs(30 * 60);
const STEP_TIME: Duration = Duration::from_secs(5 * 60);
const RETRY_DELAY: Duration = Duration::from_secs(1);
const PARALLEL: usize = 10;
const ITERATIONS: usize = 100;

/// A workflow that can run.
#[derive(Clone, Debug)]
pub struct Workflow {
    pub(crate) parameters: Option<Value>,
    pub(crate) timeout: Duration,
    pub(crate) steps: Vec<CompiledStep>,
    pub(crate) output: Option<CompiledOutput>,
}

#[derive(Clone, Debug)]
pub(crate) struct CompiledStep {
    pub(crate) id: String,
    /// The indexes of the steps that must end before.
    pub(crate) depends_on: Vec<usize>,
    pub(crate) condition: Option<Template>,
    pub(crate) action: Action,
    pub(crate) on_error: ErrorAction,
    pub(crate) retries: u32,
    pub(crate) retry_delay: Duration,
    pub(crate) timeout: Duration,
    pub(crate) defaults: Value,
}

#[derive(Clone, Debug)]
pub(crate) enum Action {
    Call(Call),
    Elicit {
        message: Template,
        schema: Value,
        on_decline: NoAnswerAction,
        on_cancel: NoAnswerAction,
    },
    ForEach {
        collection: Template,
        item: String,
        parallel: usize,
        iterations: usize,
        step: Box<CompiledStep>,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) tool: String,
    pub(crate) arguments: Argument,
}

/// A value whose strings are templates.
#[derive(Clone, Debug)]
pub(crate) enum Argument {
    Template(Template),
    Fixed(Value),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
}

#[derive(Clone, Debug)]
pub(crate) struct CompiledOutput {
    pub(crate) properties: Vec<(String, Property)>,
    pub(crate) required: Vec<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Property {
    pub(crate) type_: OutputType,
    pub(crate) value: PropertyValue,
    pub(crate) default: Option<Value>,
}

#[derive(Clone, Debug)]
pub(crate) enum PropertyValue {
    Template(Template),
    Object(Vec<(String, Property)>),
}

impl Workflow {
    /// The workflow of a composite tool, or all its mistakes.
    pub fn new(tool: &CompositeTool) -> Result<Self, Vec<WorkflowError>> {
        let errors = check(tool);
        if !errors.is_empty() {
            return Err(errors);
        }
        let compiled = Self::compiled(tool);
        compiled.map_err(|error| vec![WorkflowError::template("steps", error)])
    }

    fn compiled(tool: &CompositeTool) -> Result<Self, TemplateError> {
        let index: BTreeMap<&str, usize> =
            tool.steps.iter().enumerate().map(|(index, step)| (step.id.as_str(), index)).collect();
        let steps = tool.steps.iter().map(|step| CompiledStep::new(step, &index));
        Ok(Self {
            parameters: tool.parameters.as_ref().map(|schema| Value::Object(schema.0.clone())),
            timeout: time(tool.timeout.as_ref()).unwrap_or(WORKFLOW_TIME),
            steps: steps.collect::<Result<_, _>>()?,
            output: tool.output.as_ref().map(compiled_output).transpose()?,
        })
    }

    /// The tools that the steps call.
    pub fn tools(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().filter_map(|step| match &step.action {
            Action::Call(call) => Some(call.tool.as_str()),
            Action::ForEach { step, .. } => match &step.action {
                Action::Call(call) => Some(call.tool.as_str()),
                _ => None,
            },
            Action::Elicit { .. } => None,
        })
    }
}

impl CompiledStep {
    fn new(step: &Step, index: &BTreeMap<&str, usize>) -> Result<Self, TemplateError> {
        let template = |text: &Option<String>| Template::parse(non_empty(text).unwrap_or_default());
        let count = |value: Option<i64>, default: usize| {
            value.filter(|value| *value > 0).and_then(|value| usize::try_from(value).ok()).unwrap_or(default)
        };
        let action = match step.type_.unwrap_or_default() {
            StepType::Tool => Action::Call(Call {
                tool: step.tool.clone().unwrap_or_default(),
                arguments: argument(&Value::Object(
                    step.arguments.as_ref().map(|arguments| arguments.0.clone()).unwrap_or_default(),
                ))?,
            }),
            StepType::Elicitation => Action::Elicit {
                message: template(&step.message)?,
                schema: step.schema.as_ref().map_or_else(
                    || json!({"type": "object", "properties": {}}),
                    |schema| Value::Object(schema.0.clone()),
                ),
                on_decline: no_answer(step.on_decline.as_ref()),
                on_cancel: no_answer(step.on_cancel.as_ref()),
            },
            StepType::ForEach => {
                let inner = step.inner().and_then(Result::ok).unwrap_or_default();
                Action::ForEach {
                    collection: template(&step.collection)?,
                    item: non_empty(&step.item_var).unwrap_or("item").to_owned(),
                    parallel: count(step.max_parallel, PARALLEL),
                    iterations: count(step.max_iterations, ITERATIONS),
                    step: Box::new(Self::new(&inner, index)?),
                }
            }
        };
        let on_error = step.on_error.clone().unwrap_or_default();
        let is_retried = on_error.action == Some(ErrorAction::Retry);
        Ok(Self {
            id: step.id.clone(),
            depends_on: step.depends_on.iter().filter_map(|id| index.get(id.as_str()).copied()).collect(),
            condition: non_empty(&step.condition).map(Template::parse).transpose()?,
            action,
            on_error: on_error.action.unwrap_or_default(),
            retries: on_error.retry_count.filter(|_| is_retried).unwrap_or_default().clamp(0, 10) as u32,
            retry_delay: time(on_error.retry_delay.as_ref()).unwrap_or(RETRY_DELAY),
            timeout: time(step.timeout.as_ref()).unwrap_or(STEP_TIME),
            defaults: step.default_results.as_ref().map_or_else(|| json!({}), |results| results.0.clone()),
        })
    }
}

fn argument(value: &Value) -> Result<Argument, TemplateError> {
    Ok(match value {
        Value::String(text) => Argument::Template(Template::parse(text)?),
        Value::Array(items) => Argument::List(items.iter().map(argument).collect::<Result<_, _>>()?),
        Value::Object(map) => {
            let fields = map.iter().map(|(name, value)| Ok((name.clone(), argument(value)?)));
            Argument::Object(fields.collect::<Result<_, TemplateError>>()?)
        }
        other => Argument::Fixed(other.clone()),
    })
}

fn no_answer(action: Option<&OnNoAnswer>) -> NoAnswerAction {
    action.and_then(|action| action.action).unwrap_or_default()
}

fn compiled_output(output: &Output) -> Result<CompiledOutput, TemplateError> {
    Ok(CompiledOutput { properties: properties(&output.properties)?, required: output.required.clone() })
}

fn properties(
    properties: &BTreeMap<String, OutputProperty>,
) -> Result<Vec<(String, Property)>, TemplateError> {
    let compiled = properties.iter().map(|(name, property)| {
        let value = match (non_empty(&property.value), property.inner()) {
            (None, Some(Ok(inner))) => PropertyValue::Object(self::properties(&inner)?),
            (text, _) => PropertyValue::Template(Template::parse(text.unwrap_or_default())?),
        };
        let default = property.default.as_ref().map(|default| default.0.clone());
        Ok((name.clone(), Property { type_: property.type_, value, default }))
    });
    compiled.collect()
}

fn time(duration: Option<&GoDuration>) -> Option<Duration> {
    duration.and_then(|duration| duration.to_std().ok()).filter(|duration| !duration.is_zero())
}
