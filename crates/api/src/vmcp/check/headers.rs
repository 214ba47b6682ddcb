//! Headers of clients that are passed on.

use skep_config::{FieldError, FieldPath};

/// Headers that belong to one connection, to the protocol, or to the virtual server itself.
const OWN: [&str; 28] = [
    "accept",
    "accept-encoding",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "forwarded",
    "host",
    "http2-settings",
    "keep-alive",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
];

pub(super) fn errors(names: &[String]) -> Vec<FieldError> {
    let is_token = |name: &str| {
        let is_tchar = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        !name.is_empty() && name.bytes().all(is_tchar)
    };
    let wrong = |name: &String| match name.to_ascii_lowercase() {
        lower if OWN.contains(&&*lower) => Some("cannot be passed on"),
        _ if !is_token(name) => Some("is not the name of a header"),
        _ => None,
    };
    let each = names.iter().enumerate().filter_map(|(index, name)| {
        let field = FieldPath::from("passthroughHeaders").index(index);
        Some(FieldError::new(field, format!("{name:?} {}", wrong(name)?)))
    });
    each.collect()
}
