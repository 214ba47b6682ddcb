//! Ids of sessions, in the revisions that have sessions.

use std::fmt;

/// The longest id that is accepted. A server may use a JWT.
pub const SESSION_ID_BYTES: usize = 1024;

/// The value of an `Mcp-Session-Id` header. It suffices to use the session, so it must not be logged: `Debug` shows
/// its beginning only.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(Box<str>);

/// An invalid `Mcp-Session-Id` header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Mcp-Session-Id must be 1 to {SESSION_ID_BYTES} visible ASCII characters")]
pub struct NotASessionId;

impl SessionId {
    /// A new one: 122 random bits from the operating system, as a UUID, which ToolHive's session store requires.
    pub fn random() -> Self {
        Self(uuid::Uuid::new_v4().to_string().into())
    }

    /// The id of a header. MCP allows what is visible in ASCII: 0x21 to 0x7E.
    pub fn parse(header: &[u8]) -> Result<Self, NotASessionId> {
        // All bytes are looked at, so that many are compared at once: an id that carries an `initialize` is long.
        let visible = header.iter().fold(true, |visible, byte| visible & byte.is_ascii_graphic());
        match std::str::from_utf8(header) {
            Ok(id) if visible && (1..=SESSION_ID_BYTES).contains(&id.len()) => Ok(Self(id.into())),
            _ => Err(NotASessionId),
        }
    }

    /// The id itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// As much of it as may be shown: eight of a UUID's characters distinguish sessions and leave 90 bits to guess. A
    /// short id shows nothing, whatever a proxy has added to it after a `~`.
    pub fn beginning(&self) -> &str {
        let id = self.0.split('~').next().unwrap_or_default();
        if id.len() < 32 { "" } else { &id[..8] }
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SessionId({}…)", self.beginning())
    }
}
