//! What a client sets for its session, and each of its sessions at backends must have: the log level, and
//! subscriptions.

use std::sync::Arc;

use futures::future::join_all;
use http::Response;
use serde_json::json;
use skep_gateway::http::Body;
use skep_mcp::{Era, Method, Raw};
use tracing::debug;

use super::{
    ClientRequest, Front,
    rpc::{self, RpcError},
};
use crate::{
    backend::{Backend, BackendError, Caller, Link},
    catalog::Catalog,
    level::Level,
    limits,
    session::ClientSession,
    views::Found,
};

impl Front {
    /// The session at a backend. One that is new gets what the client has set before.
    pub(super) async fn link(
        &self,
        session: &Arc<ClientSession>,
        caller: &Caller,
        backend: &Arc<Backend>,
    ) -> Result<Arc<Link>, BackendError> {
        let link = session.links.get(backend, caller).await?;
        if session.links.take_new(backend) && link.revision.era() == Era::Legacy {
            self.restore(session, backend, &link, caller).await;
            self.store(session).await;
        }
        Ok(link)
    }

    async fn restore(&self, session: &ClientSession, backend: &Backend, link: &Link, caller: &Caller) {
        if let Some(level) = session.level().filter(|_| link.capabilities.logging) {
            let params = json!({"level": level.name()});
            report(backend, backend.call(link, caller, "logging/setLevel", Some(&params)).await);
        }
        for uri in session.subscriptions_at(&backend.name).iter().filter(|_| link.capabilities.subscribe) {
            let params = json!({"uri": uri});
            report(backend, backend.call(link, caller, "resources/subscribe", Some(&params)).await);
        }
    }

    pub(super) async fn set_level(&self, request: &ClientRequest<'_>) -> Response<Body> {
        let level = request.envelope.params().and_then(|params| params.get("level")).and_then(Raw::as_text);
        let Some(level) = level.and_then(|level| Level::named(&level)) else {
            return RpcError::invalid("params.level is not a level").response(request.id, request.era);
        };
        request.session.set_level(level);
        self.store(&request.session).await;
        let params = json!({"level": level.name()});
        let open = request.session.links.open();
        // Since 2026-07-28, each request has its own level.
        let logging =
            open.iter().filter(|(_, link)| link.capabilities.logging && link.revision.era() == Era::Legacy);
        join_all(logging.map(|(backend, link)| async {
            report(backend, backend.call(link, &request.caller, "logging/setLevel", Some(&params)).await);
        }))
        .await;
        rpc::result(request.id, "{}", request.era)
    }

    pub(super) async fn subscribe(&self, request: &ClientRequest<'_>) -> Response<Body> {
        let (id, era) = (request.id, request.era);
        let subscribes = request.method == Method::ResourcesSubscribe;
        let uri = request.envelope.target().map(|target| target.name().into_owned()).unwrap_or_default();
        if uri.len() > limits::URI {
            return RpcError::invalid("params.uri is too long").response(id, era);
        }
        let find = |catalog: &Catalog| Some(Found::at(catalog.resource(&uri)?.origin()?));
        let mut catalog = self.views.catalog_with(&request.session, &request.caller, find).await;
        if find(&catalog).is_none() {
            catalog = self.views.complete(&request.session);
        }
        let backend = find(&catalog).and_then(|found| self.views.backend(&found.backend?));
        let Some(backend) = backend else {
            // It has no updates any more.
            if !subscribes && request.session.unsubscribe(&uri) {
                self.store(&request.session).await;
                return rpc::result(id, "{}", era);
            }
            return RpcError::invalid(format!("unknown resource {uri:?}")).response(id, era);
        };
        let was_subscribed = request.session.subscriptions().iter().any(|known| **known == *uri);
        // A session that is opened now is not to have it yet.
        if let Err(error) = self.link(&request.session, &request.caller, &backend).await {
            return RpcError::of_backend(&backend.name, &error).response(id, era);
        }
        // Updates may come before the response.
        if subscribes && !request.session.subscribe(&uri) {
            return RpcError::invalid("there are too many subscriptions").response(id, era);
        }
        let subscribed = self.subscribe_at(request, &backend, &uri).await;
        if !subscribes || (subscribed.is_err() && !was_subscribed) {
            request.session.unsubscribe(&uri);
        }
        if let Err(error) = subscribed {
            return RpcError::of_backend(&backend.name, &error).response(id, era);
        }
        self.store(&request.session).await;
        rpc::result(id, "{}", era)
    }
}

impl Front {
    /// Subscribes to a resource at its backend, or ends that. A session that the backend has lost is opened again.
    async fn subscribe_at(
        &self,
        request: &ClientRequest<'_>,
        backend: &Arc<Backend>,
        uri: &str,
    ) -> Result<(), BackendError> {
        let method = request.method.name().unwrap_or_default();
        let mut is_last = false;
        loop {
            let link = self.link(&request.session, &request.caller, backend).await?;
            // Since 2026-07-28, what is subscribed to is named when the stream is opened.
            if !link.capabilities.subscribe || link.revision.era() == Era::Modern {
                return Ok(());
            }
            match backend.call(&link, &request.caller, method, Some(&json!({"uri": uri}))).await {
                Err(BackendError::SessionLost) if !is_last => {
                    request.session.links.forget(backend, &link);
                    is_last = true;
                }
                called => return called.map(drop),
            }
        }
    }
}

/// What a backend is sent beside requests has no response, so a failure is only logged.
pub(super) fn report<T>(backend: &Backend, sent: Result<T, BackendError>) {
    if let Err(error) = sent {
        debug!(backend = &*backend.name, %error, "failed to send a message to a backend");
    }
}
