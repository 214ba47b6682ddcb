//! Goes on with a workflow that waited for an answer at another replica.
//!
//! A client of 2026-07-28 sends its call again, with the answer. An older one lost the stream of its call with the replica: it
//! opens another with `Last-Event-ID`, and answers by a message of its own, before or after that.

use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use skep_gateway::{
    http::{Body, events, response},
    message::Exchange,
};
use skep_mcp::{Era, List, Method, Rejection, sse};

use super::{
    Resumed, TOO_MANY,
    kept::{KeptCall, KeptRun, NoRun},
};
use crate::{
    catalog::{Composite, Entry},
    front::{
        ClientRequest, Front,
        call_digest::CallDigest,
        own::{ANSWER, Trees, answer_of},
        relay::given,
        rpc::{OTHER_CALL, RpcError, UNKNOWN_STATE},
    },
    session::ClientSession,
};

/// The header of a client that opens a stream again.
const LAST_EVENT_ID: &str = "last-event-id";
const CHANGED: &str = "the tool has changed while the workflow waited: call it again";
const STORE: &str = "session store";
const NO_MEMORY: &str = "there is no memory for the workflow now: send the request again";
const UNAVAILABLE: &str = "the session store is unavailable: send the request again";

impl Front {
    /// The call that a call of a composite tool goes on with, if another replica has kept it.
    pub(super) async fn resumed(
        &self,
        request: &ClientRequest<'_>,
        composite: &Composite,
    ) -> Result<Option<Resumed>, RpcError> {
        let state = request.envelope.params().and_then(|params| params.get("requestState"));
        let Some(state) = state else { return Ok(None) };
        let unknown = || RpcError::invalid(UNKNOWN_STATE);
        let (Some(runs), Some(state)) = (&self.kept, state.as_text()) else { return Err(unknown()) };
        let unavailable = |_| RpcError::internal(UNAVAILABLE);
        let trees = self.trees(request.exchange);
        let run = runs.find(&state, &request.session, &trees).await.map_err(|error| match error {
            NoRun::Unavailable => RpcError::internal(UNAVAILABLE),
            NoRun::NoMemory => RpcError::internal(NO_MEMORY),
        })?;
        let run = run.ok_or_else(unknown)?;
        let digest = CallDigest::of(&request.envelope).to_text();
        if *run.call.tool != *composite.name || run.call.digest.as_ref().is_some_and(|kept| *kept != digest) {
            return Err(RpcError::invalid(OTHER_CALL));
        }
        if run.call.definition != composite.definition {
            return Err(RpcError::invalid(CHANGED));
        }
        let no_answer = || RpcError::invalid("params.inputResponses has no answer to the question");
        let answer = given(request.envelope.params()).ok_or_else(no_answer)?;
        let answer = trees.tree(answer.as_str());
        let answer = answer.map_err(|error| RpcError::invalid(format!("{ANSWER} {error}")))?;
        let answer = answer_of(answer).map_err(|_| no_answer())?;
        if !runs.take(&state).await.map_err(unavailable)? {
            return Err(unknown());
        }
        let checkpoint = Box::new(run.checkpoint);
        Ok(Some(Resumed { call: run.call, checkpoint, answer: Some(answer), trees }))
    }

    fn trees(&self, exchange: &Exchange) -> Trees {
        Trees::new(&self.budget.part_of(Some(exchange.holder())))
    }

    /// The rest of a stream that an older client lost with another replica, if its workflow can go on.
    pub(in crate::front) async fn resume_stream(
        self: &Arc<Self>,
        exchange: &Exchange,
        session: &Arc<ClientSession>,
    ) -> Option<Response<Body>> {
        let runs = self.kept.as_ref()?;
        let state = exchange.headers.get(LAST_EVENT_ID)?.to_str().ok()?;
        // Another stream would be silent about the call.
        let unavailable = |what| Some(response::error(&Rejection::Unavailable(what), None));
        let trees = self.trees(exchange);
        let found = match runs.find(state, session, &trees).await {
            Ok(found) => found,
            Err(NoRun::Unavailable) => return unavailable(STORE),
            Err(NoRun::NoMemory) => return unavailable("memory"),
        };
        let KeptRun { call, question, checkpoint, .. } = found?;
        let question = question?;
        let caller = self.caller(exchange);
        let catalog = self.views.catalog(session, &caller).await;
        let composite = catalog.table(List::Tools).get(&call.tool).and_then(Entry::composite).cloned();
        let Some(composite) = composite.filter(|composite| composite.definition == call.definition) else {
            let error = RpcError::invalid(CHANGED).body(&call.id);
            return Some(events::response(Body::Whole(sse::encoded("message", error.as_bytes()))));
        };
        let origin = exchange.call(&call.tool, request_of(&call)).ok()?;
        let envelope = origin.message.as_ref()?.envelope().ok()?;
        let id = call.id.clone();
        let request = ClientRequest {
            exchange: &origin,
            envelope,
            method: Method::ToolsCall,
            era: Era::Legacy,
            id: &id,
            session: session.clone(),
            caller,
        };
        // One that is not admitted stays as it is.
        let Some(admitted) = self.admit_workflow(&request) else {
            let error = RpcError::internal(TOO_MANY).body(&id);
            return Some(events::response(Body::Whole(sse::encoded("message", error.as_bytes()))));
        };
        match runs.take(state).await {
            Ok(true) => {}
            Ok(false) => return None,
            Err(_) => return unavailable(STORE),
        }
        // The stream that was lost may be one of this replica, whose run would take the answer.
        session.forget_reply(&serde_json::Value::from(&*question).to_string());
        let step = checkpoint.step.clone();
        let resumed = Resumed { call, checkpoint: Box::new(checkpoint), answer: None, trees };
        let mut run = self.new_run(&request, composite, Some(resumed));
        run.keeper = run.keeper.map(|keeper| keeper.with_question(step, question));
        Some(match self.start_workflow(&request, catalog, run, admitted) {
            Ok(call) => call.stream(None),
            Err(error) => error.response(&id, Era::Legacy),
        })
    }
}

/// The call, as the client had sent it, without the arguments: these are part of what was kept.
fn request_of(call: &KeptCall) -> Bytes {
    let name = serde_json::Value::from(call.tool.as_str());
    let meta = call.progress.as_ref();
    let meta = meta.map(|token| format!(r#","_meta":{{"progressToken":{token}}}"#)).unwrap_or_default();
    let id = &call.id;
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":{name}{meta}}}}}"#).into()
}
