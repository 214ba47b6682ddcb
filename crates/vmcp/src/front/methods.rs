//! What becomes of a message, by its method.

use std::sync::Arc;

use http::{HeaderValue, Response, StatusCode};
use serde_json::{Value, json};
use skep_gateway::{
    http::{Body, response},
    message::Exchange,
};
use skep_mcp::{Era, List, Message, Method, Object, Rejection, Revision, header::MCP_PROTOCOL_VERSION};

use super::{
    ClientRequest, Front,
    answer::tool_error,
    rpc::{self, Cacheable, METHOD_NOT_FOUND, RpcError, complete},
    sessions::SessionError,
    upstream::{has_unknown_version, unknown_version},
};

impl Front {
    /// Processes the message of a request.
    pub(super) async fn message(self: &Arc<Self>, exchange: &Exchange) -> Result<Response<Body>, Rejection> {
        let Some(message) = &exchange.message else { return Err(Rejection::Internal) };
        if has_unknown_version(&exchange.headers) {
            return Ok(unknown_version());
        }
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
        match (method, message.era) {
            (Method::Initialize, _) if is_modern(exchange) => {
                return Ok(method_not_found().response(id, Era::Modern));
            }
            (Method::Ping, Era::Legacy) => return Ok(rpc::result(id, "{}", Era::Legacy)),
            (Method::Initialize, Era::Legacy) => return self.initialize(exchange, &envelope, id).await,
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
        let era = message.era;
        let request = ClientRequest { exchange, envelope, method, era, id, session, caller };
        Ok(self.respond_to(&request).await)
    }

    async fn respond_to(self: &Arc<Self>, request: &ClientRequest<'_>) -> Response<Body> {
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
            (Method::SubscriptionsListen, Era::Modern) => self.listen_for(request).await,
            (Method::LoggingSetLevel, Era::Legacy) => self.set_level(request).await,
            (Method::ResourcesSubscribe | Method::ResourcesUnsubscribe, Era::Legacy) => {
                self.subscribe(request).await
            }
            _ => method_not_found().response(id, era),
        }
    }

    /// What the virtual server can do, for clients without a session.
    async fn discovered(&self, request: &ClientRequest<'_>) -> Response<Body> {
        let mut capabilities = serde_json::Map::from_iter([("completions".to_owned(), json!({}))]);
        for (name, lists, capability) in [
            ("tools", &[List::Tools][..], json!({"listChanged": true})),
            ("prompts", &[List::Prompts], json!({"listChanged": true})),
            (
                "resources",
                &[List::Resources, List::ResourceTemplates],
                json!({"listChanged": true, "subscribe": true}),
            ),
        ] {
            for list in lists {
                if self.offers(request, *list).await {
                    capabilities.insert(name.to_owned(), capability.clone());
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

fn method_not_found() -> RpcError {
    RpcError::new(METHOD_NOT_FOUND, "Method not found")
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
