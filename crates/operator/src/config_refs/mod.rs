//! The kinds of configuration, and what a proxy gets from those that its workload refers to: parts of its RunConfig,
//! environment variables and files.
//!
//! One file per kind of configuration. Nothing here does I/O: referenced objects are arguments. They share a shape:
//!
//! * `impl Config` has the kind's finalizer and its check.
//! * A noun is the part of the RunConfig. It takes an object that passed its check.
//! * `add_env` and `add_volumes` add the variables and files that the part refers to, and `secrets` lists the Secrets
//!   behind them.

pub(crate) mod auth_server;
pub(crate) mod authz;
pub(crate) mod ca_bundle;
pub(crate) mod chain;
mod checks;
pub(crate) mod entry;
pub(crate) mod external_auth;
pub(crate) mod header_forward;
pub(crate) mod oidc;
pub(crate) mod rate_limits;
pub(crate) mod remote_url;
pub(crate) mod telemetry;
pub(crate) mod tools;
pub(crate) mod webhooks;

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
