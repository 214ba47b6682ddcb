//! Merging a list of a patch into the template's, and the order of its items.

use serde_json::{Map, Value};

use crate::{
    Error,
    directive::PATCH,
    error::{Problem, kind, not},
    literal::{literal, literal_object, new_field},
    merge,
    path::Path,
    table::{Field, Type},
};

/// The template's list with the patch's merged into it.
pub(crate) fn merge(
    base: Vec<Value>,
    patch: &[Value],
    of: Field,
    at: &Path<'_>,
) -> Result<Vec<Value>, Error> {
    match of {
        Field::Keyed(key, of) => keyed(base, patch, key, of, at),
        Field::Set => Ok(union(base, patch)),
        Field::Ordinary | Field::Object(_) => Ok(patch.iter().map(literal).collect()),
    }
}

/// The same, in the order of `$setElementOrder`. `None` if neither side has the list.
pub(crate) fn merge_in_order(
    base: Option<Vec<Value>>,
    patch: Option<&[Value]>,
    of: Field,
    order: &[Value],
    at: &Path<'_>,
    order_at: &Path<'_>,
) -> Result<Option<Vec<Value>>, Error> {
    let identity = Identity::of(of);
    let order = identity.of_patch(order.iter().enumerate(), order_at)?;
    let live = identity.of_template(base.as_deref().unwrap_or_default(), at)?;
    let changes = patch.unwrap_or_default().iter().enumerate();
    let changed = identity.of_patch(changes.filter(|(_, item)| item.get(PATCH).is_none()), at)?;
    if !order.is_empty() && !is_subsequence(&changed, &order) {
        return Err(order_at.error(Problem::OtherOrder));
    }
    let merged = match (base, patch) {
        (None, None) => return Ok(None),
        (Some(base), None) => base,
        (None, Some(patch)) => patch.iter().filter_map(new_field).collect(),
        (Some(base), Some(patch)) => merge(base, patch, of, at)?,
    };
    Ok(Some(arrange(merged, identity, &order, &live)))
}

/// Removes these scalars from the list, for every merge strategy.
pub(crate) fn delete_scalars(base: &mut Vec<Value>, scalars: &[Value], at: &Path<'_>) -> Result<(), Error> {
    if base.iter().chain(scalars).any(Value::is_object) {
        return Err(at.error(Problem::NotScalars));
    }
    base.retain(|item| !scalars.contains(item));
    Ok(())
}

fn keyed(
    mut base: Vec<Value>,
    patch: &[Value],
    key: &'static str,
    of: &Type,
    at: &Path<'_>,
) -> Result<Vec<Value>, Error> {
    let identity = Identity::Key(key);
    identity.of_template(&base, at)?;
    let mut changes: Vec<(usize, &Value, &Map<String, Value>)> = Vec::new();
    let mut replace = false;
    for (index, item) in patch.iter().enumerate() {
        let at = at.item(index);
        let fields = item.as_object().ok_or_else(|| at.error(not("an object", item)))?;
        match fields.get(PATCH) {
            None => changes.push((index, identity.of_item(item, &at)?, fields)),
            Some(directive) if directive == "delete" => {
                let deleted = identity.of_item(item, &at)?;
                base.retain(|item| item.get(key) != Some(deleted));
            }
            Some(directive) if directive == "replace" => replace = true,
            Some(other) => return Err(at.field(PATCH).error(Problem::UnknownDirective(other.clone()))),
        }
    }
    if replace {
        return Ok(changes.into_iter().map(|(_, _, fields)| literal_object(fields).into()).collect());
    }
    let live = identity.of_template(&base, at)?;
    let order: Vec<Value> = changes.iter().map(|(_, id, _)| (*id).clone()).collect();
    for (index, id, fields) in changes {
        let same = base.iter_mut().find(|item| item.get(key) == Some(id)).and_then(Value::as_object_mut);
        match same {
            Some(same) => merge::object(same, fields, of, &at.item(index))?,
            None => base.push(literal_object(fields).into()),
        }
    }
    Ok(arrange(base, identity, &order, &live))
}

fn union(base: Vec<Value>, patch: &[Value]) -> Vec<Value> {
    let mut both: Vec<Value> = Vec::with_capacity(base.len() + patch.len());
    for item in base.iter().chain(patch) {
        if !both.contains(item) {
            both.push(item.clone());
        }
    }
    arrange(both, Identity::Itself, patch, &base)
}

/// Items in `order` have that order, the others that of the `live` list. Where both meet, an item that
/// is not in `order` comes as late as possible without passing one in `order` that it precedes in the live list.
fn arrange(items: Vec<Value>, identity: Identity, order: &[Value], live: &[Value]) -> Vec<Value> {
    let place = |ids: &[Value], item: &Value| ids.iter().position(|id| identity.id(item) == Some(id));
    let (mut named, mut others): (Vec<_>, Vec<_>) =
        items.into_iter().partition(|item| place(order, item).is_some());
    named.sort_by_key(|item| place(order, item));
    others.sort_by_key(|item| place(live, item).unwrap_or(usize::MAX));
    let mut arranged = Vec::with_capacity(named.len() + others.len());
    let mut others = others.into_iter().peekable();
    for item in named {
        let precedes = |other: &Value| match (place(live, other), place(live, &item)) {
            (Some(other), Some(item)) => other < item,
            _ => false,
        };
        while let Some(other) = others.next_if(precedes) {
            arranged.push(other);
        }
        arranged.push(item);
    }
    arranged.extend(others);
    arranged
}

fn is_subsequence(part: &[Value], whole: &[Value]) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|item| rest.any(|other| other == item))
}

/// What makes two items of a list the same.
#[derive(Clone, Copy)]
enum Identity {
    /// The value under this key.
    Key(&'static str),
    /// The scalar that the item is.
    Itself,
}

impl Identity {
    fn of(field: Field) -> Self {
        if let Field::Keyed(key, _) = field { Self::Key(key) } else { Self::Itself }
    }

    fn id(self, item: &Value) -> Option<&Value> {
        match self {
            Self::Key(key) => item.get(key).filter(|id| !id.is_null()),
            Self::Itself => (!item.is_object()).then_some(item),
        }
    }

    fn of_item<'v>(self, item: &'v Value, at: &Path<'_>) -> Result<&'v Value, Error> {
        self.id(item).ok_or_else(|| {
            at.error(match self {
                Self::Key(key) if item.is_object() => Problem::NoKey { key, list: at.name().to_owned() },
                Self::Key(_) => not("an object", item),
                Self::Itself => Problem::NotMerged,
            })
        })
    }

    fn of_patch<'v>(
        self,
        items: impl Iterator<Item = (usize, &'v Value)>,
        at: &Path<'_>,
    ) -> Result<Vec<Value>, Error> {
        items.map(|(index, item)| self.of_item(item, &at.item(index)).cloned()).collect()
    }

    fn of_template(self, items: &[Value], at: &Path<'_>) -> Result<Vec<Value>, Error> {
        let id = |(index, item)| {
            self.id(item).cloned().ok_or_else(|| {
                at.error(match self {
                    Self::Key(key) if item.is_object() => {
                        Problem::NoKeyInTemplate { key, list: at.name().to_owned(), index }
                    }
                    Self::Key(_) => Problem::Mismatch { actual: "an object", template: kind(item) },
                    Self::Itself => Problem::NotMerged,
                })
            })
        };
        items.iter().enumerate().map(id).collect()
    }
}
