//! HTTP: the listener, request ids and the access log, response bodies, and error responses.

mod access_log;
mod body;
pub mod content_type;
pub mod events;
mod framing;
pub mod response;
mod serve;

pub use access_log::{REQUEST_ID, respond};
pub use body::{Body, BodyError, Ended, Observed, Observer};
pub use response::ErrorResponse;
pub use serve::{Service, serve};
