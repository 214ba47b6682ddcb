//! What each step needs.

use std::fmt::Display;

use serde_json::Value;
use skep_api::{
    Duration,
    vmcp::{ErrorAction, Step, StepType},
};

use super::{
    depends::place,
    problem::{Cause, Problems, duration, quoted},
    schema,
    uses::{Place, Uses},
};

/// How often a step can be tried again.
const MOST_RETRIES: i64 = 10;
const MOST_PARALLEL: i64 = 50;
const MOST_ITERATIONS: i64 = 1000;
/// How long the user can be waited for.
const LONGEST_QUESTION: &str = "10m";
/// How large and how deep the schema of a question may be.
const LARGEST_QUESTION: usize = 100 * 1024;
const DEEPEST_QUESTION: usize = 10;
/// How deep arguments may be.
const DEEPEST_ARGUMENT: usize = 100;

pub(super) fn check(steps: &[Step], uses: &mut Uses<'_>, problems: &mut Problems) {
    for (index, step) in steps.iter().enumerate() {
        let place = place(steps, index);
        let mut check = StepCheck { step, place: &place, scope: Place::Step(index), uses, problems };
        match step.type_.unwrap_or_default() {
            _ if check.is_ambiguous() => {
                check.wrong("type", "there are both tool and message: say which it is")
            }
            StepType::Tool => check.tool(),
            StepType::Elicitation => check.elicitation(),
            StepType::ForEach => check.for_each(index),
        }
        check.any();
    }
}

/// One step, and where it stands.
struct StepCheck<'s, 'u, 'p, 'a> {
    step: &'s Step,
    place: &'s str,
    scope: Place<'s>,
    uses: &'u mut Uses<'a>,
    problems: &'p mut Problems,
}

impl StepCheck<'_, '_, '_, '_> {
    fn wrong(&mut self, field: &str, message: impl Display) {
        self.problems.add(Cause::Workflow, format!("{}.{field}", self.place), message);
    }

    fn is_ambiguous(&self) -> bool {
        let Step { type_, tool, message, .. } = self.step;
        type_.is_none() && said(tool).is_some() && said(message).is_some()
    }

    fn tool(&mut self) {
        let Some(tool) = said(&self.step.tool) else {
            return self.wrong("tool", "name the tool to call");
        };
        let first = tool.starts_with(|c: char| c.is_ascii_alphanumeric());
        let rest = tool.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
        if !first || !rest || tool.ends_with('.') {
            let message = format!("{} is not a tool: write its name, or workload.tool", quoted(tool));
            self.wrong("tool", message);
        }
    }

    fn elicitation(&mut self) {
        match said(&self.step.message) {
            Some(message) => self.template("message", message),
            None => self.wrong("message", "say what to ask the user"),
        }
        let Some(schema) = &self.step.schema else { return };
        let place = format!("{}.schema", self.place);
        let value = Value::Object(schema.0.clone());
        if value.to_string().len() > LARGEST_QUESTION {
            return self.problems.add(Cause::Schema, place, "it is larger than 100 KB");
        }
        if schema::depth(&value) > DEEPEST_QUESTION {
            let message = format!("it is deeper than {DEEPEST_QUESTION} levels");
            return self.problems.add(Cause::Schema, place, message);
        }
        if schema.0.get("type").is_some_and(|type_| type_ != "object") {
            self.problems.add(
                Cause::Schema,
                format!("{place}.type"),
                "users fill in an object: write object here",
            );
        }
        schema::check(place, &schema.0, self.problems);
    }

    fn for_each(&mut self, index: usize) {
        for (field, set) in [("tool", said(&self.step.tool)), ("message", said(&self.step.message))] {
            if set.is_some() {
                self.wrong(field, "a forEach step has none of its own: put it into step");
            }
        }
        match said(&self.step.collection) {
            Some(collection) => self.template("collection", collection),
            None => self.wrong("collection", "give a template for the list to go through"),
        }
        let item = said(&self.step.item_var).unwrap_or("item");
        if !is_identifier(item) || item == "index" {
            let message =
                format!("{} cannot be the name of an item: use letters, digits and _", quoted(item));
            self.wrong("itemVar", message);
        }
        self.number("maxParallel", self.step.max_parallel, MOST_PARALLEL);
        self.number("maxIterations", self.step.max_iterations, MOST_ITERATIONS);
        let Some(inner) = &self.step.step else {
            return self.wrong("step", "say what to do for each item");
        };
        match serde_json::from_value::<Step>(Value::Object(inner.0.clone())) {
            Ok(inner) => self.inner(&inner, index, item),
            Err(error) => self.wrong("step", error),
        }
    }

