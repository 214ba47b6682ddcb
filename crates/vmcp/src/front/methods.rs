//! What becomes of a message, by its method.

use std::sync::Arc;

use futures::future::join_all;
use http::{HeaderValue, Response, StatusCode};
use serde_json::{Value, json};
use skep_gateway::{
    http::{Body, response},
    identity::Owner,
    message::Exchange,
};
use skep_mcp::{
    Envelope, Era, List, Message, Method, Raw, Rejection, Revision, SessionId,
    header::{MCP_PROTOCOL_VERSION, MCP_SESSION_ID},
};
use tracing::debug;

use super::{
    ClientRequest, VirtualServer,
    answer::tool_error,
    process::SessionError,
    relay::parsed_request_id,
    rpc::{self, Cacheable, METHOD_NOT_FOUND, RpcError, complete},
};
use crate::{
    backend::{Backend, BackendError, Link, Object, VERSION},
    limits,
    session::{ClientSession, Known, Level, Origin},
};

impl VirtualServer {
    /// Processes the message of a request.
    pub(super) async fn message(&self, exchange: &Exchange) -> Result<Response<Body>, Rejection> {
        let Some(message) = &exchange.message else { return Err(Rejection::Internal) };
        let envelope = message.envelope()?;
        let (id, method) = match (envelope.message(), envelope.method()) {
            (Message::Request { id, .. }, Some(method)) => (id.raw().as_str(), method),
            // Since 2026-07-28 there is no session that it could be about.
            _ if is_modern(exchange) => return Ok(response::empty(StatusCode::ACCEPTED)),
            _ => return Ok(self.received(exchange, &envelope).await),
        };
        if envelope.params().is_none() && needs_params(method) {
            return Ok(response::text(StatusCode::BAD_REQUEST, "params is missing\n"));
        }
        match method {
            Method::Ping => return Ok(rpc::result(id, "{}", message.era)),
            Method::Initialize => return self.initialize(exchange, &envelope, id).await,
            _ => {}
        }
        let session = match message.era {
            Era::Modern => self.stateless_session(exchange, &envelope)?,
            Era::Legacy => match self.session(exchange).await {
                Ok(session) => session,
                Err(SessionError::Foreign) if method == Method::ToolsCall => {
                    let text = "Unauthorized: the session belongs to another caller";
                    return Ok(rpc::result(id, &tool_error(text), Era::Legacy));
                }
                Err(error) => return Ok(error.response()),
            },
        };
        let caller = self.caller(exchange);
        let request = ClientRequest { exchange, envelope, method, era: message.era, id, session, caller };
        Ok(self.respond_to(&request).await)
    }

    async fn respond_to(&self, request: &ClientRequest<'_>) -> Response<Body> {
        let (id, era) = (request.id, request.era);
        match (request.method, era) {
            (Method::ToolsList, _) => self.list(request, List::Tools).await,
            (Method::PromptsList, _) => self.list(request, List::Prompts).await,
            (Method::ResourcesList, _) => self.list(request, List::Resources).await,
            (Method::ResourceTemplatesList, _) => self.list(request, List::ResourceTemplates).await,
            (
                Method::ToolsCall | Method::PromptsGet | Method::ResourcesRead | Method::CompletionComplete,
                _,
            ) => self.call(request).await,
            (Method::ServerDiscover, Era::Modern) => self.discovered(request).await,
            (Method::LoggingSetLevel, Era::Legacy) => self.set_level(request).await,
            (Method::ResourcesSubscribe | Method::ResourcesUnsubscribe, Era::Legacy) => {
                self.subscribe(request).await
            }
            _ => RpcError::new(METHOD_NOT_FOUND, "Method not found").response(id, era),
        }
    }

    /// Starts a session. No backend is contacted: each is when it is first needed.
    async fn initialize(
        &self,
        exchange: &Exchange,
        envelope: &Envelope<'_>,
        id: &str,
    ) -> Result<Response<Body>, Rejection> {
        let requested = envelope.requested_version().map(|version| version.decoded());
        let revision = requested.and_then(|version| Revision::named(version.as_bytes()));
        let revision =
            revision.filter(|revision| revision.era() == Era::Legacy).unwrap_or(Revision::V2025_11_25);
        let capabilities = envelope.params().and_then(|params| params.get("capabilities"));
        let session = SessionId::random();
        let shared = self.records.as_ref().map(|_| session.as_str());
        let started = self.new_session(exchange.owner(), self.capabilities.declared(capabilities), shared);
        if let Some(records) = &self.records {
            let stored = records.put(session.as_str(), &started.record().to_bytes()).await;
            stored.map_err(|_| Rejection::Unavailable("session store"))?;
        }
        if self.sessions.put(session.as_str(), Known(started), exchange.peer.ip()).is_err() {
            return Err(Rejection::Unavailable("sessions"));
        }
        let result = json!({
            "protocolVersion": revision.name(),
            "capabilities": {
                "completions": {},
                "logging": {},
                "prompts": {"listChanged": true},
                "resources": {"listChanged": true, "subscribe": true},
                "tools": {"listChanged": true},
            },
            "serverInfo": {"name": &*self.name, "version": VERSION},
        });
        let mut response = rpc::result(id, &result.to_string(), Era::Legacy);
        let session = HeaderValue::from_str(session.as_str()).map_err(|_| Rejection::Internal)?;
        response.headers_mut().insert(MCP_SESSION_ID, session);
        Ok(response)
    }

