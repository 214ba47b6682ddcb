//! Merging an object of a patch into the template's.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::{
    Error,
    directive::{self, PATCH, RETAIN_KEYS},
    error::{Problem, kind, not},
    list,
    literal::{literal_object, new_field},
    path::Path,
    table::{Field, Type},
};

/// Merges the patch, which is at this path, into an object of this type.
pub(crate) fn object(
    base: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    of: &Type,
    at: &Path<'_>,
) -> Result<(), Error> {
    if let Some(directive) = patch.get(PATCH) {
        *base = match directive.as_str() {
            Some("replace") => literal_object(patch),
            Some("delete") => Map::new(),
            _ => return Err(at.field(PATCH).error(Problem::UnknownDirective(directive.clone()))),
        };
        return Ok(());
    }
    if let Some(keys) = patch.get(RETAIN_KEYS) {
        retain(base, patch, keys, at)?;
    }
    let mut done = BTreeSet::new();
    for (key, name, order) in directive::orders(patch) {
        ordered(base, patch.get(name), of.field(name), order, &at.field(name), &at.field(key))?;
        done.insert(name);
    }
    // Go iterates over the patch in random order; only deleting before adding gives both an effect.
    for (key, name, scalars) in directive::deletions(patch) {
        let scalars = array(scalars, &at.field(key))?;
        if let Some(Value::Array(items)) = base.get_mut(name) {
            list::delete_scalars(items, scalars, &at.field(key))?;
        }
    }
    for (name, value) in directive::fields(patch).filter(|(name, _)| !done.contains(name)) {
        field(base, name, value, of.field(name), &at.field(name))?;
    }
    Ok(())
}

fn field(
    base: &mut Map<String, Value>,
    name: &str,
    value: &Value,
    of: Field,
    at: &Path<'_>,
) -> Result<(), Error> {
    match (base.get_mut(name), value) {
        (_, Value::Null) => {
            base.remove(name);
        }
        (None | Some(Value::Null), _) => {
            base.remove(name);
            base.extend(new_field(value).map(|value| (name.to_owned(), value)));
        }
        (Some(Value::Object(base)), Value::Object(patch)) => object(base, patch, of.object_type(), at)?,
        (Some(Value::Array(base)), Value::Array(patch)) => {
            *base = list::merge(std::mem::take(base), patch, of, at)?;
        }
        (Some(base), _) if is_nested(base) || is_nested(value) => {
            return Err(at.error(Problem::Mismatch { actual: kind(value), template: kind(base) }));
        }
        (Some(base), _) => *base = value.clone(),
    }
    Ok(())
}

/// Merges a list whose order the patch sets.
fn ordered(
    base: &mut Map<String, Value>,
    patch: Option<&Value>,
    of: Field,
    order: &Value,
    at: &Path<'_>,
    order_at: &Path<'_>,
) -> Result<(), Error> {
    let order = array(order, order_at)?;
    let patch = patch.map(|patch| array(patch, at)).transpose()?;
    let name = at.name();
    let template = match base.remove(name) {
        None | Some(Value::Null) => None,
        Some(Value::Array(items)) => Some(items),
        Some(other) => return Err(at.error(Problem::Mismatch { actual: "a list", template: kind(&other) })),
    };
    let merged = list::merge_in_order(template, patch, of, order, at, order_at)?;
    base.extend(merged.map(|items| (name.to_owned(), Value::Array(items))));
    Ok(())
}

/// Keeps in the template only the keys that the patch retains.
fn retain(
    base: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    keys: &Value,
    at: &Path<'_>,
) -> Result<(), Error> {
    let at_keys = at.field(RETAIN_KEYS);
    let mut retained = BTreeSet::new();
    for (index, key) in array(keys, &at_keys)?.iter().enumerate() {
        let key = key.as_str().ok_or_else(|| at_keys.item(index).error(not("a string", key)))?;
        retained.insert(key);
    }
    for (name, value) in directive::fields(patch) {
        if !value.is_null() && !retained.contains(name) {
            return Err(at.error(Problem::NotRetained(name.to_owned())));
        }
    }
    base.retain(|name, _| retained.contains(name.as_str()));
    Ok(())
}

fn array<'v>(value: &'v Value, at: &Path<'_>) -> Result<&'v [Value], Error> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| at.error(not("a list", value)))
}

fn is_nested(value: &Value) -> bool {
    value.is_object() || value.is_array()
}
