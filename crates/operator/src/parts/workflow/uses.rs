//! What templates refer to, and whether it is there.

use std::collections::BTreeSet;

use skep_api::vmcp::{CompositeTool, ErrorAction, Step, StepType};
use skep_gocompat::template;

use super::{
    depends::{Order, place},
    problem::{Cause, Problems, quoted},
};

/// Where a template stands, which decides what it can refer to.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    /// In a step, by its place in the list.
    Step(usize),
    /// In what such a step does for each item, with the name of the item.
    Item(usize, &'a str),
    /// In the answer, when every step is done.
    Output,
}

/// What is known of a step once it is done.
const RESULT: [&str; 4] = ["output", "content", "status", "error"];
/// What is known of the whole workflow.
const WORKFLOW: [&str; 5] = ["id", "duration_ms", "step_count", "status", "start_time"];
/// What asking the user results in.
const ANSWER: [&str; 3] = ["action", "content", "skipped"];
/// What going through a list results in.
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

    /// Checks a template, and remembers what it refers to.
    pub(super) fn check(&mut self, at: Place<'_>, field: &str, text: &str, problems: &mut Problems) {
        let paths = match template::references(text) {
            Ok(paths) => paths,
            Err(error) => return problems.add(Cause::Template, field, error),
        };
        for path in paths {
            let names: Vec<&str> = path.iter().map(String::as_str).collect();
            if let Err(message) = self.refers(at, &names) {
                let message = format!("{{{{.{}}}}}: {message}", path.join("."));
                problems.add(Cause::Template, field, message);
            }
            if let ["steps", step, "output", field, ..] = names[..] {
                self.fields.insert((step.into(), field.into()));
            }
        }
    }

    fn refers(&self, at: Place<'_>, path: &[&str]) -> Result<(), String> {
        match path {
            [] | ["params" | "steps" | "vars" | "workflow"] | ["vars", ..] => Ok(()),
            ["params", name, ..] => self.parameter(name),
            ["steps", id, rest @ ..] => self.step(at, id, rest),
            ["workflow", name, ..] => known(name, &WORKFLOW, "a workflow"),
            ["forEach", rest @ ..] => match (at, rest) {
                (Place::Item(..), []) => Ok(()),
                (Place::Item(_, item), [name, ..]) => known(name, &[item, "index"], "an item"),
                _ => Err("there is no item outside of a forEach step's own step".into()),
            },
            [other, ..] => {
                Err(format!("there is no {other}: templates know params, steps, vars, workflow and forEach"))
            }
        }
    }

    fn parameter(&self, name: &str) -> Result<(), String> {
        let Some(schema) = self.tool.parameters.as_ref().map(|parameters| &parameters.0) else {
            return Err("the tool has no parameters".into());
        };
        // Parameters can be described in ways that do not name them here.
        let open = ["additionalProperties", "patternProperties", "$ref", "allOf", "anyOf", "oneOf"];
        let open = open.iter().filter_map(|keyword| schema.get(*keyword)).any(|value| *value != false);
        let named = schema.get("properties").is_some_and(|properties| properties.get(name).is_some());
        if named || open { Ok(()) } else { Err(format!("parameters.properties has no {}", quoted(name))) }
    }

    fn step(&self, at: Place<'_>, id: &str, rest: &[&str]) -> Result<(), String> {
        let Some(step) = self.tool.steps.iter().find(|step| step.id == id) else {
            return Err(format!("there is no step {}", quoted(id)));
        };
        if let Place::Step(index) | Place::Item(index, _) = at
            && !self.order.get(index).is_some_and(|before| before.contains(id))
        {
            return Err(format!("the step does not wait for {id}: add it to dependsOn"));
        }
        let [part, fields @ ..] = rest else { return Ok(()) };
        known(part, &RESULT, "a step")?;
        match (*part, fields, step.type_.unwrap_or_default()) {
            ("output", [field, ..], StepType::Elicitation) => known(field, &ANSWER, "an answer"),
            ("output", [field, ..], StepType::ForEach) => {
                known(field, &ITERATIONS, "a forEach step's output")
            }
            _ => Ok(()),
        }
    }

    /// A step that may have no result of its own must have a default for each field that is used of it.
    pub(super) fn check_defaults(&self, problems: &mut Problems) {
        for (index, step) in self.tool.steps.iter().enumerate().filter(|(_, step)| may_be_skipped(step)) {
            let defaults = step.default_results.as_ref().and_then(|results| results.0.as_object());
            let used = self.fields.iter().filter(|(id, _)| *id == step.id);
            for (id, field) in used.filter(|(_, field)| !defaults.is_some_and(|map| map.contains_key(field)))
            {
                let place = format!("{}.defaultResults", place(&self.tool.steps, index));
                let message = format!(
                    "the step may be skipped, and .steps.{id}.output.{field} is used: give {field} a default"
                );
                problems.add(Cause::Workflow, place, message);
            }
        }
    }
}

fn may_be_skipped(step: &Step) -> bool {
    let passed_over = step.on_error.as_ref().is_some_and(|error| error.action == Some(ErrorAction::Continue));
    passed_over || step.condition.as_ref().is_some_and(|condition| !condition.is_empty())
}

fn known(name: &str, names: &[&str], of: &str) -> Result<(), String> {
    if names.contains(&name) {
        return Ok(());
    }
    Err(format!("{of} has no {}: it has {}", quoted(name), names.join(", ")))
}
