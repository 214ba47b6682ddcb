//! Session ids that carry what is needed to restore their session.
//!
//! Where callers are anonymous and sessions are in memory, the id that a client gets is the server's id and the client's
//! `initialize`. Any proxy that receives it can start the session again, although the proxy and the server that knew it
//! have ended. A client can forge such an id, which gains it nothing: the `initialize` passes through all middlewares, as if
//! the client had sent it.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use skep_mcp::{SESSION_ID_BYTES, SessionId};

/// Separates the server's id from the message. It is no character of base64url.
const SEPARATOR: char = '~';

/// The parts of a client's session id.
pub(super) struct RestorableId<'a> {
    /// The id that the server gave the session when it started.
    pub(super) server_id: &'a str,
    encoded: &'a str,
}

/// The id for a client whose `initialize` the server responded to with `server_id`. A long message is not carried.
pub(super) fn restorable_id(server_id: &SessionId, initialize: &[u8]) -> SessionId {
    let plain = server_id.as_str();
    let room = SESSION_ID_BYTES.saturating_sub(plain.len() + 1);
    let fits = base64::encoded_len(initialize.len(), false).is_some_and(|length| length <= room);
    let id = if fits {
        format!("{plain}{SEPARATOR}{}", URL_SAFE_NO_PAD.encode(initialize))
    } else if plain.contains(SEPARATOR) {
        // An empty message, so that the end of the server's own id is not mistaken for one.
        format!("{plain}{SEPARATOR}")
    } else {
        return server_id.clone();
    };
    SessionId::parse(id.as_bytes()).unwrap_or_else(|_| server_id.clone())
}

impl<'a> RestorableId<'a> {
    /// The parts of an id, if it may have been made by [`restorable_id`].
    pub(super) fn split(id: &'a str) -> Option<Self> {
        let at = memchr::memrchr(SEPARATOR as u8, id.as_bytes())?;
        let (server_id, encoded) = (&id[..at], &id[at + 1..]);
        (!server_id.is_empty()).then_some(Self { server_id, encoded })
    }

    /// The carried message, as yet unchecked.
    pub(super) fn initialize(&self) -> Option<Bytes> {
        if self.encoded.is_empty() {
            return None;
        }
        URL_SAFE_NO_PAD.decode(self.encoded).ok().map(Bytes::from)
    }

    /// Whether no message is carried, as it was too long.
    pub(super) fn is_plain(&self) -> bool {
        self.encoded.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> SessionId {
        SessionId::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn an_id_splits_into_its_parts() {
        for server_id in ["one", "0b0ef4f6-2c5e-4f0f-9f3b-9d2f2e3f5a10", "a~b", "one~eyJ9"] {
            let made = restorable_id(&id(server_id), b"{\"method\":\"initialize\"}");
            let parts = RestorableId::split(made.as_str()).unwrap();
            assert_eq!(parts.server_id, server_id);
            assert_eq!(parts.initialize().unwrap(), &b"{\"method\":\"initialize\"}"[..]);
        }
    }

    #[test]
    fn a_long_message_is_not_carried() {
        let long = vec![b' '; 800];
        assert_eq!(restorable_id(&id("one"), &long), id("one"));
        let made = restorable_id(&id("a~b"), &long);
        let parts = RestorableId::split(made.as_str()).unwrap();
        assert_eq!((parts.server_id, parts.is_plain(), parts.initialize()), ("a~b", true, None));
        let longest = "x".repeat(SESSION_ID_BYTES);
        assert_eq!(restorable_id(&id(&longest), b"{}"), id(&longest));
    }

    #[test]
    fn an_id_of_another_shape_carries_nothing() {
        assert!(RestorableId::split("one").is_none() && RestorableId::split("~eyJ9").is_none());
        for encoded in ["", "e", "e30=", "e31", "+/8", "e 30"] {
            let id = format!("one~{encoded}");
            assert_eq!(RestorableId::split(&id).unwrap().initialize(), None, "{encoded}");
        }
    }
}
