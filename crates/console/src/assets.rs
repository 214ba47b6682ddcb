//! The files of the page, as they are in `web/`.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use skep_gateway::http::{Body, response};

include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// Nothing but the page's own files is loaded or run, and no other page may frame it. `blob:` is for images in results.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob:; \
                      form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";

/// The file at this path.
pub(crate) fn file(path: &str) -> Option<Response<Body>> {
    let path = if path == "/" { "/index.html" } else { path };
    let (_, content) = FILES.iter().find(|(name, _)| *name == path)?;
    let mut response = response::empty(StatusCode::OK);
    *response.body_mut() = Body::Whole(Bytes::from_static(content));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type(path)));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    Some(response)
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "svg" => "image/svg+xml",
        _ => "application/octet-stream",
    }
}
