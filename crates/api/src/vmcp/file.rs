//! The configuration as a file, which the operator writes and the process reads.

use serde::ser::Error;
use serde_json::{Value, json};
use skep_config::{FieldError, FieldPath, yaml};

use super::{Config, OutputProperty, Step, check};
use crate::{Duration, RawObject, rate_limit::RateLimitBucket, strict};

impl Config {
    /// Parses a file. All unknown keys and all values of a wrong type are reported at once.
    pub fn parse(text: &str) -> Result<Self, Vec<FieldError>> {
        match Self::parse_lenient(text) {
            (Some(config), errors) if errors.is_empty() => Ok(config),
            (_, errors) => Err(errors),
        }
    }

    /// Parses a file that a process is to run with, and reports everything that is wrong with it: by the checks here, and by those
    /// of its composite tools and policies, which are not part of this crate.
    pub fn parse_checked(
        text: &str,
        check_further: impl FnOnce(&Self) -> Vec<FieldError>,
    ) -> Result<Self, Vec<FieldError>> {
        let (Some(config), mut errors) = Self::parse_lenient(text) else {
            return Self::parse(text);
        };
        // A value that was wrong is not missing as well.
        let is_new =
            |error: &FieldError| !errors.iter().any(|known| known.field.is_within(error.field.clone()));
        let mut checked: Vec<FieldError> = check::errors(&config).into_iter().filter(is_new).collect();
        // Without the value that was wrong, other parts of the same tool would seem to be wrong.
        let is_of_same_tool = |error: &FieldError, known: &FieldError| {
            let (tool, known) = (error.field.segments().get(..2), known.field.segments().get(..2));
            tool == known
        };
        let is_right = |error: &FieldError| !errors.iter().any(|known| is_of_same_tool(error, known));
        checked.extend(check_further(&config).into_iter().filter(is_right));
        errors.extend(checked);
        if errors.is_empty() { Ok(config) } else { Err(errors) }
    }

    fn parse_lenient(text: &str) -> (Option<Self>, Vec<FieldError>) {
        let mut document: Value = match yaml::parse(text) {
            Ok(document) => document,
            Err(error) => return (None, vec![FieldError::new("", error.to_string())]),
        };
        // The API requires it, also where it is empty. A file need not have it.
        if let Some(oidc) = document.pointer_mut("/incomingAuth/oidc").and_then(Value::as_object_mut) {
            oidc.entry("clientId").or_insert("".into());
        }
        let (config, mut errors) = strict::parse_lenient::<Self>(document, strict::Texts::AnyScalar);
        if let Some(config) = &config {
            errors.extend(config.unknown.keys().map(|key| strict::unknown_key(key.clone().into())));
            errors.extend(config.composite_tools.iter().enumerate().flat_map(|(index, tool)| {
                let field = FieldPath::from("compositeTools").index(index);
                tool.nested_errors().into_iter().map(move |error| error.within(field.clone()))
            }));
        }
        (config, errors)
    }

    /// The text of the file. Its values have the form that ToolHive gives them, so that its files stay as they are.
    pub fn render(&self) -> Result<String, yaml::Error> {
        let mut config = self.clone();
        config.durations().for_each(normalise);
        for tool in &mut config.composite_tools {
            tool.timeout.iter_mut().for_each(normalise);
            tool.steps.iter_mut().for_each(complete_step);
            let properties = tool.output.iter_mut().flat_map(|output| output.properties.values_mut());
            properties.for_each(complete_property);
        }
        let mut document = serde_json::to_value(config).map_err(yaml::Error::custom)?;
        if let Some(limits) = document.get_mut("rateLimiting") {
            nest_refill_periods(limits);
        }
        yaml::render(&document)
    }

    /// The durations outside of composite tools.
    fn durations(&mut self) -> impl Iterator<Item = &mut Duration> {
        let (timeouts, handling) = match &mut self.operational {
            Some(operational) => (operational.timeouts.as_mut(), operational.failure_handling.as_mut()),
            None => (None, None),
        };
        let timeouts = timeouts
            .into_iter()
            .flat_map(|timeouts| timeouts.default.iter_mut().chain(timeouts.per_workload.values_mut()));
        let handling = handling.into_iter().flat_map(|handling| {
            let breaker = handling.circuit_breaker.as_mut().and_then(|breaker| breaker.timeout.as_mut());
            let checks = [
                handling.health_check_interval.as_mut(),
                handling.health_check_timeout.as_mut(),
                handling.status_reporting_interval.as_mut(),
                breaker,
            ];
            checks.into_iter().flatten()
        });
        let search = self.optimizer.as_mut().and_then(|search| search.embedding_service_timeout.as_mut());
        let script = self.code_mode.as_mut().and_then(|mode| mode.tool_call_timeout.as_mut());
        let limits = self.rate_limiting.iter_mut().flat_map(|limits| {
            let tools =
                limits.tools.iter_mut().flat_map(|tool| [tool.shared.as_mut(), tool.per_user.as_mut()]);
            [limits.shared.as_mut(), limits.per_user.as_mut()].into_iter().chain(tools)
        });
        let limits = limits.flatten().map(|RateLimitBucket { refill_period, .. }| refill_period);
        timeouts.chain(handling).chain(search).chain(script).chain(limits)
    }
}

fn normalise(duration: &mut Duration) {
    *duration = std::mem::take(duration).normalised();
}

/// The step of a `forEach` is stored as it was written. In a file it has the form of every other step.
fn complete_step(step: &mut Step) {
    step.timeout.iter_mut().for_each(normalise);
    step.on_error.iter_mut().flat_map(|error| &mut error.retry_delay).for_each(normalise);
    if let Some(Ok(mut inner)) = step.inner() {
        complete_step(&mut inner);
        step.step = raw(&inner).or(step.step.take());
    }
}

/// In a file, every property has a description, though it may be empty.
fn complete_property(property: &mut OutputProperty) {
    property.description.get_or_insert_default();
    if let Some(Ok(mut inner)) = property.inner() {
        inner.values_mut().for_each(complete_property);
        property.properties = raw(&inner).or(property.properties.take());
    }
}

fn raw(typed: &impl serde::Serialize) -> Option<RawObject> {
    match serde_json::to_value(typed) {
        Ok(Value::Object(fields)) => Some(RawObject(fields)),
        _ => None,
    }
}

/// Go writes a Kubernetes duration to YAML below a key of its own.
fn nest_refill_periods(limits: &mut Value) {
    match limits {
        Value::Object(fields) => {
            if let Some(period) = fields.get_mut("refillPeriod") {
                *period = json!({"duration": period});
            }
            fields.values_mut().for_each(nest_refill_periods);
        }
        Value::Array(items) => items.iter_mut().for_each(nest_refill_periods),
        _ => {}
    }
}
