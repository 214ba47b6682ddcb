//! The operator on a real API server.

// A test stops at the spot when something is not as it should be.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod checksum_survives_overrides;
mod compat;
mod drift;
mod faults;
mod fixture;
mod generated;
mod generated_virtual;
mod generation_is_frozen;
mod leader;
mod life;
mod others_own_theirs;
mod pod_volumes_roll_the_pods;
mod quiet;
mod virtual_server;
