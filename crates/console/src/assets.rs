//! The files of the page, as they are in `web/`.

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use skep_gateway::http::{Body, response};

include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// Nothing but the page's own files is loaded or run, and no other page may frame it. `blob:` is for images in results.
const POLICY: &str = include_str!("content-security-policy");

/// The file at this path, or that the browser has it already.
pub(crate) fn file(path: &str, headers: &HeaderMap) -> Option<Response<Body>> {
    let path = if path == "/" { "/index.html" } else { path };
    let (_, content) = FILES.iter().find(|(name, _)| *name == path)?;
    let tag =
        HeaderValue::from_str(&format!("\"{}\"", URL_SAFE_NO_PAD.encode(digest(&SHA256, content)))).ok()?;
    let mut response = response::empty(StatusCode::OK);
    if headers.get(header::IF_NONE_MATCH) == Some(&tag) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else {
        *response.body_mut() = Body::Whole(Bytes::from_static(content));
    }
    let headers = response.headers_mut();
    headers.insert(header::ETAG, tag);
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
