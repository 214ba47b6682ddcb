//! A request that is for one backend.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Response};
use serde_json::json;
use skep_gateway::http::Body;
use skep_mcp::{Era, List, Method, Raw};
use tracing::debug;

use super::{
    ClientRequest, Front, Sender,
    answer::failure,
    connect::Opener,
    measured::Measured,
    parameters::parameter_headers,
    relay::{Relay, Sent, respond},
    rpc::{self, RpcError},
    subscribe::report,
};
use crate::{
    backend::{Backend, BackendError, Form, Link, Messages, OutgoingRequest, Rename, request},
    catalog::{Catalog, Entry},
    session::Level,
};

/// What a request is about, and where it is.
pub(super) struct Route {
    backend: Arc<str>,
    rename: Option<(&'static str, Option<&'static str>, Box<str>)>,
    /// The schema of a tool that has parameters in headers, as JSON.
    schema: Option<Box<str>>,
}

impl Route {
    /// The route to an item that has another name at its backend.
    pub(super) fn of(entry: &Entry, within: Option<&'static str>) -> Self {
        Self {
            backend: entry.backend.clone(),
            rename: Some(("name", within, entry.original.clone())),
            schema: entry.mirrors_parameters().then(|| entry.json().into()),
        }
    }
}

impl Front {
    /// Sends a request to the backend that has what it names.
    pub(super) async fn call(self: &Arc<Self>, request: &ClientRequest<'_>) -> Response<Body> {
        if let Some(waiting) = self.waiting_call(request) {
            return waiting.resume(request).await;
        }
        if let Some(response) = self.search_response(request).await {
            return response;
        }
        let catalog = self.views.catalog(&request.session, &request.caller).await;
        if let Some(composite) = self.composite(request, &catalog) {
            return match self.check_arguments(request) {
                Ok(()) => self.run_workflow(request, composite, catalog).await,
                Err(error) => error.response(request.id, request.era),
            };
        }
        if let Some(scripts) = self.script(request) {
            return match self.check_arguments(request) {
                Ok(()) => self.run_script(request, scripts, catalog).await,
                Err(error) => error.response(request.id, request.era),
            };
        }
        let route = match self.route_of(request, &catalog) {
            Err(_) => self.route_of(request, &self.views.complete(&request.session)),
            route => route,
        };
        let route = match route {
            Ok(Some(route)) => route,
            Ok(None) => return rpc::result(request.id, &empty_completion(), request.era),
            Err(_) if request.sender == Sender::Search => return self.unknown_tool(request),
            Err(error) => return error.response(request.id, request.era),
        };
        let Some(backend) = self.views.backend(&route.backend) else {
            let error = RpcError::internal(format!("backend {} has been removed", route.backend));
            return error.response(request.id, request.era);
        };
        request.exchange.backend.set(backend.name.clone()).ok();
        let in_flight = request.session.begin(request.id, &backend.name, self.next_number());
        let name = route.rename.as_ref().map(|(_, _, name)| &**name);
        let measured = Measured::new(self, request, &backend, name);
        let opener = Opener::of(request);
        let number = in_flight.number;
        let sent = self.forward_when_connected(request, &backend, &route, number, opener.answer).await;
        if sent.is_err() {
            measured.record(None, true);
        }
        match sent {
            Ok(sent) => respond(Relay::new(self, request, backend, sent, in_flight, measured)).await,
            Err(error) => {
                let elicited = opener.elicitation(&error, &self.name);
                let failed = || failure(request.method, request.era, &backend.name, &error);
                match elicited.unwrap_or_else(failed) {
                    Ok(result) => rpc::result(request.id, &result, request.era),
                    Err(error) => error.response(request.id, request.era),
                }
            }
        }
    }

