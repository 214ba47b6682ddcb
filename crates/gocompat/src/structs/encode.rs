//! The text that a Go program writes of JSON that it decoded into a struct.
//!
//! The rules are those of Go's `encoding/json`: the struct's fields in their order, others dropped; null counts as
//! not set; a field that is not set has the zero of its type, and is omitted only with `omitempty`, for which a
//! struct is never empty.

use jiff::{Timestamp, fmt::strtime};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::types::{Field, Struct, Type};
use crate::{json::Json, quantity};

/// Why a value cannot be decoded into a struct, or not be encoded again.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// A value does not have the type of its field.
    #[error("{path}: {value} is not {expected}")]
    Type {
        /// From the root down, such as `.spec.containers[0]`.
        path: String,
        /// The value.
        value: Value,
        /// The type, in words.
        expected: &'static str,
    },
    /// The text cannot be written.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

impl EncodeError {
    /// The same error with a path that starts one level higher up.
    pub fn under(mut self, parent: impl std::fmt::Display) -> Self {
        if let Self::Type { path, .. } = &mut self {
            *path = format!("{parent}{path}");
        }
        self
    }
}

/// The JSON that Go writes of the struct that it decodes from the value.
pub fn encode(of: &'static Struct, value: &Value) -> Result<Json, EncodeError> {
    Ok(Json::new(&encoded(&Type::Struct(of), value)?)?)
}

/// JSON whose objects keep the order of their fields.
enum Ordered<'a> {
    Object(Vec<(&'a str, Self)>),
    List(Vec<Self>),
    Leaf(Value),
}

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Object(fields) => serializer.collect_map(fields.iter().map(|(name, value)| (name, value))),
            Self::List(items) => serializer.collect_seq(items),
            Self::Leaf(value) => value.serialize(serializer),
        }
    }
}

fn encoded<'a>(of: &Type, value: &'a Value) -> Result<Ordered<'a>, EncodeError> {
    let leaf = match (of, value) {
        (Type::Struct(of), Value::Null | Value::Object(_)) => return fields(of, value),
        (Type::List(of), Value::Array(items)) => return list(of, items),
        (Type::Map(of), Value::Object(entries)) => return map(of, entries),
        (Type::List(_) | Type::Map(_) | Type::Pointer(_) | Type::Time, Value::Null) => Some(Value::Null),
        (Type::Pointer(of), value) => return encoded(of, value),
        (Type::Bool, Value::Null) => Some(json!(false)),
        (Type::Int | Type::IntOrString, Value::Null) => Some(json!(0)),
        (Type::Quantity, Value::Null) => Some(json!("0")),
        (Type::Text, Value::Null) => Some(json!("")),
        (Type::Quantity, Value::String(text)) => quantity::canonical(text).map(Value::String),
        (Type::Quantity, Value::Number(number)) => {
            quantity::canonical(&number.to_string()).map(Value::String)
        }
        (Type::Time, Value::String(text)) => time(text).map(Value::String),
        (Type::Text | Type::IntOrString, Value::String(_))
        | (Type::Int | Type::IntOrString, Value::Number(_))
        | (Type::Bool, Value::Bool(_))
        | (Type::Raw, _) => Some(value.clone()),
        _ => None,
    };
    let error = || EncodeError::Type { path: String::new(), value: value.clone(), expected: expected(of) };
    leaf.map(Ordered::Leaf).ok_or_else(error)
}

fn fields<'a>(Struct(fields): &Struct, values: &'a Value) -> Result<Ordered<'a>, EncodeError> {
    let mut members = Vec::new();
    for Field { name, omit_empty, of } in *fields {
        let member = member(name, of, values.get(name).unwrap_or(&Value::Null))?;
        if !(*omit_empty && is_empty(of, &member.1)) {
            members.push(member);
        }
    }
    Ok(Ordered::Object(members))
}

