//! A real control plane for every test.
//!
//! ```no_run
//! # async fn example() {
//! let test = skep_testkit::namespace().await; // etcd and kube-apiserver run, with the CRDs installed
//! let operator = test.user("operator"); // its own credentials, no permissions yet
//! let recording = operator.record();
//! // ... run it ...
//! assert!(recording.writes().await.is_empty());
//! # }
//! ```
//!
//! [`namespace`] shares one control plane between all tests of a run; a test that wants to stop, slow down or cut off
//! the API server starts its own [`ControlPlane`]. The kubelet is a fake, [`kubelet`]; everything
//! else is real.
//!
//! Callers get their tokens from an [`IdentityProvider`], on loopback in the test process, or log in at a [`Dex`]. Proxies share state in a
//! [`Redis`] of the test, and reach other hosts through a [`Tinyproxy`].
//!
//! Every process ends with the test process, however that ends: see [`process`].

// Only tests use this crate: if the setup of a test fails, it should stop there with the reason.
#![allow(clippy::expect_used, clippy::panic)]

pub mod audit;
mod control_plane;
mod dex;
mod fake_sts;
pub mod fixtures;
mod handle;
mod identity_provider;
pub mod json;
pub mod kubelet;
mod link;
mod namespace;
mod pki;
mod ports;
pub mod process;
mod programs;
mod redis;
mod redis_network;
mod redis_nodes;
mod repository;
mod scratch;
mod shared;
mod tinyproxy;
mod user;
mod wait;

pub use control_plane::ControlPlane;
pub use dex::Dex;
pub use fake_sts::FakeSts;
pub use handle::Handle;
pub use identity_provider::{IdentityProvider, Signing};
pub use link::Link;
pub use namespace::Namespace;
pub use ports::free_port;
pub use redis::{Redis, redis_program};
pub use redis_network::{RedisNetwork, ReplyFault};
pub use redis_nodes::{RedisCluster, Sentinel};
pub use repository::{install, repository};
pub use shared::{SHARED_DIR, namespace, share};
pub use tinyproxy::{Tinyproxy, own_address};
pub use user::User;
pub use wait::{PATIENCE, until, until_within};
