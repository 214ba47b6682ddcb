//! Names that callers choose, as values of labels.
//!
//! Every value of a label is a series that is kept for ever, here and in every collector. So their number is bounded, and
//! names that the server does not know do not count towards the bound: they would crowd out the real ones.

use std::{
    borrow::Cow,
    collections::HashSet,
    sync::{PoisonError, RwLock},
};

use crate::{limits, truncate::truncate};

/// The value for all other names.
pub(super) const OTHER: &str = "_OTHER";

/// The names that have their own series.
#[derive(Default)]
pub(super) struct Names(RwLock<HashSet<Box<str>>>);

impl Names {
    /// The value for a name. `real` is whether a response of the server has shown that the name exists.
    pub(super) fn label<'a>(&self, name: &'a str, real: bool) -> Cow<'a, str> {
        let name = truncate(name);
        if self.0.read().unwrap_or_else(PoisonError::into_inner).contains(&*name) {
            return name;
        }
        if !real {
            return Cow::Borrowed(OTHER);
        }
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= limits::LABEL_VALUES && !known.contains(&*name) {
            return Cow::Borrowed(OTHER);
        }
        known.insert((&*name).into());
        name
    }
}

/// The address of a resource without what may be secret in it: a user's name and password, a query.
pub(super) fn bare(uri: &str) -> Cow<'_, str> {
    let path = uri.split(['?', '#']).next().unwrap_or_default();
    match path.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, after) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            match authority.rsplit_once('@') {
                Some((_, host)) => Cow::Owned(format!("{scheme}://{host}{after}")),
                None => Cow::Borrowed(path),
            }
        }
        None => Cow::Borrowed(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded_and_made_up_ones_take_no_room() {
        let names = Names::default();
        for index in 0..10 * limits::LABEL_VALUES {
            assert_eq!(names.label(&format!("made-up-{index}"), false), OTHER);
        }
        assert_eq!(names.label("read", true), "read");
        assert_eq!(names.label("read", false), "read");
        for index in 1..limits::LABEL_VALUES {
            assert_eq!(names.label(&format!("tool-{index}"), true), format!("tool-{index}"));
        }
        assert_eq!(names.label("one-more", true), OTHER);
        assert_eq!(names.label("read", true), "read");
    }

    #[test]
    fn addresses_of_resources_are_stripped_of_secrets() {
        for (uri, expected) in [
            ("file:///a/b", "file:///a/b"),
            ("db://user:pass@host/table?token=1#x", "db://host/table"),
            ("https://host/a@b", "https://host/a@b"),
            ("note?key=1", "note"),
        ] {
            assert_eq!(bare(uri), expected);
        }
    }
}
