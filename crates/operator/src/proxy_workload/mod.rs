//! What MCPServer and MCPRemoteProxy share: a proxy in front of one server.
//!
//! A kind has a [`ProxyWorkload`] among its inputs, adds its own parts, and computes its children and status from
//! both.

mod container;
mod desired;
mod events;
mod inputs;
mod policies;
mod reported;
mod run_config;
mod spec;
mod status;
pub(crate) mod validate;

pub(crate) use container::add_defaults;
pub(crate) use events::rollout;
pub(crate) use inputs::{LivePod, ProxyWorkload, inline_authz, live_config, live_pods};
pub(crate) use policies::{PoliciesError, policies};
pub(crate) use reported::{not_serving, reported_by_proxy};
pub(crate) use status::{NotReady, PodsState, ProxyStatus, hash, not_ready, pods_state, running_message};
