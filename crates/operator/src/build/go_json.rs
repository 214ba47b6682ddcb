//! JSON as a Go program gives it back that reads it into a struct and writes it again.
//!
//! The rules are those of Go's `encoding/json`: the struct's fields in their order, others dropped; null is as good as
//! not set; what is not set is the zero of its type, and is left out only under `omitempty`, which takes no struct for
//! empty.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};
use skep_converge::quantity;

use super::go_types::{Field, Struct, Type};

/// A value that does not fit the type of its place.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {value} is not {expected}")]
pub(crate) struct Misfit {
    /// From the root down, such as `.spec.containers[0]`.
    path: String,
    value: Value,
    expected: &'static str,
}

impl Misfit {
    /// The same, seen from one level higher up.
    pub(super) fn under(mut self, place: impl std::fmt::Display) -> Self {
        self.path = format!("{place}{}", self.path);
        self
    }
}

/// JSON whose objects keep the order in which they are written.
pub(super) enum Ordered<'a> {
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

/// A struct that was read from the value.
pub(super) fn object<'a>(of: &'static Struct, value: &'a Value) -> Result<Ordered<'a>, Misfit> {
    written(&Type::Struct(of), value)
}

fn written<'a>(of: &Type, value: &'a Value) -> Result<Ordered<'a>, Misfit> {
    let leaf = match (of, value) {
        (Type::Struct(of), Value::Null | Value::Object(_)) => return fields(of, value),
        (Type::List(of), Value::Array(items)) => return list(of, items),
        (Type::Map(of), Value::Object(entries)) => return map(of, entries),
        (Type::List(_) | Type::Map(_) | Type::Pointer(_) | Type::Time, Value::Null) => Some(Value::Null),
        (Type::Pointer(of), value) => return written(of, value),
        (Type::Bool, Value::Null) => Some(json!(false)),
        (Type::Int | Type::IntOrString, Value::Null) => Some(json!(0)),
        (Type::Quantity, Value::Null) => Some(json!("0")),
        (Type::Text, Value::Null) => Some(json!("")),
        (Type::Quantity, Value::String(text)) => quantity(text).map(Value::String),
        (Type::Quantity, Value::Number(number)) => quantity(&number.to_string()).map(Value::String),
        (Type::Time, value) => Time::deserialize(value).ok().map(|time| json!(time)),
        (Type::Text | Type::IntOrString, Value::String(_))
        | (Type::Int | Type::IntOrString, Value::Number(_))
        | (Type::Bool, Value::Bool(_))
        | (Type::Raw, _) => Some(value.clone()),
        _ => None,
    };
    let misfit = || Misfit { path: String::new(), value: value.clone(), expected: expected(of) };
    leaf.map(Ordered::Leaf).ok_or_else(misfit)
}

fn fields<'a>(Struct(fields): &Struct, values: &'a Value) -> Result<Ordered<'a>, Misfit> {
    let mut members = Vec::new();
    for Field { name, omit_empty, of } in *fields {
        let member = member(name, of, values.get(name).unwrap_or(&Value::Null))?;
        if !(*omit_empty && is_empty(of, &member.1)) {
            members.push(member);
        }
    }
    Ok(Ordered::Object(members))
}

/// Go sorts the names of a map.
fn map<'a>(of: &Type, entries: &'a Map<String, Value>) -> Result<Ordered<'a>, Misfit> {
    let members = entries.iter().map(|(name, value)| member(name, of, value));
    let mut members = members.collect::<Result<Vec<_>, _>>()?;
    members.sort_unstable_by_key(|(name, _)| *name);
    Ok(Ordered::Object(members))
}

fn member<'a>(name: &'a str, of: &Type, value: &'a Value) -> Result<(&'a str, Ordered<'a>), Misfit> {
    let value = written(of, value).map_err(|misfit| misfit.under(format_args!(".{name}")))?;
    Ok((name, value))
}

fn list<'a>(of: &Type, items: &'a [Value]) -> Result<Ordered<'a>, Misfit> {
    let items = items
        .iter()
        .enumerate()
        .map(|(index, item)| written(of, item).map_err(|misfit| misfit.under(format_args!("[{index}]"))));
    items.collect::<Result<_, _>>().map(Ordered::List)
}

/// Whether Go takes the value for empty. That a pointer leads to something is enough for it not to be.
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

/// What belongs there, for people.
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
