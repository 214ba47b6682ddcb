//! Responses of the console itself.

use http::{Response, StatusCode};
use serde::Serialize;
use skep_gateway::http::{Body, response};

/// An error as JSON.
pub(crate) fn error(status: StatusCode, message: &str) -> Response<Body> {
    response::json(status, serde_json::json!({"error": message}).to_string())
}

/// A value as JSON.
pub(crate) fn json_of(value: &impl Serialize) -> Response<Body> {
    match serde_json::to_string(value) {
        Ok(text) => response::json(StatusCode::OK, text),
        Err(_) => error(StatusCode::INTERNAL_SERVER_ERROR, "this cannot be written as JSON"),
    }
}

pub(crate) fn not_found() -> Response<Body> {
    error(StatusCode::NOT_FOUND, "there is no such page or object")
}

pub(crate) fn busy() -> Response<Body> {
    error(StatusCode::SERVICE_UNAVAILABLE, "too many sign in at once: try again")
}
