//! Responses of the console itself.

use http::{Response, StatusCode};
use skep_gateway::http::{Body, response};

/// An error as JSON.
pub(crate) fn error(status: StatusCode, message: &str) -> Response<Body> {
    response::json(status, serde_json::json!({"error": message}).to_string())
}

pub(crate) fn not_found() -> Response<Body> {
    error(StatusCode::NOT_FOUND, "there is no such page or object")
}

pub(crate) fn busy() -> Response<Body> {
    error(StatusCode::SERVICE_UNAVAILABLE, "too many sign in at once: try again")
}
