//! Messages of clients that have no response: notifications, and responses to requests of backends.

use bytes::Bytes;
use futures::future::join_all;
use http::{Response, StatusCode};
use skep_gateway::{
    http::{Body, response},
    message::Exchange,
};
use skep_mcp::{Edits, Envelope, Era, Id, Json, Message, Method, Raw};

use super::{Front, from_backend::parsed_request_id, subscribe::report};
use crate::{backend::Caller, session::ClientSession};

impl Front {
    /// Processes a notification, or the response to a request of a backend.
    pub(super) async fn received(&self, exchange: &Exchange, envelope: &Envelope<'_>) -> Response<Body> {
        let session = match self.session(exchange).await {
            Ok(session) => session,
            Err(error) => return error.response(),
        };
        let caller = self.caller(exchange);
        match (envelope.message(), envelope.method()) {
            (Message::Response { id: Some(id), .. }, _) => {
                self.return_response(&session, &caller, envelope, id).await;
            }
            (_, Some(Method::Cancelled)) => self.cancel(&session, &caller, envelope).await,
            (_, Some(Method::RootsListChanged)) => {
                let open = session.links.open();
                join_all(open.iter().map(|(backend, link)| async {
                    let body = Bytes::copy_from_slice(envelope.bytes());
                    report(backend, backend.notify(link, &caller, body).await);
                }))
                .await;
            }
            _ => {}
        }
        response::empty(StatusCode::ACCEPTED)
    }

    /// Returns a response to whom it is for: a call that waits for it here, or the backend whose request it was. Another
    /// replica may have relayed that.
    async fn return_response(
        &self,
        session: &ClientSession,
        caller: &Caller,
        envelope: &Envelope<'_>,
        id: Id<'_>,
    ) {
        if session.reply(id.raw().as_str(), envelope.bytes()) {
            return;
        }
        let target = id.raw().as_text().and_then(|id| parsed_request_id(&id));
        let Some((backend, original)) = target else { return };
        let (Some(backend), Some(original)) = (self.views.backend(&backend), Raw::spelled(&original)) else {
            return;
        };
        let edits = Edits::of(envelope.bytes()).replace(id.raw(), Json::Raw(original));
        if let (Some(link), Ok(body)) = (session.links.existing(&backend, caller).await, edits.bytes()) {
            report(&backend, backend.notify(&link, caller, body.into()).await);
        }
    }

    /// Cancels a request in flight. A backend of 2026-07-28 sees that its response is no longer read.
    async fn cancel(&self, session: &ClientSession, caller: &Caller, envelope: &Envelope<'_>) {
        let id = envelope.params().and_then(|params| params.get("requestId"));
        let Some(id) = id else { return };
        let Some((backend, number)) = session.links.cancel(id.as_str()) else { return };
        if let Some(backend) = self.views.backend(&backend)
            && let Some(link) = session.links.opened(&backend.name)
            && link.revision.era() == Era::Legacy
            && let Ok(body) = Edits::of(envelope.bytes()).replace(id, Json::Number(number)).bytes()
        {
            report(&backend, backend.notify(&link, caller, body.into()).await);
        }
    }
}
