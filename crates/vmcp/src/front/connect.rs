//! A call that needs an identity provider to which its user is not connected. A client that opens addresses gets the one
//! where the user connects it; others get it within the message of the error.

use std::{sync::Arc, time::Instant};

use skep_gateway::connect_page;
use skep_mcp::{ConnectAnswer, Era, Method, Raw};

use super::{
    ClientRequest, Front,
    answer::{Recipient, translated},
    relay::Sent,
    resolve::Route,
    rpc::RpcError,
};
use crate::{
    backend::{Backend, BackendError},
    limits,
    session::InFlight,
};

/// What a client gets in place of the result of a call: another result, as JSON, or an error.
pub(super) type Elicited = Result<String, RpcError>;

/// A client that may open the page.
pub(super) struct Opener<'a> {
    pub(super) method: Method,
    pub(super) era: Era,
    /// Its capabilities, as JSON.
    pub(super) capabilities: &'a str,
    /// What its user has answered before.
    pub(super) answer: Option<ConnectAnswer>,
}

impl<'a> Opener<'a> {
    pub(super) fn of(request: &'a ClientRequest<'_>) -> Self {
        Self {
            method: request.method,
            era: request.era,
            capabilities: &request.session.capabilities,
            answer: ConnectAnswer::of(request.envelope.params()),
        }
    }

    /// What the client gets if its call has failed with this error, and the user can change that on a page. A user who has
    /// declined is not led there again.
    pub(super) fn elicitation(&self, error: &BackendError, server: &str) -> Option<Elicited> {
        let BackendError::NotConnected { provider, url, .. } = error else { return None };
        let is_supported =
            matches!(self.method, Method::ToolsCall | Method::PromptsGet | Method::ResourcesRead);
        if !is_supported || self.answer == Some(ConnectAnswer::Refused) {
            return None;
        }
        let rejection = connect_page(Raw::spelled(self.capabilities)?, self.era, provider, url)?;
        Some(match rejection.result() {
            Some(result) => {
                let result = result.to_string();
                Ok(translated(Raw::spelled(&result)?, self.method, self.era, Recipient::Client, server)
                    .ok()?)
            }
            None => {
                let error = RpcError::new(rejection.code().into(), rejection.message());
                Err(RpcError { data: rejection.data().map(|data| data.to_string().into()), ..error })
            }
        })
    }
}

impl Front {
    /// Sends a request to its backend. A user who has opened the page has some time to connect the account: since 2026-07-28, a
    /// client does not learn when that is done.
    pub(super) async fn forward_when_connected(
        &self,
        request: &ClientRequest<'_>,
        backend: &Arc<Backend>,
        route: &Route,
        in_flight: &InFlight,
        answer: Option<ConnectAnswer>,
    ) -> Result<Sent, BackendError> {
        let sent = self.forward(request, backend, route, in_flight).await;
        if !is_unconnected(&sent) || answer != Some(ConnectAnswer::Accepted) {
            return sent;
        }
        let holder = request.exchange.holder();
        let Some(_waiting) = self.connecting.admit(holder, limits::CONNECT_CALLS, || ()) else { return sent };
        let end = Instant::now() + limits::CONNECT_TIME;
        loop {
            tokio::time::sleep(limits::CONNECT_PAUSE).await;
            let sent = self.forward(request, backend, route, in_flight).await;
            if !is_unconnected(&sent) || Instant::now() >= end {
                return sent;
            }
        }
    }
}

fn is_unconnected(sent: &Result<Sent, BackendError>) -> bool {
    matches!(sent, Err(BackendError::NotConnected { .. }))
}
