//! Forwarding requests to a server that speaks HTTP, and its responses to clients.

mod announced;
mod http;
mod reachability;
mod restorable_id;
mod session;
mod sse;
#[cfg(test)]
mod tests;
mod tool_changes;

pub(crate) use http::HttpServer;
pub(crate) use session::stored_initialize;
