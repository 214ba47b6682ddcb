//! How servers and proxies are spoken to.

use serde::{Deserialize, Serialize};

/// How an MCP server is spoken to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// Over its standard input and output.
    #[default]
    Stdio,
    /// Over HTTP with server-sent events, the way of 2024.
    Sse,
    /// Over streamable HTTP.
    StreamableHttp,
}

impl Transport {
    /// The word that files, labels and variables use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Sse => "sse",
            Self::StreamableHttp => "streamable-http",
        }
    }
}

/// How clients speak to a proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProxyMode {
    /// Over HTTP with server-sent events, the way of 2024.
    Sse,
    /// Over streamable HTTP.
    #[default]
    StreamableHttp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transport_is_written_as_its_word() {
        for transport in [Transport::Stdio, Transport::Sse, Transport::StreamableHttp] {
            assert_eq!(serde_json::to_value(transport).unwrap(), transport.as_str());
        }
    }
}
