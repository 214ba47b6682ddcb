//! The kinds of configuration, and the references of workloads to them.
//!
//! One file per kind of configuration, with everything that follows from a reference to it:
//!
//! * `impl Config` has the kind's finalizer and its check.
//! * `impl ConfigRef<…>` has the effects of a reference: `validate` adds its condition, `add_to` its part of the
//!   RunConfig, `add_env` and `add_volumes` the variables and files that this part refers to, and `secrets` lists the
//!   Secrets behind them. An absent reference has no effects. [`ConfigRef`] itself looks the configuration up and has
//!   its hash for the status.

pub(crate) mod auth_server;
pub(crate) mod authz;
pub(crate) mod ca_bundle;
pub(crate) mod chain;
mod checks;
pub(crate) mod entry;
pub(crate) mod external_auth;
mod group;
pub(crate) mod header_forward;
pub(crate) mod oidc;
pub(crate) mod rate_limits;
mod reference;
pub(crate) mod remote_url;
pub(crate) mod session_storage;
pub(crate) mod telemetry;
pub(crate) mod tools;
pub(crate) mod webhooks;

pub(crate) use reference::{ConfigRef, RefReasons};

#[cfg(test)]
mod compat;
#[cfg(test)]
mod samples;

/// A string, unless it is empty. In the API, an empty string means the same as none.
fn non_empty(text: &Option<String>) -> Option<&str> {
    text.as_deref().filter(|text| !text.is_empty())
}

/// A string, or the empty one. In files, an empty string means the same as none.
fn or_empty(text: &Option<String>) -> String {
    text.clone().unwrap_or_default()
}

/// Whether a flag is set.
fn flag(flag: Option<bool>) -> bool {
    flag.unwrap_or_default()
}
