//! What policies know of a tool that is called, beside its name.

use futures::{FutureExt, future::BoxFuture};
use skep_gateway::{
    message::{Exchange, ToolHints},
    middleware::CallerTools,
};
use skep_mcp::{Era, List, Method, header::MCP_SESSION_ID};

use super::Front;
use crate::{
    catalog::{Catalog, Entry},
    session::Known,
};

impl CallerTools for Front {
    fn called_hints<'a>(&'a self, exchange: &'a Exchange) -> BoxFuture<'a, ToolHints> {
        async move { self.hints(exchange).await.unwrap_or_default() }.boxed()
    }
}

impl Front {
    /// The hints of the tool that a request calls, as its caller would see them in a list. A replica that has not sent the
    /// caller a list knows them all the same.
    async fn hints(&self, exchange: &Exchange) -> Option<ToolHints> {
        let message = exchange.message.as_ref()?;
        let target = message.target.as_deref().filter(|_| message.method == Some(Method::ToolsCall))?;
        let session = match message.era {
            Era::Modern => self.stateless_session(exchange, &message.envelope().ok()?).ok()?,
            Era::Legacy => {
                let id = exchange.headers.get(MCP_SESSION_ID)?.to_str().ok()?;
                match self.sessions.get(id).filter(|Known(session)| session.owner == exchange.owner()) {
                    Some(Known(session)) => session,
                    None => self.session(exchange).await.ok()?,
                }
            }
        };
        let find = |catalog: &Catalog| catalog.table(List::Tools).get(target).and_then(Entry::found);
        let catalog = self.views.catalog_with(&session, &self.caller(exchange), find).await;
        let of = |catalog: &Catalog| catalog.table(List::Tools).get(target).map(Entry::hints);
        of(&catalog).or_else(|| of(&self.views.complete(&session)))
    }
}
