//! The servers that are called.

mod bare;
mod sdk;

use anyhow::Result;
use clap::ValueEnum;
use tokio::net::TcpListener;

/// A server, as a separate process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Server {
    /// One of the Rust SDK.
    Sdk,
    /// A server that only responds.
    Bare,
}

impl Server {
    pub(crate) const ALL: [Self; 2] = [Self::Sdk, Self::Bare];

    /// Its name in the table.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Sdk => "A server of the Rust SDK of MCP",
            Self::Bare => "A server that only responds",
        }
    }

    /// Its name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sdk => "sdk",
            Self::Bare => "bare",
        }
    }

    /// Serves until the process ends. The first line of its output is its address.
    pub(crate) async fn run(self) -> Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        match self {
            Self::Sdk => sdk::run(listener).await,
            Self::Bare => bare::run(listener).await,
        }
    }
}
