//! The output of a workflow, from the results of its steps.

use serde_json::{Map, Value};
use skep_api::vmcp::OutputType;

use super::data::Data;
use crate::{
    coerce::{self, TreeBudget},
    compiled::{CompiledOutput, Property, PropertyValue},
};

/// What a template renders for what is missing.
const NO_VALUE: &str = "<no value>";

pub(super) fn output(output: &CompiledOutput, data: &Data) -> Result<Value, String> {
    let object = object(&output.properties, data, "", &mut TreeBudget::default())?;
    match output.required.iter().find(|name| object.get(*name).is_none_or(Value::is_null)) {
        Some(missing) => Err(format!("{missing} is required and has no value")),
        None => Ok(Value::Object(object)),
    }
}

fn object(
    properties: &[(String, Property)],
    data: &Data,
    within: &str,
    trees: &mut TreeBudget,
) -> Result<Map<String, Value>, String> {
    let mut object = Map::new();
    for (name, property) in properties {
        let field = format!("{within}{name}");
        if let Some(value) = value(property, data, &field, trees)? {
            object.insert(name.clone(), value);
        }
    }
    Ok(object)
}

/// The value of a property, or none if it has no value and no default.
fn value(
    property: &Property,
    data: &Data,
    field: &str,
    trees: &mut TreeBudget,
) -> Result<Option<Value>, String> {
    let template = match &property.value {
        PropertyValue::Object(properties) => {
            return object(properties, data, &format!("{field}."), trees).map(Value::Object).map(Some);
        }
        PropertyValue::Template(template) => template,
    };
    let text = data.render(template, None).map_err(|error| format!("{field}: {error}"))?;
    let is_text = property.type_ == OutputType::String;
    if text == NO_VALUE || !is_text && (text.trim().is_empty() || text.trim() == "null") {
        return Ok(property.default.clone());
    }
    if is_text {
        return Ok(Some(text.into()));
    }
    match (coerce::parsed(&text, property.type_.as_str(), trees), &property.default) {
        (Some(value), _) => Ok(Some(value)),
        (None, Some(default)) => Ok(Some(default.clone())),
        (None, None) => Err(format!("{field}: {text:?} is not of type {}", property.type_.as_str())),
    }
}
