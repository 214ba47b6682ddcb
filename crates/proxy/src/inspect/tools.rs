//! The tools of the server as a caller would be listed them, for policies that read their hints.

use futures::{FutureExt, future::BoxFuture};
use skep_gateway::{message::Exchange, middleware::ToolSource};
use skep_mcp::Rejection;
use tracing::warn;

use super::{
    Client, InspectError,
    description::{LISTS, PAGES, next_cursor},
};
use crate::server::Server;

/// In a session of its own: the caller may have none, and a server of 2024 would respond on the caller's stream.
impl ToolSource for Server {
    fn read_tools<'a>(
        &'a self,
        exchange: &'a Exchange,
        page: &'a (dyn Fn(&[u8]) + Sync),
    ) -> BoxFuture<'a, Result<(), Rejection>> {
        let read = async move {
            let mut client = Client::open(self, Some(exchange)).await?;
            let read = read_pages(&mut client, page).await;
            client.close().await;
            read
        };
        read.map(|read| {
            read.map_err(|error: InspectError| {
                warn!(%error, "policies read hints of tools, and the server's list of tools cannot be read");
                match error {
                    InspectError::Unreachable(_) => Rejection::Unreachable,
                    InspectError::CredentialRequired(_) | InspectError::Invalid(_) => Rejection::Denied,
                }
            })
        })
        .boxed()
    }
}

async fn read_pages(client: &mut Client<'_>, page: &(dyn Fn(&[u8]) + Sync)) -> Result<(), InspectError> {
    let mut cursor = None;
    for _ in 0..PAGES {
        let message = client.list(LISTS[0].method, cursor.as_deref()).await?;
        page(&message);
        let next = next_cursor(&message);
        if next.is_none() || next == cursor {
            break;
        }
        cursor = next;
    }
    Ok(())
}
