//! Lists, from the catalog of a session.

use http::{Response, StatusCode};
use http_body_util::BodyExt;
use skep_gateway::{body::CountedBytes, http::Body};
use skep_mcp::{Envelope, Era, List, Message, Object, Outcome, Raw};

use super::{
    ClientRequest, Front,
    rpc::{self, Cacheable, RpcError, complete},
};
use crate::catalog::{Page, field};

impl Front {
    /// Whether the caller may use anything of a list.
    pub(super) async fn offers(&self, request: &ClientRequest<'_>, list: List) -> bool {
        let response = self.list(request, list).await;
        let seen = self.chain.filter(request.exchange, response, &self.budget).await;
        let Ok(body) = seen.into_body().collect().await else { return false };
        has_items(&body.to_bytes(), list)
    }

    /// One page of a list.
    pub(super) async fn list(&self, request: &ClientRequest<'_>, list: List) -> Response<Body> {
        let catalog = self.views.catalog(&request.session, &request.caller).await;
        if let Some(reason) = self.views.unavailable(&catalog) {
            return RpcError::internal(reason).response(request.id, request.era);
        }
        if let Some(conflict) = catalog.conflict().filter(|_| list == List::Tools) {
            return RpcError::internal(conflict).response(request.id, request.era);
        }
        let cursor = request.envelope.params().and_then(|params| params.get("cursor")).and_then(Raw::as_text);
        // A client that goes on with a list has its first page, of which it must hear if it has changed since.
        if cursor.is_none() {
            request.session.show(list, &catalog);
        }
        if let Some(search) = self.search.as_ref().filter(|_| list == List::Tools) {
            return self.searched_list(request, search, &catalog);
        }
        let Ok(page) = catalog.table(list).page(cursor.as_deref(), request.era) else {
            return RpcError::invalid("params.cursor is not one of this list")
                .response(request.id, request.era);
        };
        self.listed(request, list, &page)
    }

    pub(super) fn listed(&self, request: &ClientRequest<'_>, list: List, page: &Page) -> Response<Body> {
        let mut result = Object::default();
        result.put(&format!("\"{}\"", field(list)), &page.items);
        if let Some(next) = &page.next {
            result.put("\"nextCursor\"", &format!("\"{next}\""));
        }
        if request.era == Era::Modern {
            complete(&mut result, &self.name, Object::default(), Cacheable::Yes);
        }
        let body = rpc::result_body(request.id, &result.json());
        // A client may read it slowly, and very many at once.
        let mut memory = request.exchange.memory().share();
        match memory.grow(body.len()) {
            Ok(()) => {
                let body = CountedBytes::new(body.into(), memory).into_bytes();
                rpc::reply(StatusCode::OK, body, request.era)
            }
            Err(_) => RpcError::internal("there is no memory for the list now: try again later")
                .response(request.id, request.era),
        }
    }
}

/// Whether a response has anything of a list.
pub(super) fn has_items(body: &[u8], list: List) -> bool {
    let result = Envelope::parse(body).ok().and_then(|envelope| match envelope.message() {
        Message::Response { outcome: Outcome::Result(result), .. } => result.get(field(list)),
        _ => None,
    });
    result.and_then(|items| items.items().ok()).is_some_and(|items| !items.is_empty())
}
