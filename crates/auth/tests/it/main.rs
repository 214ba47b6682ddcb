//! Tokens of a real identity provider, validated over real connections on loopback.

// Helpers of tests may panic, too.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cross_app;
mod endless;
mod exchange;
mod fixture;
mod introspection;
mod keys;
mod network;
mod on_behalf_of;
mod sts;
mod token_types;
mod tokens;
