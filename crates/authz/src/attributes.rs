//! Attributes of entities and of the context.

use std::collections::BTreeMap;

use cedar_policy::RestrictedExpression;
use serde_json::{Map, Value};

use crate::{Action, Resource, value::value};

/// Values by their names.
pub(crate) type Attributes = BTreeMap<String, RestrictedExpression>;

/// The arguments: strings, numbers and booleans by value, others by presence.
///
/// A caller may name an argument `x_present`. The generated attribute wins, or a caller could deny the presence of `x`.
pub(crate) fn arguments(arguments: &Map<String, Value>) -> Attributes {
    let mut attributes = Attributes::new();
    for (name, argument) in arguments {
        if let Value::Bool(_) | Value::Number(_) | Value::String(_) = argument
            && let Some(value) = value(argument)
        {
            attributes.insert(format!("arg_{name}"), value);
        }
    }
    for (name, argument) in arguments {
        if let Value::Null | Value::Array(_) | Value::Object(_) = argument {
            attributes.insert(format!("arg_{name}_present"), RestrictedExpression::new_bool(true));
        }
    }
    attributes
}

/// The annotations that the server gave the resource.
pub(crate) fn hints(action: Action, resource: &Resource<'_>) -> Attributes {
    if action != Action::CallTool {
        return Attributes::new();
    }
    resource.hints.given().map(|(name, hint)| (name.into(), RestrictedExpression::new_bool(hint))).collect()
}

/// The attributes of every resource.
pub(crate) fn standard(action: Action, resource: &Resource<'_>) -> Attributes {
    let text = |text: &str| RestrictedExpression::new_string(text.into());
    let mut attributes = Attributes::from([
        ("name".to_owned(), text(resource.id)),
        ("operation".to_owned(), text(action.operation())),
        ("feature".to_owned(), text(action.feature().as_str())),
    ]);
    if action == Action::ReadResource {
        attributes.insert("uri".into(), text(resource.id));
    }
    attributes
}
