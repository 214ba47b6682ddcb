//! The index of a catalog's tools.

use std::sync::Arc;

use skep_mcp::List;
use tracing::warn;

use super::Catalog;
use crate::search::{Search, ToolIndex};

impl Catalog {
    /// The index of the tools that clients can see, which is made once, and not on a thread that serves requests.
    pub(crate) async fn index(self: &Arc<Self>, search: &Arc<Search>) -> Option<Arc<ToolIndex>> {
        let made = self.search.get_or_try_init(|| async {
            let (catalog, search) = (self.clone(), search.clone());
            let index = move || {
                let tools = catalog.table(List::Tools).iter();
                search.meaning.index(
                    tools.map(|entry| (entry.json(), entry.origin().map_or("", |origin| &*origin.backend))),
                )
            };
            tokio::task::spawn_blocking(index).await.map(Arc::new)
        });
        match made.await {
            Ok(index) => {
                search.meaning.embed(index);
                Some(index.clone())
            }
            Err(error) => {
                warn!(%error, "the index of the tools could not be made");
                None
            }
        }
    }
}
