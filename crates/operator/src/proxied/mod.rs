//! What MCPServers and MCPRemoteProxies have in common: a proxy in front of one server.
//!
//! A kind keeps a [`Proxied`] among its inputs, adds what is its own, and builds its children and status from both.

mod children;
mod container;
pub(crate) mod findings;
mod inputs;
mod notices;
mod run_config;
mod spec;
mod status;

pub(crate) use container::add_defaults;
pub(crate) use findings::{Condition, Findings};
pub(crate) use inputs::{LivePod, Proxied, live_config, live_pods};
pub(crate) use notices::notices;
pub(crate) use run_config::AuthzProblem;
pub(crate) use status::{NotReady, Pods, hash, not_ready, pods_together};