    /// The step that is run for each item.
    fn inner(&mut self, inner: &Step, index: usize, item: &str) {
        let place = format!("{}.step", self.place);
        let scope = Place::Item(index, item);
        let mut check = StepCheck {
            step: inner,
            place: &place,
            scope,
            uses: &mut *self.uses,
            problems: &mut *self.problems,
        };
        if inner.id.is_empty() {
            check.wrong("id", "give the step an id");
        }
        if inner.type_.unwrap_or_default() != StepType::Tool {
            return check.wrong("type", "only a tool can be called for each item");
        }
        check.tool();
        check.any();
    }

    fn number(&mut self, field: &str, value: Option<i64>, most: i64) {
        if let Some(value) = value.filter(|value| !(0..=most).contains(value)) {
            self.wrong(field, format!("{value} is not between 0 and {most}"));
        }
    }

    /// What steps of every type have.
    fn any(&mut self) {
        if let Some(condition) = said(&self.step.condition) {
            self.template("condition", condition);
        }
        for (name, argument) in self.step.arguments.iter().flat_map(|arguments| &arguments.0) {
            self.argument(&format!("arguments.{name}"), argument, 0);
        }
        let question = self.step.type_ == Some(StepType::Elicitation);
        let most = question.then(|| Duration::from(LONGEST_QUESTION));
        let place = format!("{}.timeout", self.place);
        duration(place, self.step.timeout.as_ref(), most.as_ref(), self.problems);
        for (field, answer) in [("onDecline", &self.step.on_decline), ("onCancel", &self.step.on_cancel)] {
            if answer.as_ref().is_some_and(|answer| answer.action.is_none()) {
                self.wrong(&format!("{field}.action"), "say what to do");
            }
        }
        if self.step.default_results.as_ref().is_some_and(|results| !results.0.is_object()) {
            self.wrong("defaultResults", "they must be an object, as the result of a step is");
        }
        let Some(error) = &self.step.on_error else { return };
        duration(
            format!("{}.onError.retryDelay", self.place),
            error.retry_delay.as_ref(),
            None,
            self.problems,
        );
        let retries = error.retry_count.unwrap_or_default();
        if error.action == Some(ErrorAction::Retry) && !(1..=MOST_RETRIES).contains(&retries) {
            let message = format!("{retries} is not between 1 and {MOST_RETRIES}");
            self.wrong("onError.retryCount", message);
        }
    }

    /// Texts within arguments are templates, however deep they are.
    fn argument(&mut self, field: &str, value: &Value, depth: usize) {
        if depth > DEEPEST_ARGUMENT {
            return self.wrong("arguments", format!("they can be {DEEPEST_ARGUMENT} levels deep"));
        }
        match value {
            Value::String(text) => self.template(field, text),
            Value::Array(items) => items.iter().enumerate().for_each(|(index, item)| {
                self.argument(&format!("{field}[{index}]"), item, depth + 1);
            }),
            Value::Object(map) => map.iter().for_each(|(name, value)| {
                self.argument(&format!("{field}.{name}"), value, depth + 1);
            }),
            _ => {}
        }
    }

    fn template(&mut self, field: &str, text: &str) {
        self.uses.check(self.scope, &format!("{}.{field}", self.place), text, self.problems);
    }
}

fn said(text: &Option<String>) -> Option<&str> {
    text.as_deref().filter(|text| !text.is_empty())
}

/// Whether templates can name it.
fn is_identifier(name: &str) -> bool {
    let letter = |c: char| c == '_' || c.is_alphabetic();
    name.starts_with(letter) && name.chars().all(|c| letter(c) || c.is_numeric())
}
