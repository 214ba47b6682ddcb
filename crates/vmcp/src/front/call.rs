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
    running::Running,
    subscribe::report,
};
use crate::{
    backend::{Backend, BackendError, Form, Link, Messages, OutgoingRequest, Rename, request},
    catalog::{BackendTool, Catalog, Composite, Origin, Provider},
    level::Level,
    limits,
    session::{InFlight, Numbering},
    views::Found,
};

/// What a request is for.
enum Target {
    Backend(Route),
    Composite(Arc<Composite>),
    Scripts,
}

impl Target {
    /// Who has it. Nobody has all that a script may call.
    fn found(&self) -> Option<Found> {
        match self {
            Self::Backend(route) => {
                Some(Found { backend: Some(route.backend.clone()), is_named: route.rename.is_some() })
            }
            Self::Composite(_) => Some(Found { backend: None, is_named: true }),
            Self::Scripts => None,
        }
    }
}

/// What a request is about, and where it is.
pub(super) struct Route {
    backend: Arc<str>,
    rename: Option<(&'static str, Option<&'static str>, Box<str>)>,
    /// The schema of a tool that has parameters in headers, as JSON.
    schema: Option<Box<str>>,
}

impl Route {
    /// The route to a tool.
    pub(super) fn to(tool: BackendTool<'_>) -> Self {
        let schema = tool.entry.mirrors_parameters().then(|| tool.entry.json().into());
        Self { schema, ..Self::renamed(tool.origin, None) }
    }

    /// The route to an item that has another name at its backend.
    fn renamed(origin: &Origin, within: Option<&'static str>) -> Self {
        let rename = Some(("name", within, origin.name.clone()));
        Self { rename, ..Self::located(origin) }
    }

    /// The route to an item that has one address everywhere.
    fn located(origin: &Origin) -> Self {
        Self { backend: origin.backend.clone(), rename: None, schema: None }
    }
}

