//! Where a Redis is.

use std::{fmt, net::Ipv6Addr, str::FromStr};

/// Where a Redis is, and how to connect to it.
///
/// It can be written as an address or as a URL:
///
/// | text | meaning |
/// | --- | --- |
/// | `host:port`, `redis://host:port` | a server |
/// | `redis+cluster://host:port` | a cluster, by any of its nodes |
/// | `redis+sentinel://host:port,host:port/primary` | the primary with this name, by any of these Sentinels |
///
/// With `rediss` instead of `redis`, connections use TLS. A URL has no password and no database: these are
/// settings of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The nodes.
    pub topology: Topology,
    /// TLS to the nodes.
    pub tls: Option<Tls>,
}

/// The nodes of a Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// One server.
    Server(Address),
    /// A cluster, by the address of any node. All keys must have the same hash tag, so that one node has them
    /// all.
    Cluster(Address),
    /// A primary that Sentinels know.
    Sentinels {
        /// The name of the primary.
        primary: String,
        /// The Sentinels.
        addresses: Vec<Address>,
        /// TLS to the Sentinels.
        tls: Option<Tls>,
    },
}

/// TLS to a Redis or to its Sentinels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// Whether certificates are not verified.
    pub is_insecure: bool,
    /// The certificate authorities in PEM. `None`: those of the system.
    pub authority: Option<Vec<u8>>,
}

/// A host and a port. An IPv6 address is written in brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// A malformed address. The message does not repeat it, because it may contain a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not an address: write it as host:port")]
pub struct AddressError;

/// A malformed place. The message does not repeat it, because it may contain a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// The text contains a user or a password.
    #[error("must not contain a user or a password")]
    Credentials,
    /// The text has none of the forms of a place.
    #[error(
        "is not an address: write it as host:port, redis://host:port, redis+cluster://host:port or \
         redis+sentinel://host:port,host:port/primary, and with rediss instead of redis for TLS"
    )]
    Form,
}

impl Place {
    /// Whether one node has all keys with this prefix. In a cluster, only a hash tag ensures that.
    pub fn keeps_together(&self, prefix: &str) -> bool {
        let tag = prefix.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
        !matches!(self.topology, Topology::Cluster(_)) || tag.is_some_and(|(tag, _)| !tag.is_empty())
    }
}

impl From<Address> for Place {
    fn from(address: Address) -> Self {
        Self { topology: Topology::Server(address), tls: None }
    }
}

impl FromStr for Place {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        if text.contains('@') {
            return Err(PlaceError::Credentials);
        }
        let (scheme, rest) = text.split_once("://").unwrap_or(("redis", text));
        let tls = scheme.starts_with("rediss").then(Tls::default);
        let address = |text: &str| text.parse::<Address>().map_err(|_| PlaceError::Form);
        let topology = match scheme {
            "redis" | "rediss" => Topology::Server(address(rest)?),
            "redis+cluster" | "rediss+cluster" => Topology::Cluster(address(rest)?),
            "redis+sentinel" | "rediss+sentinel" => {
                let (addresses, primary) = rest.split_once('/').ok_or(PlaceError::Form)?;
                if primary.is_empty() || primary.contains('/') {
                    return Err(PlaceError::Form);
                }
                let addresses = addresses.split(',').map(address).collect::<Result<_, _>>()?;
                Topology::Sentinels { primary: primary.to_owned(), addresses, tls: tls.clone() }
            }
            _ => return Err(PlaceError::Form),
        };
        Ok(Self { topology, tls })
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let address = Self::of_node(text).ok_or(AddressError)?;
        let host = text.rsplit_once(':').map_or("", |(host, _)| host);
        let is_host = match host.starts_with('[') {
            true => format!("[{}]", address.host) == host && address.host.parse::<Ipv6Addr>().is_ok(),
            false => host.chars().all(|letter| letter.is_ascii_alphanumeric() || "-._".contains(letter)),
        };
        if is_host { Ok(address) } else { Err(AddressError) }
    }
}

impl Address {
    /// The address of a node as a cluster writes it, which puts IPv6 addresses into no brackets.
    pub(crate) fn of_node(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let port = port.parse().ok().filter(|port| *port != 0)?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        (!host.is_empty()).then_some(Self { host, port })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// The text that it can be parsed from. That of a server without TLS is its address.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls.is_some() { "rediss" } else { "redis" };
        match &self.topology {
            Topology::Server(address) if self.tls.is_none() => write!(f, "{address}"),
            Topology::Server(address) => write!(f, "{scheme}://{address}"),
            Topology::Cluster(address) => write!(f, "{scheme}+cluster://{address}"),
            Topology::Sentinels { primary, addresses, .. } => {
                let addresses: Vec<String> = addresses.iter().map(Address::to_string).collect();
                write!(f, "{scheme}+sentinel://{}/{primary}", addresses.join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_host_and_port() {
        for valid in ["redis.ns.svc:6379", "127.0.0.1:1", "[::1]:6379", "a_b-c:1"] {
            assert_eq!(valid.parse::<Address>().unwrap().to_string(), valid);
        }
        for invalid in [
            "",
            "redis",
            ":6379",
            "redis:",
            "redis:0",
            "redis:port",
            "::1:6379",
            "redis:99999",
            "a@b:1",
            "[a]:1",
            "[::1:1",
            "a/b:1",
            "a b:1",
            "a,b:1",
        ] {
            assert_eq!(invalid.parse::<Address>(), Err(AddressError), "{invalid}");
        }
        assert_eq!(Address::of_node("::1:6379").unwrap().to_string(), "[::1]:6379");
        assert_eq!(Address::of_node(":6379"), None);
    }

    #[test]
    fn place_is_parsed_from_its_display() {
        let sentinels = "redis+sentinel://a:26379,[::1]:26379/main";
        for text in
            ["redis:6379", "rediss://redis:6379", "redis+cluster://n:1", "rediss+cluster://n:1", sentinels]
        {
            assert_eq!(text.parse::<Place>().unwrap().to_string(), text);
        }
        assert_eq!("redis://r:1".parse(), "r:1".parse::<Place>());
        let Place { topology: Topology::Sentinels { tls, .. }, .. } =
            "rediss+sentinel://a:1/m".parse().unwrap()
        else {
            panic!("it has Sentinels")
        };
        assert!(tls.is_some(), "connections to Sentinels are encrypted, too");
    }

    #[test]
    fn malformed_place_is_rejected_without_repeating_it() {
        for text in [
            "",
            "redis",
            "http://r:1",
            "redis://",
            "redis://r:1/",
            "redis://r:1/0",
            "r:1,s:1",
            "redis+cluster://r",
            "redis+sentinel://a:1",
            "redis+sentinel://a:1/",
            "redis+sentinel:///m",
            "redis+sentinel://a:1,/m",
            "redis+sentinel://a:1/m/0",
            "redis://r:1?password=p",
        ] {
            assert_eq!(text.parse::<Place>(), Err(PlaceError::Form), "{text}");
        }
        assert_eq!("redis://:secret@r:1".parse::<Place>(), Err(PlaceError::Credentials));
    }

    #[test]
    fn only_a_hash_tag_keeps_keys_of_a_cluster_together() {
        let cluster: Place = "redis+cluster://n:1".parse().unwrap();
        for (prefix, is_kept) in
            [("thv:{a}:", true), ("thv:", false), ("{}", false), ("}{a", false), ("{a", false)]
        {
            assert_eq!(cluster.keeps_together(prefix), is_kept, "{prefix}");
        }
        assert!("n:1".parse::<Place>().unwrap().keeps_together("thv:"));
    }
}
