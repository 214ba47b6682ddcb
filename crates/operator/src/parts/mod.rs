//! What a proxy gets from the configuration objects that its workload refers to: parts of its RunConfig, variables and
//! files.
//!
//! One file per kind of configuration, and nothing here reads: what must be looked up is an argument. They are alike:
//!
//! * `check` says what is wrong with the object by itself. Both its own controller and its users ask it. What the API
//!   server has refused already is not checked again.
//! * A noun is the part of the RunConfig. It takes an object that passed its check.
//! * `add_env` and `add_volumes` add what the part refers to by name or path, and `secrets` lists the Secrets behind
//!   it.

pub(crate) mod auth_server;
pub(crate) mod authz;
pub(crate) mod ca_bundle;
pub(crate) mod chain;
mod checks;
pub(crate) mod entry;
pub(crate) mod external_auth;
pub(crate) mod header_forward;
pub(crate) mod oidc;
pub(crate) mod remote_url;
pub(crate) mod strategy;
pub(crate) mod telemetry;
pub(crate) mod tools;
pub(crate) mod webhooks;
pub(crate) mod workflow;

#[cfg(test)]
mod compat;
#[cfg(test)]
mod samples;

/// A text that says something. In the API, an empty one is the same as none.
fn said(text: &Option<String>) -> Option<&str> {
    text.as_deref().filter(|text| !text.is_empty())
}

/// A text, which is empty if there is none. In files, this means the same.
fn text(text: &Option<String>) -> String {
    text.clone().unwrap_or_default()
}

/// Whether a flag is set.
fn flag(flag: Option<bool>) -> bool {
    flag.unwrap_or_default()
}
