//! Attributes of entities and of the context.

use std::collections::BTreeMap;

use cedar_policy::RestrictedExpression;
use serde_json::{Map, Value};

use crate::{
    Action, Resource,
    reads::{PREFIX, PRESENT, Reads},
    value::value,
};

/// Values by their names.
pub(crate) type Attributes = BTreeMap<String, RestrictedExpression>;

/// The arguments that policies read: strings, numbers and booleans by value, others by presence.
pub(crate) fn arguments(arguments: &Map<String, Value>, reads: &Reads) -> Attributes {
    let mut attributes: Attributes = reads
        .names
        .iter()
        .filter_map(|name| Some((format!("{PREFIX}{name}"), argument(arguments, name)?)))
        .collect();
    if reads.all {
        for name in arguments.keys() {
            for name in [name.clone(), format!("{name}{PRESENT}")] {
                let value = argument(arguments, &name);
                attributes.extend(value.map(|value| (format!("{PREFIX}{name}"), value)));
            }
        }
    }
    attributes
}

/// The attribute of this name.
///
/// A caller may name an argument `x_present`. The generated attribute wins, or a caller could deny the presence of `x`.
fn argument(arguments: &Map<String, Value>, name: &str) -> Option<RestrictedExpression> {
    let is_structured =
        |argument: &Value| !matches!(argument, Value::Bool(_) | Value::Number(_) | Value::String(_));
    let generated =
        name.strip_suffix(PRESENT).and_then(|name| arguments.get(name)).filter(|value| is_structured(value));
    if generated.is_some() {
        return Some(RestrictedExpression::new_bool(true));
    }
    value(arguments.get(name).filter(|value| !is_structured(value))?)
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
