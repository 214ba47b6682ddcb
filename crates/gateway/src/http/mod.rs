//! HTTP: the listener, request ids and the access log, response bodies, and error responses.

mod access_log;
mod body;
mod connection;
pub mod content_type;
pub mod events;
mod framing;
#[cfg(test)]
mod panics;
mod places;
pub mod response;
mod serve;
mod this_machine;
mod well_known;
mod write_timeout;

pub use access_log::{REQUEST_ID, respond};
pub use body::{Body, BodyError, Ended, Observed, Observer};
pub use places::ConnectionLimits;
pub use response::ErrorResponse;
pub use serve::{Service, serve, serve_within};
pub use this_machine::is_this_machine;
pub use well_known::WellKnown;
