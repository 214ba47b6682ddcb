//! Composite tools: a call that makes other calls.
//!
//! The workflow runs in a task of its own, which ends with the call. What it sends to the client passes through a queue: the
//! response is written from it, as that of a backend is from its messages.

mod host;
mod response;

use std::{sync::Arc, time::Instant};

use bytes::Bytes;
use http::Response;
use serde_json::{Map, Value, json};
use skep_gateway::{
    http::Body,
    middleware::{CallOutcome, WorkflowRun},
};
use skep_mcp::{Envelope, Method, Raw};
use tokio::sync::{mpsc, oneshot};

use super::{
    AbortOnDrop, ClientRequest, Front,
    answer::{tool_error, translated},
    rpc::{RpcError, UNKNOWN_STATE},
};
use crate::{
    catalog::{Catalog, Composite},
    limits,
};
use host::Steps;
pub(super) use response::WorkflowCall;

/// What a workflow sends to its client.
enum Sent {
    /// A notification or request, before the response.
    Message(Bytes),
    /// It needs input of a client of 2026-07-28.
    NeedsInput(NeededInput),
    /// The result, as JSON.
    Result(String),
}

/// Input that a step needs.
pub(super) struct NeededInput {
    /// The method and parameters of the request, as JSON.
    request: Box<str>,
    /// Where the result goes, as JSON.
    reply: oneshot::Sender<String>,
}

impl Front {
    /// The composite tool that a request calls, if it does.
    pub(super) fn composite(&self, request: &ClientRequest<'_>, catalog: &Catalog) -> Option<Arc<Composite>> {
        let target = request.envelope.target().filter(|_| request.method == Method::ToolsCall)?;
        catalog.composite(&target.name()).cloned()
    }

    /// Runs the workflow of a composite tool.
    pub(super) async fn run_workflow(
        self: &Arc<Self>,
        request: &ClientRequest<'_>,
        composite: Arc<Composite>,
        catalog: Arc<Catalog>,
    ) -> Response<Body> {
        // It would run a second time.
        if request.envelope.params().is_some_and(|params| params.get("requestState").is_some()) {
            return RpcError::invalid(UNKNOWN_STATE).response(request.id, request.era);
        }
        let (sender, sent) = mpsc::channel(limits::STREAM_QUEUE);
        let Ok(steps) = Steps::new(self.clone(), request, catalog, sender.clone()) else {
            return RpcError::internal("the call could not be started").response(request.id, request.era);
        };
        let caller = steps.caller.clone();
        let arguments: Map<String, Value> = arguments(&request.envelope);
        let (front, server) = (self.clone(), self.name.clone());
        let (era, origin) = (request.era, request.sender);
        let task = tokio::spawn(async move {
            let started = Instant::now();
            let outcome = skep_workflow::run(&composite.workflow, arguments, &steps).await;
            if let Some(telemetry) = front.chain.telemetry() {
                telemetry.record_workflow(&WorkflowRun {
                    workflow: &composite.name,
                    has_failed: outcome.is_err(),
                    took: started.elapsed(),
                });
            }
            let ended = if outcome.is_ok() { CallOutcome::Success } else { CallOutcome::Failure };
            front.record_call(origin, ended, started);
            let result = match outcome {
                Ok(output) => tool_result(&output),
                Err(error) => tool_error(&format!("Workflow execution failed: {error}")),
            };
            let translated = Raw::spelled(&result)
                .and_then(|result| translated(result, Method::ToolsCall, era, &server).ok());
            sender.send(Sent::Result(translated.unwrap_or(result))).await.ok();
        });
        let task = AbortOnDrop(task.abort_handle());
        WorkflowCall::new(self, request, sent, caller, task).respond().await
    }
}

fn arguments(envelope: &Envelope<'_>) -> Map<String, Value> {
    let parsed = envelope.arguments().and_then(|arguments| serde_json::from_str(arguments.as_str()).ok());
    parsed.unwrap_or_default()
}

/// The result of a tool with this output.
fn tool_result(output: &Value) -> String {
    let mut result = json!({"content": [{"type": "text", "text": output.to_string()}]});
    if output.is_object() {
        result["structuredContent"] = output.clone();
    }
    result.to_string()
}
