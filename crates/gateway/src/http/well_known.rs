//! The protected resource metadata of an endpoint (RFC 9728).

use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use skep_auth::{ProtectedResource, WELL_KNOWN};
use skep_config::run_config::Middleware;

use super::{Body, response};

const CORS: [(HeaderName, &str); 3] = [
    (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, OPTIONS"),
    (header::ACCESS_CONTROL_ALLOW_HEADERS, "mcp-protocol-version, Content-Type, Authorization"),
    (header::ACCESS_CONTROL_MAX_AGE, "86400"),
];

/// The pages under `/.well-known/`.
pub struct WellKnown {
    /// There is one where callers need tokens.
    resource: Option<ProtectedResource>,
}

impl WellKnown {
    /// The pages of the endpoint of a server, with these middlewares.
    pub fn new(middlewares: &[Middleware], server: &str) -> Self {
        Self { resource: Middleware::oidc(middlewares).map(|oidc| ProtectedResource::new(oidc, server)) }
    }

    /// The page that is requested, or that there is none.
    pub fn respond<B>(&self, request: &Request<B>) -> Response<Body> {
        let path = request.uri().path().strip_prefix(WELL_KNOWN);
        match &self.resource {
            Some(resource) if path.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) => {
                metadata_response(resource.description(request.headers()), request)
            }
            _ => not_found(),
        }
    }
}

/// The description. Pages of any origin may read it, as it has nothing to protect.
fn metadata_response<B>(description: Option<String>, request: &Request<B>) -> Response<Body> {
    let mut answer = match description {
        _ if request.method() == Method::OPTIONS => response::empty(StatusCode::NO_CONTENT),
        Some(description) => response::json(StatusCode::OK, description),
        None => not_found(),
    };
    let origin = request.headers().get(header::ORIGIN).cloned();
    let headers = answer.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.unwrap_or(HeaderValue::from_static("*")));
    headers.insert(header::VARY, HeaderValue::from_static("Origin"));
    for (name, value) in CORS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}

fn not_found() -> Response<Body> {
    response::json(StatusCode::NOT_FOUND, r#"{"error":"not_found"}"#)
}
