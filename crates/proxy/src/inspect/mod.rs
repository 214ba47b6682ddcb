//! What the server offers, as a client sees it that is no caller: the proxy itself.
//!
//! The proxy initializes a session, reads the lists, and ends the session. Its requests do not pass through the
//! middlewares, which are about callers; they only get the headers that every request to the server gets. A server that
//! wants the credentials of a caller is not queried further. Where policies read hints of tools, a caller that calls an unknown tool
//! has the list read for it, with its own credentials.

mod client;
mod description;
mod events;
mod tools;

use std::time::Duration;

use skep_api::server_report::ServerReport;

use crate::Proxy;
use client::Client;
use description::{Description, LISTS};

/// How long the whole may take. Large servers have many pages.
pub(crate) const INSPECT_TIME: Duration = Duration::from_secs(60);

/// Why it is not known what a server offers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InspectError {
    /// It cannot be reached, or does not respond.
    #[error("{0}")]
    Unreachable(String),
    /// It wants credentials that only callers have.
    #[error("the server responds with {0} to requests without the credentials of a caller")]
    CredentialRequired(u16),
    /// Its responses are not those of an MCP server.
    #[error("{0}")]
    Invalid(String),
}

impl Proxy {
    /// Reads what the server offers.
    pub async fn inspect(&self) -> Result<ServerReport, InspectError> {
        self.inspect_within(INSPECT_TIME).await
    }

    /// The same, if the server takes no longer than this.
    pub(crate) async fn inspect_within(&self, time: Duration) -> Result<ServerReport, InspectError> {
        let timeout = |_| InspectError::Unreachable(format!("no response within {} s", time.as_secs()));
        tokio::time::timeout(time, self.read_all()).await.map_err(timeout)?
    }

    async fn read_all(&self) -> Result<ServerReport, InspectError> {
        let mut client = Client::open(self.server(), None).await?;
        let read = read_lists(&mut client).await;
        client.close().await;
        read
    }
}

async fn read_lists(client: &mut Client<'_>) -> Result<ServerReport, InspectError> {
    let mut description = Description::new(client.server());
    for list in &LISTS {
        if !client.has_capability(list.capability) {
            continue;
        }
        let mut cursor = None;
        for page in 1.. {
            let message = match client.list(list.method, cursor.as_deref()).await {
                // Older servers have resources and no templates.
                Err(InspectError::Invalid(_)) if list.is_optional => break,
                message => message?,
            };
            let next = description.add(list, &message);
            // A cursor that does not change would lead in a circle.
            if next.is_none() || next == cursor || page == description::PAGES {
                break;
            }
            cursor = next;
        }
    }
    Ok(description.report())
}
