//! The kinds that have a condition or an event. What all configurations have is declared once, for `AnyConfig`.

use crate::{
    conditions::{ConditionType, ReasonEntry},
    events::EventEntry,
    for_each_kind,
};

/// In a declaration: the kinds of configuration.
const ANY_CONFIG: &str = "AnyConfig";

/// The kinds of configuration: their names end so.
pub fn config_kinds() -> impl Iterator<Item = &'static str> {
    macro_rules! names {
        ($($kind:ident),+) => { [ $(stringify!($kind)),+ ] };
    }
    for_each_kind!(names).into_iter().filter(|name| name.ends_with("Config"))
}

/// The kinds whose objects can have a reason of this condition. `AnyConfig` means those that no other reason with the
/// same status names.
pub fn kinds_of_reason(condition: &ConditionType, entry: &ReasonEntry) -> Vec<&'static str> {
    let is_named = |kind: &str| {
        let others = condition.reasons.iter().filter(|other| other.reason.met == entry.reason.met);
        others.flat_map(|other| other.kinds).any(|named| *named == kind)
    };
    expanded(entry.kinds, |kind| !is_named(kind))
}

/// The kinds that an event is about.
pub fn kinds_of_event(event: &EventEntry) -> Vec<&'static str> {
    expanded(event.kinds, |_| true)
}

fn expanded(declared: &[&'static str], is_meant: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let is_generic = declared.contains(&ANY_CONFIG);
    let named = declared.iter().copied().filter(|kind| *kind != ANY_CONFIG);
    let mut kinds: Vec<&str> =
        named.chain(config_kinds().filter(|kind| is_generic && is_meant(kind))).collect();
    kinds.sort_unstable();
    kinds
}