/// Go sorts the keys of a map.
fn map<'a>(of: &Type, entries: &'a Map<String, Value>) -> Result<Ordered<'a>, EncodeError> {
    let members = entries.iter().map(|(name, value)| member(name, of, value));
    let mut members = members.collect::<Result<Vec<_>, _>>()?;
    members.sort_unstable_by_key(|(name, _)| *name);
    Ok(Ordered::Object(members))
}

fn member<'a>(name: &'a str, of: &Type, value: &'a Value) -> Result<(&'a str, Ordered<'a>), EncodeError> {
    let value = encoded(of, value).map_err(|error| error.under(format_args!(".{name}")))?;
    Ok((name, value))
}

fn list<'a>(of: &Type, items: &'a [Value]) -> Result<Ordered<'a>, EncodeError> {
    let items = items
        .iter()
        .enumerate()
        .map(|(index, item)| encoded(of, item).map_err(|error| error.under(format_args!("[{index}]"))));
    items.collect::<Result<_, _>>().map(Ordered::List)
}

/// A time as Kubernetes writes it: in UTC and in whole seconds.
fn time(text: &str) -> Option<String> {
    let time: Timestamp = text.parse().ok()?;
    strtime::format("%Y-%m-%dT%H:%M:%SZ", time).ok()
}

/// Whether `omitempty` omits the value. A pointer is empty only if it is null.
fn is_empty(of: &Type, value: &Ordered<'_>) -> bool {
    match (of, value) {
        (Type::Struct(_) | Type::IntOrString | Type::Quantity | Type::Raw | Type::Time, _) => false,
        (_, Ordered::Leaf(Value::Null)) => true,
        (Type::Pointer(_), _) => false,
        (_, Ordered::Object(fields)) => fields.is_empty(),
        (_, Ordered::List(items)) => items.is_empty(),
        (_, Ordered::Leaf(value)) => *value == json!("") || *value == json!(0) || *value == json!(false),
    }
}

/// The type in words.
fn expected(of: &Type) -> &'static str {
    match of {
        Type::Bool => "a boolean",
        Type::Int => "a number",
        Type::IntOrString => "a number or a string",
        Type::Quantity => "a quantity, such as 500m, 1, 128Mi or 2Gi",
        Type::Text => "a string",
        Type::Time => "a time, such as 2026-01-31T08:00:00Z",
        Type::List(_) => "a list",
        Type::Map(_) | Type::Struct(_) => "an object",
        Type::Pointer(of) => expected(of),
        Type::Raw => "JSON",
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1;

    use super::*;
    use crate::structs::{POD_TEMPLATE_SPEC, every_field::every_field};

    #[test]
    fn no_field_of_kubernetes_is_lost() {
        let template = serde_json::to_value(every_field::<v1::PodTemplateSpec>()).unwrap();
        let encoded: Value = encode(POD_TEMPLATE_SPEC, &template).unwrap().read().unwrap();
        similar_asserts::assert_eq!(encoded, template);
    }

    #[test]
    fn fields_have_the_order_of_go_and_unknown_ones_are_dropped() {
        let template = json!({"spec": {"nodeName": "n", "x": 1, "containers": []}, "metadata": {"labels": {"b": "2", "a": "1"}}});
        assert_eq!(
            encode(POD_TEMPLATE_SPEC, &template).unwrap().as_str(),
            r#"{"metadata":{"labels":{"a":"1","b":"2"}},"spec":{"containers":[],"nodeName":"n"}}"#
        );
    }

    #[test]
    fn a_value_of_another_type_is_rejected_with_its_path() {
        let template = json!({"spec": {"containers": [{"resources": {"limits": {"cpu": "lots"}}}]}});
        let error = encode(POD_TEMPLATE_SPEC, &template).unwrap_err().under("podTemplateSpec");
        assert_eq!(
            error.to_string(),
            "podTemplateSpec.spec.containers[0].resources.limits.cpu: \"lots\" is not a quantity, such as 500m, 1, 128Mi or 2Gi"
        );
    }
}
