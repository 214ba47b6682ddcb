//! A stdio server.
//!
//! Such a server has one stream and knows one client. Many share it here: a [`bridge`] is in between, [`link`] keeps
//! the server running, and one of two fronts serves the clients, [`streamable`] or [`http_sse`].
//!
//! Of a client's message, the id and the progress token are replaced by a number, and restored in what the server
//! sends back; every other byte stays what it was. What the server sends goes to the clients that it concerns ([`incoming`]):
//!
//! | message | goes to |
//! | --- | --- |
//! | response, progress, messages of a subscription of 2026-07-28 | the client of the request |
//! | changes of a resource | the sessions that are subscribed to it |
//! | changes of lists | all sessions |
//! | log messages | the sessions that have set a level, or the only one with a request in flight; if none has, the only session |
//! | requests to clients | the session with a request in flight, if it is one; or none |
//! | anything else | the only session that is concerned; or none |
//!
//! What is kept is bounded, see [`limits`](crate::limits). A client that reads too slowly loses its own stream.

mod bridge;
mod events;
mod handshake;
mod http_sse;
mod incoming;
mod inflight;
mod level;
mod link;
mod member;
mod outbox;
mod outgoing;
mod queue;
mod replaced;
mod router;
mod server;
mod status;
mod streamable;
mod waiting;

pub(crate) use bridge::Status;
pub(crate) use server::StdioServer;
pub use server::{REQUEST_TIMEOUT, request_time};

/// How deep the server's messages may be nested: as deep as can be checked.
const DEPTH: u32 = 127;
