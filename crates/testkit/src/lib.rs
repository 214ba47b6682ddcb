//! A real control plane under every test.
//!
//! ```no_run
//! # async fn example() {
//! let test = skep_testkit::namespace().await; // etcd and kube-apiserver run, with the CRDs installed
//! let operator = test.user("operator"); // its own credentials, no permissions yet
//! let recording = operator.record();
//! // ... let it work ...
//! assert!(recording.writes().await.is_empty());
//! # }
//! ```
//!
//! [`namespace`] shares one control plane between all tests of a run; a test that wants to stop, slow down or cut off
//! the API server starts a [`ControlPlane`] of its own. What the kubelet would do is done by [`kubelet`], which is a
//! stand-in; everything else is the real thing.
//!
//! Callers get their tokens from an [`IdentityProvider`], on loopback in the test process. What proxies share is in a
//! [`Redis`] of the test's own.
//!
//! Every process ends with the test process, however that ends: see [`process`].

// Only tests use this crate: when a test cannot be arranged, it should stop at the spot and say why.
#![allow(clippy::expect_used, clippy::panic)]

pub mod audit;
mod control_plane;
pub mod fixtures;
mod identity_provider;
pub mod kubelet;
mod link;
mod namespace;
mod pki;
pub mod process;
mod programs;
mod redis;
mod scratch;
mod shared;
mod user;

pub use control_plane::ControlPlane;
pub use identity_provider::{IdentityProvider, Signing};
pub use link::Link;
pub use namespace::Namespace;
pub use redis::Redis;
pub use shared::{SHARED_DIR, namespace, share};
pub use user::User;
