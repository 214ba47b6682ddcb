//! The output of a composite tool.

use skep_api::{
    strict,
    vmcp::{Output, OutputProperty, OutputType},
};
use skep_config::FieldPath;

use super::{
    error::{Cause, Errors, quoted},
    uses::{Place, Uses},
};

/// How deep the objects of an output may be nested.
const MAX_DEPTH: usize = 10;

pub(super) fn check(output: &Output, uses: &mut Uses<'_>, errors: &mut Errors) {
    if output.properties.is_empty() {
        errors.add(Cause::Workflow, "output.properties", "is empty: an output needs at least one property");
    }
    for (name, property) in &output.properties {
        check_property(&FieldPath::from("output.properties").key(name), property, 1, uses, errors);
    }
    for (index, name) in output.required.iter().enumerate() {
        if !output.properties.contains_key(name) {
            let message = format!("output.properties has no {}", quoted(name));
            errors.add(Cause::Workflow, FieldPath::from("output.required").index(index), message);
        }
    }
}

fn check_property(
    field: &FieldPath,
    property: &OutputProperty,
    depth: usize,
    uses: &mut Uses<'_>,
    errors: &mut Errors,
) {
    let mut add = |name: &'static str, message: &str| {
        errors.add(Cause::Workflow, field.clone().join(name), message);
    };
    if property.description.as_deref().unwrap_or_default().trim().is_empty() {
        add("description", "is empty: describe the property");
    }
    let value = property.value.as_deref().filter(|value| !value.is_empty());
    match (property.type_, value, &property.properties) {
        (_, Some(_), Some(_)) => add("properties", "value is set, too: remove one of them"),
        (OutputType::Object, None, None) => add("value", "an object needs a value or properties"),
        (OutputType::Object, ..) => {}
        (type_, None, Some(_)) => {
            add("properties", &format!("do not apply to type {}: set value instead", type_.as_str()));
        }
        (_, None, None) => add("value", "is required: set it to a template"),
        (_, Some(_), None) => {}
    }
    if let Some(value) = value {
        uses.check(Place::Output, &field.clone().join("value"), value, errors);
    }
    for (name, inner) in property.properties.iter().flat_map(|properties| &properties.0) {
        let field = field.clone().join("properties").key(name);
        if depth >= MAX_DEPTH {
            let message = format!("is nested deeper than {MAX_DEPTH} levels");
            return errors.add(Cause::Workflow, field, message);
        }
        match strict::parse::<OutputProperty>(inner.clone()) {
            Ok(inner) => check_property(&field, &inner, depth + 1, uses, errors),
            Err(inner) => inner.into_iter().for_each(|error| {
                errors.add(Cause::Workflow, field.clone().join(error.field), error.message);
            }),
        }
    }
}
