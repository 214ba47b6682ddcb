//! Passing requests on to a server that speaks HTTP, and its answers back.

mod answered;
mod client;
mod connections;
mod head;
mod http;
mod reach;
mod restorable_id;
mod session;
mod sse;
mod target;

pub(crate) use answered::Answered;
pub(crate) use head::{is_reserved, without_connection};
pub(crate) use http::HttpServer;
pub(crate) use target::Target;