    /// A session that sees the backends that are available now.
    pub(super) fn new_session(
        &self,
        owner: Owner,
        capabilities: Arc<str>,
        shared: Option<&str>,
    ) -> Arc<ClientSession> {
        let shared = shared.map(Into::into);
        let session =
            ClientSession::new(owner, capabilities, shared, self.ended.clone(), self.presence.clone());
        self.views.pin(&session);
        Arc::new(session)
    }

    /// The session of a caller that has none, since 2026-07-28. It keeps the sessions at older backends, which would have
    /// to be opened for each request otherwise. Callers that cannot be distinguished, but by their addresses, share one.
    fn stateless_session(
        &self,
        exchange: &Exchange,
        envelope: &Envelope<'_>,
    ) -> Result<Arc<ClientSession>, Rejection> {
        let owner = exchange.owner();
        let capabilities = self.capabilities.declared(envelope.meta().client_capabilities());
        // The same capabilities are one text in memory.
        let id = format!("{}/{}/{:p}", owner.to_text(), exchange.peer.ip(), Arc::as_ptr(&capabilities));
        if let Some(Known(session)) = self.stateless.get(&id) {
            return Ok(session);
        }
        let session = self.new_session(owner, capabilities, None);
        match self.stateless.put(&id, Known(session.clone()), exchange.peer.ip()) {
            Ok(()) => Ok(session),
            Err(_) => Err(Rejection::Unavailable("sessions")),
        }
    }

    /// Processes a notification, or the response to a request of a backend.
    async fn received(&self, exchange: &Exchange, envelope: &Envelope<'_>) -> Response<Body> {
        let session = match self.session(exchange).await {
            Ok(session) => session,
            Err(error) => return error.response(),
        };
        let caller = self.caller(exchange);
        match (envelope.message(), envelope.method()) {
            (Message::Response { id: Some(id), .. }, _) => {
                let target = id.raw().as_text().and_then(|id| parsed_request_id(&id));
                if let Some((backend, original)) = target
                    && let Some(backend) = self.views.backend(&backend)
                    && let Some(link) = session.links.opened(&backend.name)
                    && let Some(original) = Raw::spelled(&original)
                {
                    let edits = skep_mcp::Edits::of(envelope.bytes())
                        .replace(id.raw(), skep_mcp::Json::Raw(original));
                    if let Ok(body) = edits.bytes() {
                        report(&backend, backend.notify(&link, &caller, body.into()).await);
                    }
                }
            }
            (_, Some(Method::Cancelled)) => {
                let id = envelope.params().and_then(|params| params.get("requestId"));
                if let Some((backend, number)) = id.and_then(|id| session.links.find(id.as_str()))
                    && let Some(backend) = self.views.backend(&backend)
                    && let Some(link) = session.links.opened(&backend.name)
                    && let Some(id) = id
                {
                    let edits =
                        skep_mcp::Edits::of(envelope.bytes()).replace(id, skep_mcp::Json::Number(number));
                    if let Ok(body) = edits.bytes() {
                        report(&backend, backend.notify(&link, &caller, body.into()).await);
                    }
                }
            }
            (_, Some(Method::RootsListChanged)) => {
                let open = session.links.open();
                join_all(open.iter().map(|(backend, link)| async {
                    let body = bytes::Bytes::copy_from_slice(envelope.bytes());
                    report(backend, backend.notify(link, &caller, body).await);
                }))
                .await;
            }
            _ => {}
        }
        response::empty(StatusCode::ACCEPTED)
    }

    /// The session at a backend. One that has just been opened gets what the client has set before.
    pub(super) async fn link(
        &self,
        request: &ClientRequest<'_>,
        backend: &Arc<Backend>,
    ) -> Result<Arc<Link>, BackendError> {
        let (link, origin) = request.session.links.get(backend, &request.caller).await?;
        if origin == Origin::New {
            self.restore(&request.session, backend, &link, &request.caller).await;
            self.store(&request.session).await;
        }
        if origin != Origin::Kept {
            self.listen_to(request.session.clone(), backend.clone(), link.clone(), request.caller.clone());
        }
        Ok(link)
    }

