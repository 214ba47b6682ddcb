//! What MCPServer and MCPRemoteProxy share: a proxy in front of one server.
//!
//! A kind has a [`ProxyWorkload`] among its inputs, adds its own parts, and computes its children and status from
//! both.

mod container;
mod desired;
mod events;
mod inputs;
mod reported;
mod run_config;
mod spec;
mod status;

pub(crate) use container::add_defaults;
pub(crate) use events::rollout;
pub(crate) use inputs::{LivePod, ProxyWorkload, live_config, live_pods};
pub(crate) use reported::{not_serving, reported_by_proxy};
pub(crate) use run_config::ValidParts;
pub(crate) use status::{NotReady, PodsState, ProxyStatus, not_ready, pods_state, running_message};
