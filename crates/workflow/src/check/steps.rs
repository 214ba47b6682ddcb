//! The fields of each step.

use std::fmt::Display;

use serde_json::Value;
use skep_api::{
    Duration,
    vmcp::{ErrorAction, Step, StepType},
};
use skep_config::FieldPath;

use super::{
    depends,
    error::{Cause, Errors, duration, quoted},
    schema,
    uses::{Place, Uses},
};
use crate::non_empty;

/// How often a step can be retried.
const MAX_RETRIES: i64 = 10;
const MAX_PARALLEL: i64 = 50;
const MAX_ITERATIONS: i64 = 1000;
/// How long an elicitation can wait for the user.
const MAX_ELICITATION_TIMEOUT: &str = "10m";
/// How large and how deep the schema of an elicitation may be.
const MAX_SCHEMA_SIZE: usize = 100 * 1024;
const MAX_SCHEMA_DEPTH: usize = 10;
/// How deep arguments may be nested.
const MAX_ARGUMENT_DEPTH: usize = 100;

pub(super) fn check(steps: &[Step], uses: &mut Uses<'_>, errors: &mut Errors) {
    for (index, step) in steps.iter().enumerate() {
        let field = depends::field(index);
        let mut check = StepCheck { step, field: &field, place: Place::Step(index), uses, errors };
        match step.type_.unwrap_or_default() {
            _ if check.is_ambiguous() => check.add("type", "is required when both tool and message are set"),
            StepType::Tool => check.tool(),
            StepType::Elicitation => check.elicitation(),
            StepType::ForEach => check.for_each(index),
        }
        check.any();
    }
}

/// One step, and its position.
struct StepCheck<'s, 'u, 'e, 'a> {
    step: &'s Step,
    field: &'s FieldPath,
    place: Place<'s>,
    uses: &'u mut Uses<'a>,
    errors: &'e mut Errors,
}

impl StepCheck<'_, '_, '_, '_> {
    fn add(&mut self, field: &'static str, message: impl Display) {
        self.errors.add(Cause::Workflow, self.at(field), message);
    }

    /// A field of the step.
    fn at(&self, field: &'static str) -> FieldPath {
        self.field.clone().join(field)
    }

    fn is_ambiguous(&self) -> bool {
        let Step { type_, tool, message, .. } = self.step;
        type_.is_none() && non_empty(tool).is_some() && non_empty(message).is_some()
    }

    fn tool(&mut self) {
        let Some(tool) = non_empty(&self.step.tool) else {
            return self.add("tool", "is required: name the tool to call");
        };
        let first = tool.starts_with(|c: char| c.is_ascii_alphanumeric());
        let rest = tool.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
        if !first || !rest || tool.ends_with('.') {
            let message = format!("{} is not the name of a tool: use tool or workload.tool", quoted(tool));
            self.add("tool", message);
        }
    }

    fn elicitation(&mut self) {
        match non_empty(&self.step.message) {
            Some(message) => self.template(&self.at("message"), message),
            None => self.add("message", "is required: write the question for the user"),
        }
        let Some(schema) = &self.step.schema else { return };
        let field = self.at("schema");
        let value = Value::Object(schema.0.clone());
        if value.to_string().len() > MAX_SCHEMA_SIZE {
            return self.errors.add(Cause::Schema, field, "is larger than 100 KB");
        }
        if schema::depth(&value) > MAX_SCHEMA_DEPTH {
            let message = format!("is nested deeper than {MAX_SCHEMA_DEPTH} levels");
            return self.errors.add(Cause::Schema, field, message);
        }
        if schema.0.get("type").is_some_and(|type_| type_ != "object") {
            self.errors.add(Cause::Schema, field.clone().join("type"), "must be object");
        }
        schema::check(field, &schema.0, self.errors);
    }

