//! Attributes of entities and of the context.

use std::collections::BTreeMap;

use cedar_policy::RestrictedExpression;
use serde_json::{Map, Value};

use crate::{Action, Resource, value::value};

/// Values by their names.
pub(crate) type Attributes = BTreeMap<String, RestrictedExpression>;

/// The arguments: those that are text, numbers or booleans by their value, others by their presence.
///
/// An argument may be called `x_present`. What says that `x` is there counts, or it could be made to deny it.
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

/// What the server says of the resource.
pub(crate) fn hints(action: Action, resource: &Resource<'_>) -> Attributes {
    if action != Action::CallTool {
        return Attributes::new();
    }
    resource.hints.given().map(|(name, hint)| (name.into(), RestrictedExpression::new_bool(hint))).collect()
}

/// What every resource has.
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
