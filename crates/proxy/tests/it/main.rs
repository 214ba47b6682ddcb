//! The proxy between a client and a server, all three over real connections on loopback; and its server on a real API
//! server.

// A test panics where it fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod audit;
mod authentication;
mod aws_sts;
mod explain;
mod fake_https;
mod fixture;
mod forwarding;
mod hostile;
mod inspect;
mod kubernetes;
mod load;
mod pdp;
mod policies;
mod rate_limit;
mod service_accounts;
mod sessions;
mod shared_sessions;
mod stdio;
mod telemetry;
mod tools;
mod webhooks;
