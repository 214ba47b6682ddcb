//! The program itself, as a pod starts it.

// A test panics when an expectation fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod authorization_server;
mod chart;
mod compat;
mod demo_server;
mod dex;
mod docs;
mod egress;
mod explain;
mod generation_is_frozen;
mod help;
mod issuer_variables;
mod kubectl;
mod layout;
mod leaving;
mod login;
mod logs;
mod plan;
mod proxy;
mod run;
mod sessions_outlive_a_proxy;
mod vmcp_init;
mod vmcp_validate;
mod why_pods;