    /// Where the target of a request is. None for a completion that no backend has.
    fn route_of(&self, request: &ClientRequest<'_>, catalog: &Catalog) -> Result<Option<Route>, RpcError> {
        let target = request.envelope.target();
        let name = target.map(|target| target.name().into_owned()).unwrap_or_default();
        let renamed = |list: List, within: Option<&'static str>| {
            let entry = catalog.table(list).get(&name)?;
            Some(Route::of(entry, within))
        };
        let unknown =
            |what: &str| RpcError::invalid(format!("unknown {what} {name:?}{}", request.session.unlisted()));
        let located = |entry: &Entry| Route { backend: entry.backend.clone(), rename: None, schema: None };
        match request.method {
            Method::ToolsCall => {
                self.check_arguments(request)?;
                renamed(List::Tools, None).map(Some).ok_or_else(|| unknown("tool"))
            }
            Method::PromptsGet => {
                self.check_arguments(request)?;
                renamed(List::Prompts, None).map(Some).ok_or_else(|| unknown("prompt"))
            }
            Method::CompletionComplete => {
                let reference = request.envelope.params().and_then(|params| params.get("ref"));
                let kind = reference.and_then(|reference| reference.get("type")).and_then(Raw::as_text);
                match kind.as_deref() {
                    Some("ref/prompt") => Ok(renamed(List::Prompts, Some("ref"))),
                    Some("ref/resource") => Ok(catalog.resource(&name).map(located)),
                    _ => Err(RpcError::invalid("params.ref.type must be ref/prompt or ref/resource")),
                }
            }
            _ if name.is_empty() => {
                let error = RpcError::invalid("params.uri is missing");
                Err(RpcError { data: Some(serde_json::json!({"uri": ""})), ..error })
            }
            _ => match catalog.resource(&name) {
                Some(entry) => Ok(Some(located(entry))),
                None => Err(unknown_resource(&name, request)),
            },
        }
    }

    fn check_arguments(&self, request: &ClientRequest<'_>) -> Result<(), RpcError> {
        use skep_mcp::Kind;
        let arguments = request.envelope.arguments();
        if arguments.is_some_and(|arguments| !matches!(arguments.kind(), Kind::Object | Kind::Null)) {
            return Err(RpcError::invalid("params.arguments must be an object"));
        }
        if request.method == Method::PromptsGet {
            let values = arguments.and_then(|arguments| arguments.entries().ok()).unwrap_or_default();
            if values.iter().any(|(_, value)| value.kind() != Kind::Text) {
                return Err(RpcError::invalid("params.arguments of a prompt must be strings"));
            }
        }
        Ok(())
    }

    /// Sends the request in the client's session at the backend. A session that the backend has lost is opened again, once
    /// for all requests that need it.
    pub(super) async fn forward(
        &self,
        request: &ClientRequest<'_>,
        backend: &Arc<Backend>,
        route: &Route,
        number: u64,
    ) -> Result<Sent, BackendError> {
        if backend.is_cut_off() {
            return Err(BackendError::CircuitOpen);
        }
        let mut is_last = false;
        loop {
            let link = self.link(&request.session, &request.caller, backend).await?;
            let method = request.method.name().unwrap_or_default();
            let id = number.to_string();
            let rename = route.rename.as_ref();
            let rename = rename.map(|(field, within, name)| Rename { field, within: *within, name });
            let name = rename.map(|rename| rename.name.to_owned());
            let name = name.or_else(|| request.envelope.target().map(|target| target.name().into_owned()));
            if request.method == Method::CompletionComplete && !link.capabilities.completions {
                let messages = Messages::Whole(Some(completion_message(number).into()));
                return Ok(Sent { link, messages, id, name, headers: HeaderMap::new(), body: Bytes::new() });
            }
            self.check_state(request, &link)?;
            let level = request.log_level();
            self.lower_level(request, backend, &link, level).await;
            let form = Form { log_level: level.map(Level::name), ..link.form() };
            let body = self::request(&id, method, request.envelope.params(), rename, &form);
            let body = Bytes::from(body.map_err(|_| BackendError::Malformed)?);
            let headers = parameter_headers(request, route.schema.as_deref(), &link);
            // Only a backend of 2026-07-28 may have to be sent it again.
            let kept = if link.revision.era() == Era::Modern { body.clone() } else { Bytes::new() };
            let outgoing = OutgoingRequest { method, name: name.as_deref(), headers: headers.clone(), body };
            match backend.request(&link, &request.caller, outgoing).await {
                Err(BackendError::SessionLost) if !is_last => {
                    debug!(backend = &*backend.name, "a backend has lost a session; opening another");
                    request.session.links.forget(backend, &link);
                    is_last = true;
                }
                sent => return Ok(Sent { messages: sent?, link, id, name, headers, body: kept }),
            }
        }
    }

    /// An older backend knows no state: the client has one of a call that no longer waits.
    fn check_state(&self, request: &ClientRequest<'_>, link: &Link) -> Result<(), BackendError> {
        let state = request.envelope.params().and_then(|params| params.get("requestState"));
        if state.is_none() || link.revision.era() == Era::Modern {
            return Ok(());
        }
        let message = rpc::UNKNOWN_STATE.to_owned();
        Err(BackendError::Rpc { code: rpc::INVALID_PARAMS, message, data: None })
    }

    /// Lets an older backend send log messages that a client of 2026-07-28 wants for this request.
    async fn lower_level(
        &self,
        request: &ClientRequest<'_>,
        backend: &Backend,
        link: &Link,
        level: Option<Level>,
    ) {
        let session = &request.session;
        let Some(level) = level.filter(|_| request.era == Era::Modern) else { return };
        let is_older = link.revision.era() == Era::Legacy && link.capabilities.logging;
        if is_older && session.level().is_none_or(|set| level < set) {
            session.set_level(level);
            let params = json!({"level": level.name()});
            report(backend, backend.call(link, &request.caller, "logging/setLevel", Some(&params)).await);
        }
    }
}

/// Before 2026-07-28, an unknown resource has a code of its own.
fn unknown_resource(uri: &str, request: &ClientRequest<'_>) -> RpcError {
    const RESOURCE_NOT_FOUND: i64 = -32002;
    let code = if request.era == Era::Modern { rpc::INVALID_PARAMS } else { RESOURCE_NOT_FOUND };
    let error = RpcError::new(code, format!("unknown resource {uri:?}{}", request.session.unlisted()));
    RpcError { data: Some(json!({"uri": uri})), ..error }
}

fn empty_completion() -> String {
    r#"{"completion":{"values":[]}}"#.into()
}

fn completion_message(number: u64) -> Bytes {
    rpc::result_body(&number.to_string(), &empty_completion()).into()
}
