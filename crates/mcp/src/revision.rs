//! The MCP revision of a request.

use std::{borrow::Cow, fmt};

use crate::{
    Envelope, Header, Headers, Message, Method,
    header::decoded_name,
    json::{Kind, Raw},
};

/// A revision of MCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Revision {
    /// The first, with the HTTP+SSE transport.
    V2024_11_05,
    /// Streamable HTTP, and batches.
    V2025_03_26,
    /// The `MCP-Protocol-Version` header; no more batches.
    V2025_06_18,
    /// The last one with sessions.
    V2025_11_25,
    /// Stateless.
    V2026_07_28,
}

/// The two kinds of revisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// With a handshake and sessions: until 2025-11-25.
    Legacy,
    /// Each request is on its own: since 2026-07-28.
    Modern,
}

impl Revision {
    /// All of them, the oldest first.
    pub const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];

    /// The revision of this name.
    pub fn named(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.name().as_bytes() == name)
    }

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// How its requests are served.
    pub fn era(self) -> Era {
        if self >= Self::V2026_07_28 { Era::Modern } else { Era::Legacy }
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

const MODERN: &str = "2026-07-28";

/// Why the revision of a request is invalid or not supported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RevisionFault {
    /// A header is missing, malformed or duplicated.
    #[error("header mismatch: {header} {problem}")]
    Header {
        /// The header.
        header: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A header does not match the body.
    #[error("header mismatch: {header} does not match the body")]
    Mismatch {
        /// The header.
        header: &'static str,
        /// Its value.
        value: String,
        /// The value in the body.
        body: String,
    },
    /// Another revision than is served.
    #[error("unsupported protocol version")]
    Unsupported {
        /// The requested revision.
        requested: String,
    },
    /// Something that each request of 2026-07-28 must have.
    #[error("invalid params: {field} must be {expected}")]
    Params {
        /// The field.
        field: &'static str,
        /// What it must be.
        expected: &'static str,
    },
}

/// The era of a message received over HTTP.
///
/// `initialize` is always Legacy. Otherwise a request is Modern if its header or its `_meta` is, and then both must
/// match; there is no fallback for a half-Modern request, except that a client which names an older revision in its
/// header, and none in its `_meta`, is one of that revision that uses the new keys.
///
/// ToolHive's proxyrunner differs in three cases, and responds with 400 in all of them as this does: it returns -32020 where a
/// Modern request has no version in its `_meta`, -32021 where `clientCapabilities` is no object (MCP requires -32602 for
/// both), and -32022 where header and body disagree and the body's version is unknown (MCP's conformance suite requires
/// -32020).
///
/// MCP defines no headers for notifications, so their version header alone determines the era, as it does for responses.
pub fn era(headers: &Headers<'_>, envelope: &Envelope<'_>) -> Result<Era, RevisionFault> {
    const HEADER: &str = "MCP-Protocol-Version";
    let header = match headers.protocol_version {
        Header::Repeated => return Err(RevisionFault::Header { header: HEADER, problem: "is duplicated" }),
        Header::Absent | Header::Once(b"") => None,
        Header::Once(value) => Some(value),
    };
    let modern_header = header == Some(MODERN.as_bytes());
    if !matches!(envelope.message(), Message::Request { .. }) {
        return Ok(if modern_header { Era::Modern } else { Era::Legacy });
    }
    let meta = envelope.meta();
    let signals = [meta.protocol_version(), meta.client_info(), meta.client_capabilities()];
    let modern = modern_header || signals.iter().any(Option::is_some);
    if envelope.method() == Some(Method::Initialize) || !modern {
        return Ok(Era::Legacy);
    }
    let Some(version) = meta.protocol_version() else {
        if header.is_some() && !modern_header {
            return Ok(Era::Legacy);
        }
        return Err(missing_version());
    };
    let version = text(version).ok_or_else(missing_version)?;
    match header {
        Some(header) if header != version.as_bytes() => {
            let value = String::from_utf8_lossy(header).into_owned();
            return Err(RevisionFault::Mismatch { header: HEADER, value, body: version.into_owned() });
        }
        _ if version != MODERN => return Err(RevisionFault::Unsupported { requested: version.into_owned() }),
        None => return Err(RevisionFault::Header { header: HEADER, problem: "is missing" }),
        Some(_) => {}
    }
    match meta.client_capabilities() {
        Some(capabilities) if capabilities.kind() == Kind::Object => Ok(Era::Modern),
        _ => Err(RevisionFault::Params {
            field: "params._meta[\"io.modelcontextprotocol/clientCapabilities\"]",
            expected: "an object",
        }),
    }
}

/// Checks that the headers `Mcp-Method` and `Mcp-Name` of a message match its body.
///
/// To be checked before any policy: a proxy in front may have decided on the headers, and the server will act on the
/// body. Modern requests must have `Mcp-Method`, and those that call a tool, get a prompt or read a resource `Mcp-Name`. Optional
/// headers must match as well, such as the `Mcp-Name` of tasks.
pub fn check_mirrors(headers: &Headers<'_>, envelope: &Envelope<'_>, era: Era) -> Result<(), RevisionFault> {
    let Some(method) = envelope.method_name() else {
        return absent("Mcp-Method", headers.method, "is set for a message without a method");
    };
    let plain = |value| std::str::from_utf8(value).ok().map(Cow::Borrowed);
    let request = matches!(envelope.message(), Message::Request { .. });
    let need = if request && era == Era::Modern { Need::Required } else { Need::Optional };
    same("Mcp-Method", headers.method, need, &method, plain)?;
    let named = envelope.method().is_some_and(Method::requires_name_header);
    let target = match envelope.target() {
        None if named => {
            return absent("Mcp-Name", headers.name, "is set for a message without a target");
        }
        Some(target) if target.kind.is_decided_on() => target,
        _ => return Ok(()),
    };
    let need = if named { need } else { Need::Optional };
    same("Mcp-Name", headers.name, need, &target.name(), decoded_name)
}

#[derive(Clone, Copy)]
enum Need {
    Required,
    Optional,
}

/// A reader of the headers must not see what the body does not have.
fn absent(header: &'static str, value: Header<'_>, problem: &'static str) -> Result<(), RevisionFault> {
    if value == Header::Absent { Ok(()) } else { Err(RevisionFault::Header { header, problem }) }
}

fn same<'a>(
    header: &'static str,
    value: Header<'a>,
    need: Need,
    body: &str,
    decoded: impl Fn(&'a [u8]) -> Option<Cow<'a, str>>,
) -> Result<(), RevisionFault> {
    let problem = match (value, need) {
        (Header::Absent, Need::Optional) => return Ok(()),
        (Header::Absent, Need::Required) => "is missing",
        (Header::Repeated, _) => "is duplicated",
        (Header::Once(value), _) => match decoded(value) {
            Some(value) if value == body => return Ok(()),
            Some(value) => {
                let (value, body) = (value.into_owned(), body.to_owned());
                return Err(RevisionFault::Mismatch { header, value, body });
            }
            None => "is malformed",
        },
    };
    Err(RevisionFault::Header { header, problem })
}

fn text(raw: Raw<'_>) -> Option<Cow<'_, str>> {
    raw.text().ok().map(|text| text.decoded())
}

fn missing_version() -> RevisionFault {
    RevisionFault::Params {
        field: "params._meta[\"io.modelcontextprotocol/protocolVersion\"]",
        expected: "the version as a string",
    }
}
