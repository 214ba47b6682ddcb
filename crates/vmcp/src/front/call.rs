//! Carries out requests that name something, and sends those for a backend.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Response};
use serde_json::json;
use skep_gateway::http::Body;
use skep_mcp::{Era, Method};
use tracing::debug;

use super::{
    ClientRequest, Front,
    answer::failure,
    connect::Opener,
    measured::Measured,
    parameters::parameter_headers,
    relay::{Relay, Sent, respond},
    resolve::{Route, Target, Unresolved},
    rpc::{self, RpcError},
    running::Running,
    subscribe::report,
};
use crate::{
    backend::{Backend, BackendError, Form, Link, Messages, OutgoingRequest, Rename, request},
    level::Level,
    session::{InFlight, Numbering},
};

impl Front {
    /// Carries out a request that names something.
    pub(super) async fn call(self: &Arc<Self>, request: &ClientRequest<'_>) -> Response<Body> {
        match self.waiting_call(request) {
            Ok(Some(waiting)) => return waiting.resume(request).await,
            Ok(None) => {}
            Err(error) => return error.response(request.id, request.era),
        }
        match self.resolve(request).await {
            Ok(Target::Backend(route)) => self.call_backend(request, &route).await,
            Ok(Target::Workflow(composite, catalog)) => self.run_workflow(request, composite, catalog).await,
            Ok(Target::Script(catalog)) => self.run_script(request, catalog).await,
            Ok(Target::Search(search)) => self.find_tool(&search, request).await,
            Ok(Target::InvalidCall(error)) => self.invalid_call(request, &error),
            Ok(Target::NoCompletion) => rpc::result(request.id, &empty_completion(), request.era),
            Err(Unresolved::Error(error)) => error.response(request.id, request.era),
            Err(Unresolved::UnknownTool(tool)) => self.unknown_tool(request, &tool),
        }
    }

    /// Sends a request to its backend, and relays the response.
    async fn call_backend(self: &Arc<Self>, request: &ClientRequest<'_>, route: &Route) -> Response<Body> {
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
            sent = self.forward_when_connected(request, &backend, route, &in_flight, opener.answer) => sent,
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

fn empty_completion() -> String {
    r#"{"completion":{"values":[]}}"#.into()
}

fn completion_message(id: &str) -> Bytes {
    rpc::result_body(id, &empty_completion()).into()
}
