//! Transports of MCP.

use serde::{Deserialize, Serialize};

/// The transport of an MCP server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// Standard input and output.
    #[default]
    Stdio,
    /// HTTP with server-sent events, of the revision 2024-11-05.
    Sse,
    /// Streamable HTTP.
    StreamableHttp,
}

impl Transport {
    /// Its name in files, labels and variables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Sse => "sse",
            Self::StreamableHttp => "streamable-http",
        }
    }
}

/// The transport between clients and a proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProxyMode {
    /// HTTP with server-sent events, of the revision 2024-11-05.
    Sse,
    /// Streamable HTTP.
    #[default]
    StreamableHttp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transport_is_serialised_as_its_name() {
        for transport in [Transport::Stdio, Transport::Sse, Transport::StreamableHttp] {
            assert_eq!(serde_json::to_value(transport).unwrap(), transport.as_str());
        }
    }
}
