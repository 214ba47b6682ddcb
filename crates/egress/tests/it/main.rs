//! Requests through proxies, and by HTTP/2.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod fake_proxy;
mod proxied;
mod server;