    async fn restore(
        &self,
        session: &ClientSession,
        backend: &Backend,
        link: &Link,
        caller: &crate::backend::Caller,
    ) {
        if let Some(level) = session.level().filter(|_| link.capabilities.logging) {
            let params = json!({"level": level.name()});
            report(backend, backend.call(link, caller, "logging/setLevel", Some(&params)).await);
        }
        let Some(catalog) = session.last_catalog().filter(|_| link.capabilities.subscribe) else { return };
        for uri in session.subscriptions() {
            if catalog.resource(&uri).is_some_and(|entry| entry.backend == backend.name) {
                report(
                    backend,
                    backend.call(link, caller, "resources/subscribe", Some(&json!({"uri": uri}))).await,
                );
            }
        }
    }

    async fn set_level(&self, request: &ClientRequest<'_>) -> Response<Body> {
        let level = request.envelope.params().and_then(|params| params.get("level")).and_then(Raw::as_text);
        let Some(level) = level.and_then(|level| Level::named(&level)) else {
            return RpcError::invalid("params.level is not a level").response(request.id, request.era);
        };
        request.session.set_level(level);
        self.store(&request.session).await;
        let params = json!({"level": level.name()});
        let open = request.session.links.open();
        let logging = open.iter().filter(|(_, link)| link.capabilities.logging);
        join_all(logging.map(|(backend, link)| async {
            report(backend, backend.call(link, &request.caller, "logging/setLevel", Some(&params)).await);
        }))
        .await;
        rpc::result(request.id, "{}", request.era)
    }

    async fn subscribe(&self, request: &ClientRequest<'_>) -> Response<Body> {
        let (id, era) = (request.id, request.era);
        let subscribes = request.method == Method::ResourcesSubscribe;
        let uri = request.envelope.target().map(|target| target.name().into_owned()).unwrap_or_default();
        let catalog = self.views.catalog(&request.session, &request.caller).await;
        let backend = catalog.resource(&uri).and_then(|entry| self.views.backend(&entry.backend));
        let Some(backend) = backend else {
            return RpcError::invalid(format!("unknown resource {uri:?}")).response(id, era);
        };
        if subscribes && uri.len() > limits::SUBSCRIBED_URI {
            return RpcError::invalid("params.uri is too long").response(id, era);
        }
        let called = async {
            let link = self.link(request, &backend).await?;
            let method = request.method.name().unwrap_or_default();
            if link.capabilities.subscribe {
                backend.call(&link, &request.caller, method, Some(&json!({"uri": uri}))).await?;
            }
            Ok::<_, BackendError>(())
        };
        if let Err(error) = called.await {
            return RpcError::of_backend(&backend.name, &error).response(id, era);
        }
        if !subscribes {
            request.session.unsubscribe(&uri);
        } else if !request.session.subscribe(&uri) {
            return RpcError::invalid("there are too many subscriptions").response(id, era);
        }
        self.store(&request.session).await;
        rpc::result(id, "{}", era)
    }

    /// What the virtual server can do, for clients without a session.
    async fn discovered(&self, request: &ClientRequest<'_>) -> Response<Body> {
        let mut capabilities = serde_json::Map::from_iter([("completions".to_owned(), json!({}))]);
        for (name, lists) in [
            ("tools", &[List::Tools][..]),
            ("prompts", &[List::Prompts]),
            ("resources", &[List::Resources, List::ResourceTemplates]),
        ] {
            for list in lists {
                if self.offers(request, *list).await {
                    capabilities.insert(name.to_owned(), json!({}));
                }
            }
        }
        let versions = json!([Revision::V2026_07_28.name(), Revision::V2025_11_25.name()]);
        let mut result = Object::default();
        result.put("\"supportedVersions\"", &versions.to_string());
        result.put("\"capabilities\"", &Value::Object(capabilities).to_string());
        complete(&mut result, &self.name, Object::default(), Cacheable::Yes);
        rpc::result(request.id, &result.json(), request.era)
    }
}

fn is_modern(exchange: &Exchange) -> bool {
    let version = exchange.headers.get(MCP_PROTOCOL_VERSION).map(HeaderValue::as_bytes);
    version.and_then(Revision::named).is_some_and(|revision| revision.era() == Era::Modern)
}

fn needs_params(method: Method) -> bool {
    matches!(
        method,
        Method::Initialize
            | Method::ToolsCall
            | Method::PromptsGet
            | Method::ResourcesRead
            | Method::CompletionComplete
    )
}

/// What a backend is sent beside requests has no response, so a failure is only logged.
fn report<T>(backend: &Backend, sent: Result<T, BackendError>) {
    if let Err(error) = sent {
        debug!(backend = &*backend.name, %error, "failed to send a message to a backend");
    }
}
