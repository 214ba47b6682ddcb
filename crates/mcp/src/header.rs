//! The headers that 2026-07-28 mirrors from the body.

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};

/// The revision, on every request since 2025-06-18.
pub const MCP_PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// The method, on every request of 2026-07-28.
pub const MCP_METHOD: &str = "mcp-method";
/// What the request names, since 2026-07-28.
pub const MCP_NAME: &str = "mcp-name";
/// The beginning of the names of headers that mirror parameters of a tool, since 2026-07-28.
pub const MCP_PARAM_PREFIX: &str = "mcp-param-";
/// The session, until 2025-11-25.
pub const MCP_SESSION_ID: &str = "mcp-session-id";

const ENCODED: (&str, &str) = ("=?base64?", "?=");

/// The headers of a request that mirror its body.
#[derive(Clone, Copy, Debug, Default)]
pub struct Headers<'a> {
    /// [`MCP_PROTOCOL_VERSION`]
    pub protocol_version: Header<'a>,
    /// [`MCP_METHOD`]
    pub method: Header<'a>,
    /// [`MCP_NAME`]
    pub name: Header<'a>,
}

/// The values of one header of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Header<'a> {
    /// Nothing.
    #[default]
    Absent,
    /// One value, without the white space around it, which is no part of it (RFC 9110, section 5.5).
    Once(&'a [u8]),
    /// Several: a reader may take any of them.
    Repeated,
}

impl<'a> Header<'a> {
    /// The header with these values.
    pub fn of(values: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut values = values.into_iter();
        match (values.next(), values.next()) {
            (None, _) => Self::Absent,
            (Some(value), None) => Self::Once(value.trim_ascii()),
            (Some(_), Some(_)) => Self::Repeated,
        }
    }
}

/// The name in a value of `Mcp-Name`, if it is well-formed: visible ASCII and spaces, or UTF-8 in base64 between markers,
/// which are case-sensitive.
pub fn decoded_name(value: &[u8]) -> Option<Cow<'_, str>> {
    let plain = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~');
    let text = std::str::from_utf8(value).ok().filter(|_| value.iter().all(plain))?;
    match text.strip_prefix(ENCODED.0).and_then(|rest| rest.strip_suffix(ENCODED.1)) {
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok().map(Cow::Owned),
        None => Some(Cow::Borrowed(text)),
    }
}

/// The value of `Mcp-Name` for this name.
pub fn encoded_name(name: &str) -> Cow<'_, str> {
    let plain = name.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && name.trim_ascii() == name
        && !(name.starts_with(ENCODED.0) && name.ends_with(ENCODED.1));
    if plain {
        return Cow::Borrowed(name);
    }
    Cow::Owned(format!("{}{}{}", ENCODED.0, STANDARD.encode(name), ENCODED.1))
}
