//! The keys of a patch that are directives.

use serde_json::{Map, Value};

/// `$patch: delete` or `$patch: replace`, in an object or in an item of a merged list.
pub(crate) const PATCH: &str = "$patch";

/// `$retainKeys: [...]`: the only keys that an object has afterwards.
pub(crate) const RETAIN_KEYS: &str = "$retainKeys";

/// A key of a patch.
pub(crate) enum Key<'a> {
    /// How to treat this object or item.
    Patch,
    /// The keys that stay.
    RetainKeys,
    /// `$setElementOrder/<list>`: the order of the list's items.
    Order(&'a str),
    /// `$deleteFromPrimitiveList/<list>`: the scalars to remove from the list.
    DeleteFrom(&'a str),
    /// A field, not a directive.
    Field,
}

impl<'a> Key<'a> {
    pub(crate) fn of(name: &'a str) -> Self {
        match name.split_once('/') {
            _ if name == PATCH => Self::Patch,
            _ if name == RETAIN_KEYS => Self::RetainKeys,
            Some(("$setElementOrder", list)) => Self::Order(list),
            Some(("$deleteFromPrimitiveList", list)) => Self::DeleteFrom(list),
            _ => Self::Field,
        }
    }
}

/// The lists whose order the patch sets: the directive's key, the list's name and the order.
pub(crate) fn orders(patch: &Map<String, Value>) -> impl Iterator<Item = (&str, &str, &Value)> {
    patch.iter().filter_map(|(key, value)| match Key::of(key) {
        Key::Order(list) => Some((key.as_str(), list, value)),
        _ => None,
    })
}

/// The lists from which the patch removes scalars: the directive's key, the list's name and the scalars.
pub(crate) fn deletions(patch: &Map<String, Value>) -> impl Iterator<Item = (&str, &str, &Value)> {
    patch.iter().filter_map(|(key, value)| match Key::of(key) {
        Key::DeleteFrom(list) => Some((key.as_str(), list, value)),
        _ => None,
    })
}

/// The fields that the patch sets or, with null, deletes.
pub(crate) fn fields(patch: &Map<String, Value>) -> impl Iterator<Item = (&str, &Value)> {
    patch
        .iter()
        .filter(|(key, _)| matches!(Key::of(key), Key::Field))
        .map(|(key, value)| (key.as_str(), value))
}
