//! Absolute URIs (RFC 3986), as they are written: nothing is decoded or normalised.

use std::net::IpAddr;

/// The parts of an absolute URI.
#[derive(Clone, Copy)]
pub(crate) struct Uri<'a> {
    pub(crate) scheme: &'a str,
    pub(crate) user: Option<&'a str>,
    pub(crate) host: &'a str,
    pub(crate) port: Option<&'a str>,
    /// Path and query.
    pub(crate) rest: &'a str,
    pub(crate) has_fragment: bool,
}

impl<'a> Uri<'a> {
    /// The parts, if it is one: only characters that a URI can have, and a scheme.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let fits =
            |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'\\' | b'"' | b'<' | b'>' | b'^' | b'`');
        if !text.bytes().all(fits) {
            return None;
        }
        let (scheme, after) = text.split_once(':')?;
        let mut letters = scheme.bytes();
        let is_scheme = letters.next().is_some_and(|first| first.is_ascii_alphabetic())
            && letters.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
        if !is_scheme {
            return None;
        }
        let (after, has_fragment) = match after.split_once('#') {
            Some((before, _)) => (before, true),
            None => (after, false),
        };
        let Some(after) = after.strip_prefix("//") else {
            return Some(Self { scheme, user: None, host: "", port: None, rest: after, has_fragment });
        };
        let end = after.find(['/', '?']).unwrap_or(after.len());
        let (authority, rest) = after.split_at(end);
        let (user, address) = match authority.rsplit_once('@') {
            Some((user, address)) => (Some(user), address),
            None => (None, authority),
        };
        let bracketed = address.strip_prefix('[').and_then(|inner| inner.split_once(']'));
        let (host, port) = match bracketed {
            Some((host, "")) => (host, None),
            Some((host, port)) => (host, Some(port.strip_prefix(':')?)),
            None => match address.rsplit_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (address, None),
            },
        };
        if port.is_some_and(|port| port.parse::<u16>().map_or(true, |port| port == 0)) {
            return None;
        }
        Some(Self { scheme, user, host, port, rest, has_fragment })
    }

    /// Whether it has this scheme, in any case.
    pub(crate) fn is(&self, scheme: &str) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme)
    }

    /// Whether the host is this machine (RFC 8252, section 8.3, and RFC 6761, section 6.3).
    pub(crate) fn is_loopback(&self) -> bool {
        let name = self.host.to_ascii_lowercase();
        let is_address = self.host.parse().is_ok_and(|address: IpAddr| address.is_loopback());
        name == "localhost" || name.ends_with(".localhost") || is_address
    }

    /// Whether the host is a name of letters, digits and hyphens, or an address.
    pub(crate) fn has_host(&self) -> bool {
        let is_label = |label: &str| {
            !label.is_empty()
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        self.host.parse::<IpAddr>().is_ok() || self.host.split('.').all(is_label)
    }

    /// Whether a segment of its path leads elsewhere for one reader and not for another.
    pub(crate) fn has_dot_segments(&self) -> bool {
        let path = self.rest.split('?').next().unwrap_or_default();
        path.split('/').any(|segment| {
            let segment = segment.to_ascii_lowercase().replace("%2e", ".");
            matches!(segment.split(';').next(), Some("." | ".."))
        })
    }
}
