//! Composite tools: a call that runs a workflow.

mod host;
mod keeper;
mod kept;
mod quota;
mod resume;
mod sealed_records;

use std::{sync::Arc, time::Instant};

use http::Response;
use serde_json::{Value, json};
use skep_gateway::{http::Body, message::Part, middleware::WorkflowRun};
use skep_mcp::Era;
use skep_workflow::{Answer, Checkpoint};

use super::{
    ClientRequest, Front,
    answer::tool_error,
    call_digest::CallDigest,
    own::{Calls, OwnCall, Trees, arguments, progress_token},
    rpc::RpcError,
};
use crate::{
    admission::Admitted,
    catalog::{Catalog, Composite},
    limits,
};
pub(super) use host::{Reports, Steps};
pub(super) use keeper::{Keeper, QUESTION};
use kept::KeptCall;
pub(super) use kept::{KeptRuns, PassedOn};

/// Why a workflow does not run.
const TOO_MANY: &str = "too many of your workflows are running: wait until one has ended";

/// A call of a composite tool that another replica has kept.
struct Resumed {
    call: KeptCall,
    checkpoint: Box<Checkpoint>,
    answer: Option<Answer>,
    /// The memory of the checkpoint and of the answer.
    trees: Trees,
}

/// Where a run of a workflow starts.
pub(super) enum Start {
    /// With these arguments, as JSON.
    New(Box<str>),
    /// Where it waits for an answer, with that answer if there is one.
    Waiting(Box<Checkpoint>, Option<Answer>),
}

/// A run of a workflow for a call of a client.
struct Run {
    composite: Arc<Composite>,
    start: Start,
    part: Part,
    keeper: Option<Keeper>,
    /// The memory of a resumed run.
    trees: Option<Trees>,
}

impl Front {
    /// Runs the workflow of a composite tool.
    pub(super) async fn run_workflow(
        self: &Arc<Self>,
        request: &ClientRequest<'_>,
        composite: Arc<Composite>,
        catalog: Arc<Catalog>,
    ) -> Response<Body> {
        let Some(admitted) = self.admit_workflow(request) else {
            return self.tool_result(request, tool_error(TOO_MANY));
        };
        let resumed = match self.resumed(request, &composite).await {
            Ok(resumed) => resumed,
            Err(error) => return error.response(request.id, request.era),
        };
        let run = self.new_run(request, composite, resumed);
        match self.start_workflow(request, catalog, run, admitted) {
            Ok(call) => call.respond().await,
            Err(error) => error.response(request.id, request.era),
        }
    }

    /// Lets a workflow of this caller run, unless too many do.
    fn admit_workflow(&self, request: &ClientRequest<'_>) -> Option<Admitted<()>> {
        let holder = request.exchange.holder();
        self.workflows.admit(holder, limits::WORKFLOWS_OF_ONE.of(holder), || ())
    }

    fn new_run(
        &self,
        request: &ClientRequest<'_>,
        composite: Arc<Composite>,
        resumed: Option<Resumed>,
    ) -> Run {
        let (kept, start, trees) = match resumed {
            None => (None, Start::New(arguments(&request.envelope).into()), None),
            Some(Resumed { call, checkpoint, answer, trees }) => {
                (Some(call), Start::Waiting(checkpoint, answer), Some(trees))
            }
        };
        let audit_id = kept.as_ref().and_then(|call| call.audit_id.parse().ok());
        let audit_id = audit_id.unwrap_or_else(|| request.exchange.audit_id());
        let call = || KeptCall {
            owner: request.session.owner.to_text(),
            session: request.session.links.shared().map(str::to_owned),
            id: request.id.to_owned(),
            progress: progress_token(&request.envelope).map(Into::into),
            tool: composite.name.to_string(),
            definition: composite.definition.clone(),
            digest: Some(CallDigest::of(&request.envelope).to_text()),
            audit_id: audit_id.to_string(),
        };
        // A client of 2026-07-28 has sent another request.
        let call = kept.filter(|_| request.era == Era::Legacy).unwrap_or_else(call);
        let holder = request.exchange.holder();
        let keeper = self.kept.as_ref().map(|runs| Keeper::new(runs.clone(), call, request.era, holder));
        Run { part: composite.part(audit_id), composite, start, keeper, trees }
    }

    fn start_workflow(
        self: &Arc<Self>,
        request: &ClientRequest<'_>,
        catalog: Arc<Catalog>,
        run: Run,
        admitted: Admitted<()>,
    ) -> Result<OwnCall, RpcError> {
        let Run { composite, start, part, keeper, trees } = run;
        let (front, keeper) = (self.clone(), keeper.map(Arc::new));
        let kept = keeper.clone();
        let run = |calls: Calls| async move {
            let _admitted = admitted;
            let trees = trees.unwrap_or_else(|| calls.trees());
            let steps = Steps::new(&calls, part, Reports::Progress, keeper, trees);
            front.workflow_result(&composite, start, &steps).await
        };
        self.start_own(request, catalog, kept, run)
    }

    /// Runs a workflow, and returns the result of its tool as JSON.
    pub(super) async fn workflow_result(
        &self,
        composite: &Composite,
        start: Start,
        steps: &Steps<'_>,
    ) -> String {
        let started = Instant::now();
        let outcome = match start {
            Start::New(arguments) => match steps.arguments(&arguments) {
                Ok(arguments) => skep_workflow::run(&composite.workflow, arguments, steps).await,
                Err(error) => return tool_error(&format!("what is in params.arguments {error}")),
            },
            Start::Waiting(checkpoint, answer) => {
                skep_workflow::resume(&composite.workflow, *checkpoint, answer, steps).await
            }
        };
        if let Some(telemetry) = self.chain.telemetry() {
            telemetry.record_workflow(&WorkflowRun {
                workflow: &composite.name,
                has_failed: outcome.is_err(),
                took: started.elapsed(),
            });
        }
        match outcome {
            Ok(output) => tool_result(&output),
            Err(error) => tool_error(&format!("Workflow execution failed: {error}")),
        }
    }
}

/// The result of a tool with this output.
fn tool_result(output: &Value) -> String {
    let mut result = json!({"content": [{"type": "text", "text": output.to_string()}]});
    if output.is_object() {
        result["structuredContent"] = output.clone();
    }
    result.to_string()
}
