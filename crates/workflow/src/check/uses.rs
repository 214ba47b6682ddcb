//! What templates refer to, and whether it exists.

use std::collections::BTreeSet;

use skep_api::vmcp::{CompositeTool, ErrorAction, Step, StepType};
use skep_config::FieldPath;
use skep_gocompat::template::Template;

use super::{
    depends::{self, Order},
    error::{Cause, Errors, quoted},
};

/// The position of a template, which decides what it can refer to.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    /// In a step, by its index.
    Step(usize),
    /// In the step that such a step runs for each item, with the name of the item.
    Item(usize, &'a str),
    /// In the output, when every step is done.
    Output,
}

/// The fields of a finished step.
const RESULT: [&str; 4] = ["output", "content", "status", "error"];
/// The fields of the whole workflow.
const WORKFLOW: [&str; 5] = ["id", "duration_ms", "step_count", "status", "start_time"];
/// The fields of the user's answer to an elicitation.
const ANSWER: [&str; 3] = ["action", "content", "skipped"];
/// The fields of the result of a forEach step.
const ITERATIONS: [&str; 4] = ["iterations", "count", "completed", "failed"];

/// The workflow that templates are part of, and what they refer to.
pub(super) struct Uses<'a> {
    tool: &'a CompositeTool,
    order: &'a Order<'a>,
    /// The fields of results that are used, as step and field.
    fields: BTreeSet<(String, String)>,
}

impl<'a> Uses<'a> {
    pub(super) fn new(tool: &'a CompositeTool, order: &'a Order<'a>) -> Self {
        Self { tool, order, fields: BTreeSet::new() }
    }

    /// Checks a template, and records what it refers to.
    pub(super) fn check(&mut self, at: Place<'_>, field: &FieldPath, text: &str, errors: &mut Errors) {
        let template = match Template::parse(text) {
            Ok(template) => template,
            Err(error) => return errors.add(Cause::Template, field.clone(), error),
        };
        for path in template.references() {
            let names: Vec<&str> = path.iter().map(String::as_str).collect();
            if let Err(message) = self.check_path(at, &names) {
                let message = format!("{{{{.{}}}}}: {message}", path.join("."));
                match names[..] {
                    // Clients may send any, though none can know of them.
                    ["params", ..] if self.tool.parameters.is_none() => errors.warn(field.clone(), message),
                    // Workflows with `.result`, which has no value, are known to be in use.
                    ["steps", id, part, ..]
                        if !RESULT.contains(&part) && self.check_step(at, id, &[]).is_ok() =>
                    {
                        errors.warn(field.clone(), message);
                    }
                    _ => errors.add(Cause::Template, field.clone(), message),
                }
            }
            if let ["steps", step, "output", field, ..] = names[..] {
                self.fields.insert((step.into(), field.into()));
            }
        }
    }

    fn check_path(&self, at: Place<'_>, path: &[&str]) -> Result<(), String> {
        match path {
            [] | ["params" | "steps" | "vars" | "workflow"] | ["vars", ..] => Ok(()),
            ["params", name, ..] => self.check_parameter(name),
            ["steps", id, rest @ ..] => self.check_step(at, id, rest),
            ["workflow", name, ..] => check_name(name, &WORKFLOW, "a workflow"),
            ["forEach", rest @ ..] => match (at, rest) {
                (Place::Item(..), []) => Ok(()),
                (Place::Item(_, item), [name, ..]) => check_name(name, &[item, "index"], "an item"),
                _ => Err("there is no item outside of the step of a forEach step".into()),
            },
            [other, ..] => Err(format!("there is no {other}: use params, steps, vars, workflow or forEach")),
        }
    }

    fn check_parameter(&self, name: &str) -> Result<(), String> {
        let Some(schema) = self.tool.parameters.as_ref().map(|parameters| &parameters.0) else {
            return Err("the tool has no parameters: name them, so that clients send them".into());
        };
        // With these keywords, a schema can allow parameters that it does not name here.
        let keywords = ["additionalProperties", "patternProperties", "$ref", "allOf", "anyOf", "oneOf"];
        let is_open = keywords.iter().filter_map(|keyword| schema.get(*keyword)).any(|value| *value != false);
        let is_named = schema.get("properties").is_some_and(|properties| properties.get(name).is_some());
        if is_named || is_open {
            Ok(())
        } else {
            Err(format!("parameters.properties has no {}", quoted(name)))
        }
    }

    fn check_step(&self, at: Place<'_>, id: &str, rest: &[&str]) -> Result<(), String> {
        let Some(step) = self.tool.steps.iter().find(|step| step.id == id) else {
            return Err(format!("there is no step {}", quoted(id)));
        };
        if let Place::Step(index) | Place::Item(index, _) = at
            && !self.order.get(index).is_some_and(|before| before.contains(id))
        {
            return Err(format!("the step does not wait for {id}: add it to dependsOn"));
        }
        let [part, fields @ ..] = rest else { return Ok(()) };
        check_name(part, &RESULT, "a step")?;
        match (*part, fields, step.type_.unwrap_or_default()) {
            ("output", [field, ..], StepType::Elicitation) => check_name(field, &ANSWER, "an answer"),
            ("output", [field, ..], StepType::ForEach) => {
                check_name(field, &ITERATIONS, "a forEach step's output")
            }
            _ => Ok(()),
        }
    }

    /// A step that may have no result needs a default for each field of it that is used.
    pub(super) fn check_defaults(&self, errors: &mut Errors) {
        for (index, step) in self.tool.steps.iter().enumerate().filter(|(_, step)| may_be_skipped(step)) {
            let defaults = step.default_results.as_ref().and_then(|results| results.0.as_object());
            let used = self.fields.iter().filter(|(id, _)| *id == step.id);
            for (id, field) in used.filter(|(_, field)| !defaults.is_some_and(|map| map.contains_key(field)))
            {
                let message = format!(
                    "the step may be skipped, and .steps.{id}.output.{field} is used: set a default for {field}"
                );
                errors.add(Cause::Workflow, depends::field(index).join("defaultResults"), message);
            }
        }
    }
}

fn may_be_skipped(step: &Step) -> bool {
    let ignores_errors =
        step.on_error.as_ref().is_some_and(|error| error.action == Some(ErrorAction::Continue));
    ignores_errors || step.condition.as_ref().is_some_and(|condition| !condition.is_empty())
}

fn check_name(name: &str, names: &[&str], of: &str) -> Result<(), String> {
    if names.contains(&name) {
        return Ok(());
    }
    Err(format!("{of} has no {}: it has {}", quoted(name), names.join(", ")))
}
