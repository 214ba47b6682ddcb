//! What the operator watches, and what it caches of each object.

mod builtin;
pub mod children;
mod custom;
pub mod facts;
mod referrers;
mod resolved_ref;

use kube::core::DynamicObject;

pub use builtin::*;
pub use custom::{Custom, CustomObject, kind_of};
pub(crate) use referrers::{reference_key, referrers, refresh_referrers};
pub(crate) use resolved_ref::{RefError, Resolution, ResolvedRef, config_hash, missing_key, object};

/// The prefix of this operator's field managers.
pub const MANAGER_PREFIX: &str = "skep-";

/// The field manager of this operator that has applied an object, if any has.
fn manager_of(object: &DynamicObject) -> String {
    let entries = object.metadata.managed_fields.iter().flatten();
    let applied = entries.filter(|entry| entry.operation.as_deref() == Some("Apply"));
    let managers = applied.filter_map(|entry| entry.manager.as_deref());
    managers.into_iter().find(|manager| manager.starts_with(MANAGER_PREFIX)).unwrap_or_default().into()
}
