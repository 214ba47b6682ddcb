//! What the operator watches, and what it caches of each object.

mod builtin;
pub mod children;
mod custom;
pub mod facts;
mod referrers;
mod resolved_ref;

use std::collections::HashMap;

use kube::core::DynamicObject;
use skep_api::{for_each_kind, kinds::ApiKind};
use skep_world::Reader;

pub use builtin::*;
pub use custom::{Custom, CustomObject, kind_of};
pub(crate) use referrers::{listed, reference_key, referrers, refresh_referrers};
pub(crate) use resolved_ref::{RefError, ResolvedRef, config_hash, missing_key, missing_secrets, object};

/// The pull secrets that OpenShift has added to ServiceAccounts, by account. The list is owned as a whole, so they are part of
/// what is applied: otherwise both would remove the other's.
#[derive(Default)]
pub(crate) struct PlatformSecrets(HashMap<String, Vec<String>>);

impl PlatformSecrets {
    /// Those of these accounts.
    pub(crate) fn read(reader: &mut Reader, accounts: impl IntoIterator<Item = String>) -> Self {
        let of_account = |account: String| {
            let secrets = reader.get::<ServiceAccounts>(&account)?.cached.facts;
            Some((account, secrets))
        };
        Self(accounts.into_iter().filter_map(of_account).collect())
    }

    /// Those of an account.
    pub(crate) fn of(&self, account: &str) -> &[String] {
        self.0.get(account).map(Vec::as_slice).unwrap_or_default()
    }
}

/// The prefix of this operator's field managers.
const MANAGER_PREFIX: &str = "skep-";

/// The field manager of a kind's controller: one for each, so that one never prunes what another owns.
pub fn field_manager<K: ApiKind>() -> String {
    format!("{MANAGER_PREFIX}{}", kind_of::<K>().kind.to_lowercase())
}

/// The controller's field manager that has applied an object, if any has. Proxies are managers as well.
fn manager_of(object: &DynamicObject) -> &str {
    let entries = object.metadata.managed_fields.iter().flatten();
    let applied = entries.filter(|entry| entry.operation.as_deref() == Some("Apply"));
    let mut managers = applied.filter_map(|entry| entry.manager.as_deref());
    let is_controller = |manager: &&str| {
        let of = manager.strip_prefix(MANAGER_PREFIX);
        of.is_some_and(|of| KINDS.iter().any(|kind| kind.eq_ignore_ascii_case(of)))
    };
    managers.find(is_controller).unwrap_or_default()
}

macro_rules! names {
    ($($kind:ident),+) => { &[$(stringify!($kind)),+] };
}

/// The names of all kinds.
const KINDS: &[&str] = for_each_kind!(names);
