//! What a composite tool answers.

use std::fmt::Display;

use serde_json::Value;
use skep_api::vmcp::{Output, OutputProperty, OutputType};

use super::{
    problem::{Cause, Problems, quoted},
    uses::{Place, Uses},
};

/// How deep objects within the answer may be.
const DEEPEST: usize = 10;

pub(super) fn check(output: &Output, uses: &mut Uses<'_>, problems: &mut Problems) {
    if output.properties.is_empty() {
        problems.add(Cause::Workflow, "output.properties", "an answer needs at least one field");
    }
    for (name, property) in &output.properties {
        check_property(&format!("output.properties.{name}"), property, 1, uses, problems);
    }
    for name in output.required.iter().filter(|name| !output.properties.contains_key(*name)) {
        let message = format!("output.properties has no {}", quoted(name));
        problems.add(Cause::Workflow, "output.required", message);
    }
}

fn check_property(
    place: &str,
    property: &OutputProperty,
    depth: usize,
    uses: &mut Uses<'_>,
    problems: &mut Problems,
) {
    let mut wrong = |field: &str, message: &dyn Display| {
        problems.add(Cause::Workflow, format!("{place}.{field}"), message);
    };
    if property.description.as_deref().unwrap_or_default().trim().is_empty() {
        wrong("description", &"say what the field means");
    }
    let value = property.value.as_deref().filter(|value| !value.is_empty());
    match (property.type_, value, &property.properties) {
        (_, Some(_), Some(_)) => wrong("properties", &"there is a value as well: keep one of the two"),
        (OutputType::Object, None, None) => wrong("value", &"an object needs a value or properties"),
        (OutputType::Object, ..) => {}
        (type_, None, Some(_)) => {
            wrong("properties", &format!("type {} has none: set value", type_.as_str()));
        }
        (_, None, None) => wrong("value", &"the field needs a template for its value"),
        (_, Some(_), None) => {}
    }
    if let Some(value) = value {
        uses.check(Place::Output, &format!("{place}.value"), value, problems);
    }
    for (name, inner) in property.properties.iter().flat_map(|properties| &properties.0) {
        let place = format!("{place}.properties.{name}");
        if depth >= DEEPEST {
            let message = format!("an answer can be {DEEPEST} levels deep");
            return problems.add(Cause::Workflow, place, message);
        }
        match inner_property(inner) {
            Ok(inner) => check_property(&place, &inner, depth + 1, uses, problems),
            Err(error) => problems.add(Cause::Workflow, place, error),
        }
    }
}

fn inner_property(value: &Value) -> Result<OutputProperty, String> {
    serde_json::from_value(value.clone()).map_err(|error| error.to_string())
}