impl Front {
    /// Sends a request to the backend that has what it names.
    pub(super) async fn call(self: &Arc<Self>, request: &ClientRequest<'_>) -> Response<Body> {
        match self.waiting_call(request) {
            Ok(Some(waiting)) => return waiting.resume(request).await,
            Ok(None) => {}
            Err(error) => return error.response(request.id, request.era),
        }
        if let Some(response) = self.search_response(request).await {
            return response;
        }
        let find =
            |catalog: &Catalog| self.target_of(request, catalog).ok()?.and_then(|target| target.found());
        let catalog = self.views.catalog_with(&request.session, &request.caller, find).await;
        let (target, catalog) = match self.target_of(request, &catalog) {
            Err(error) => {
                let complete = self.views.complete(&request.session);
                let is_same = Arc::ptr_eq(&complete, &catalog);
                let target = if is_same { Err(error) } else { self.target_of(request, &complete) };
                (target, complete)
            }
            target => (target, catalog),
        };
        let route = match target {
            Ok(Some(Target::Backend(route))) => route,
            Ok(Some(Target::Composite(composite))) => {
                return self.run_workflow(request, composite, catalog).await;
            }
            Ok(Some(Target::Scripts)) => return self.run_script(request, catalog).await,
            Ok(None) => return rpc::result(request.id, &empty_completion(), request.era),
            Err(_) if request.sender == Sender::Search => return self.unknown_tool(request),
            Err(error) => return error.response(request.id, request.era),
        };
        let Some(backend) = self.views.backend(&route.backend) else {
            let error = RpcError::internal(format!("backend {} has been removed", route.backend));
            return error.response(request.id, request.era);
        };
        request.exchange.backend.set(backend.name.clone()).ok();
        let (session, number) = (&request.session, self.next_number());
        let in_flight = session.begin(request.id, &backend.name, number, Numbering::Shared);
        let name = route.rename.as_ref().map(|(_, _, name)| &**name);
        let measured = Measured::new(self, request, &backend, name);
        let opener = Opener::of(request);
        let sent = tokio::select! {
            biased;
            () = in_flight.cancelled() => Err(BackendError::Cancelled),
            sent = self.forward_when_connected(request, &backend, &route, &in_flight, opener.answer) => sent,
        };
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

    /// What a request is for. None for a completion that no backend has.
    fn target_of(&self, request: &ClientRequest<'_>, catalog: &Catalog) -> Result<Option<Target>, RpcError> {
        let target = request.envelope.target();
        let name = target.map(|target| target.name().into_owned()).unwrap_or_default();
        let unknown =
            |what: &str| RpcError::invalid(format!("unknown {what} {name:?}{}", request.session.unlisted()));
        let prompt = |within| {
            let origin = catalog.table(List::Prompts).get(&name)?.origin()?;
            Some(Target::Backend(Route::renamed(origin, within)))
        };
        let resource = || {
            let origin = catalog.resource(&name)?.origin()?;
            Some(Target::Backend(Route::located(origin)))
        };
        match request.method {
            Method::ToolsCall => {
                self.check_arguments(request)?;
                let entry = catalog.table(List::Tools).get(&name).ok_or_else(|| unknown("tool"))?;
                Ok(Some(match &entry.provider {
                    Provider::Backend(origin) => Target::Backend(Route::to(BackendTool { entry, origin })),
                    Provider::Composite(composite) => Target::Composite(composite.clone()),
                    Provider::Scripts => Target::Scripts,
                }))
            }
            Method::PromptsGet => {
                self.check_arguments(request)?;
                prompt(None).map(Some).ok_or_else(|| unknown("prompt"))
            }
            Method::CompletionComplete => {
                let reference = request.envelope.params().and_then(|params| params.get("ref"));
                let kind = reference.and_then(|reference| reference.get("type")).and_then(Raw::as_text);
                match kind.as_deref() {
                    Some("ref/prompt") => Ok(prompt(Some("ref"))),
                    Some("ref/resource") => Ok(resource()),
                    _ => Err(RpcError::invalid("params.ref.type must be ref/prompt or ref/resource")),
                }
            }
            _ if name.is_empty() => {
                let error = RpcError::invalid("params.uri is missing");
                Err(RpcError { data: Some(r#"{"uri":""}"#.into()), ..error })
            }
            _ => resource().map(Some).ok_or_else(|| unknown_resource(&name, request)),
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
        in_flight: &InFlight,
    ) -> Result<Sent, BackendError> {
        if backend.is_cut_off() {
            return Err(BackendError::CircuitOpen);
        }
        let mut is_last = false;
        loop {
            let link = self.link(&request.session, &request.caller, backend).await?;
            let method = request.method.name().unwrap_or_default();
            let id = in_flight.there.to_string();
            let rename = route.rename.as_ref();
            let rename = rename.map(|(field, within, name)| Rename { field, within: *within, name });
            let name = rename.map(|rename| rename.name.to_owned());
            let name = name.or_else(|| request.envelope.target().map(|target| target.name().into_owned()));
            if request.method == Method::CompletionComplete && !link.capabilities.completions {
                let messages = Messages::Whole(Some(completion_message(&id).into()));
                let running = self.running(request, backend, &link, in_flight);
                return Ok(Sent {
                    link,
                    messages,
                    running,
                    name,
                    headers: HeaderMap::new(),
                    body: Bytes::new(),
                });
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
            let mut running = self.running(request, backend, &link, in_flight);
            let sent = backend.request(&link, &request.caller, outgoing).await;
            sent.as_ref().err().into_iter().for_each(|error| running.failed(error));
            match sent {
                Err(BackendError::SessionLost) if !is_last => {
                    debug!(backend = &*backend.name, "a backend has lost a session; opening another");
                    request.session.links.forget(backend, &link);
                    is_last = true;
                }
                sent => return Ok(Sent { messages: sent?, running, link, name, headers, body: kept }),
            }
        }
    }

    fn running(
        &self,
        request: &ClientRequest<'_>,
        backend: &Arc<Backend>,
        link: &Arc<Link>,
        in_flight: &InFlight,
    ) -> Running {
        Running {
            session: request.session.clone(),
            records: self.records.clone(),
            of_client: request.id.into(),
            backend: backend.clone(),
            link: link.clone(),
            caller: request.caller.clone(),
            id: in_flight.there.to_string(),
            cancellation: in_flight.cancellation.clone(),
            has_ended: false,
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
        let Some(level) = level.filter(|_| request.era == Era::Modern) else { return };
        let is_older = link.revision.era() == Era::Legacy && link.capabilities.logging;
        if is_older && link.lower_level(level) {
            let params = json!({"level": level.name()});
            report(backend, backend.call(link, &request.caller, "logging/setLevel", Some(&params)).await);
        }
    }
}

/// Before 2026-07-28, an unknown resource has a code of its own.
fn unknown_resource(uri: &str, request: &ClientRequest<'_>) -> RpcError {
    if uri.len() > limits::URI {
        return RpcError::invalid("params.uri is too long");
    }
    const RESOURCE_NOT_FOUND: i64 = -32002;
    let code = if request.era == Era::Modern { rpc::INVALID_PARAMS } else { RESOURCE_NOT_FOUND };
    let error = RpcError::new(code, format!("unknown resource {uri:?}{}", request.session.unlisted()));
    RpcError { data: Some(json!({"uri": uri}).to_string().into()), ..error }
}

fn empty_completion() -> String {
    r#"{"completion":{"values":[]}}"#.into()
}

fn completion_message(id: &str) -> Bytes {
    rpc::result_body(id, &empty_completion()).into()
}