    fn for_each(&mut self, index: usize) {
        for (field, set) in [("tool", non_empty(&self.step.tool)), ("message", non_empty(&self.step.message))]
        {
            if set.is_some() {
                self.add(field, "does not apply to a forEach step: move it into step");
            }
        }
        match non_empty(&self.step.collection) {
            Some(collection) => self.template(&self.at("collection"), collection),
            None => self.add("collection", "is required: set it to a template for the list of items"),
        }
        let item = non_empty(&self.step.item_var).unwrap_or("item");
        if !is_identifier(item) || item == "index" {
            let message =
                format!("{} cannot be the name of an item: use letters, digits and _", quoted(item));
            self.add("itemVar", message);
        }
        self.number("maxParallel", self.step.max_parallel, MAX_PARALLEL);
        self.number("maxIterations", self.step.max_iterations, MAX_ITERATIONS);
        match self.step.inner() {
            None => self.add("step", "is required: it runs for each item"),
            Some(Ok(inner)) => self.inner(&inner, index, item),
            Some(Err(errors)) => errors.into_iter().for_each(|error| {
                self.errors.add(Cause::Workflow, self.at("step").join(error.field), error.message);
            }),
        }
    }

    /// The step that runs for each item.
    fn inner(&mut self, inner: &Step, index: usize, item: &str) {
        let field = self.at("step");
        let place = Place::Item(index, item);
        let (uses, errors) = (&mut *self.uses, &mut *self.errors);
        let mut check = StepCheck { step: inner, field: &field, place, uses, errors };
        if inner.id.is_empty() {
            check.add("id", "is empty: give the step an id");
        }
        if inner.type_.unwrap_or_default() != StepType::Tool {
            return check.add("type", "must be tool: no other type can run for each item");
        }
        check.tool();
        check.any();
    }

    fn number(&mut self, field: &'static str, value: Option<i64>, max: i64) {
        if let Some(value) = value.filter(|value| !(0..=max).contains(value)) {
            self.add(field, format!("{value} is not between 0 and {max}"));
        }
    }

    /// The fields that steps of every type have.
    fn any(&mut self) {
        if let Some(condition) = non_empty(&self.step.condition) {
            self.template(&self.at("condition"), condition);
        }
        for (name, argument) in self.step.arguments.iter().flat_map(|arguments| &arguments.0) {
            self.argument(&self.at("arguments").key(name), argument, 0);
        }
        let is_elicitation = self.step.type_ == Some(StepType::Elicitation);
        let max = is_elicitation.then(|| Duration::from(MAX_ELICITATION_TIMEOUT));
        duration(self.at("timeout"), self.step.timeout.as_ref(), max.as_ref(), self.errors);
        let answers =
            [("onDecline.action", &self.step.on_decline), ("onCancel.action", &self.step.on_cancel)];
        for (field, answer) in answers {
            if answer.as_ref().is_some_and(|answer| answer.action.is_none()) {
                self.add(field, "is required");
            }
        }
        if self.step.default_results.as_ref().is_some_and(|results| !results.0.is_object()) {
            self.add("defaultResults", "must be an object, as the result of a step is one");
        }
        let Some(error) = &self.step.on_error else { return };
        duration(self.at("onError.retryDelay"), error.retry_delay.as_ref(), None, self.errors);
        let retries = error.retry_count.unwrap_or_default();
        if error.action == Some(ErrorAction::Retry) && !(1..=MAX_RETRIES).contains(&retries) {
            let message = format!("{retries} is not between 1 and {MAX_RETRIES}");
            self.add("onError.retryCount", message);
        }
    }

    /// Strings within arguments are templates, at any depth.
    fn argument(&mut self, field: &FieldPath, value: &Value, depth: usize) {
        if depth > MAX_ARGUMENT_DEPTH {
            return self.add("arguments", format!("are nested deeper than {MAX_ARGUMENT_DEPTH} levels"));
        }
        match value {
            Value::String(text) => self.template(field, text),
            Value::Array(items) => items.iter().enumerate().for_each(|(index, item)| {
                self.argument(&field.clone().index(index), item, depth + 1);
            }),
            Value::Object(map) => map.iter().for_each(|(name, value)| {
                self.argument(&field.clone().key(name), value, depth + 1);
            }),
            _ => {}
        }
    }

    fn template(&mut self, field: &FieldPath, text: &str) {
        self.uses.check(self.place, field, text, self.errors);
    }
}

/// Whether templates can refer to the name.
fn is_identifier(name: &str) -> bool {
    let letter = |c: char| c == '_' || c.is_alphabetic();
    name.starts_with(letter) && name.chars().all(|c| letter(c) || c.is_numeric())
}
