//! Passing requests on to a server that speaks HTTP, and its responses back.

mod http;
mod reachability;
mod restorable_id;
mod session;
mod sse;

pub(crate) use http::HttpServer;
