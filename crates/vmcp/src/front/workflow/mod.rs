//! Composite tools: a call that runs a workflow.

mod host;

use std::{sync::Arc, time::Instant};

use http::Response;
use serde_json::{Map, Value, json};
use skep_gateway::{http::Body, middleware::WorkflowRun};
use skep_mcp::Method;

use super::{
    ClientRequest, Front,
    answer::tool_error,
    own::{Calls, Part, arguments},
};
use crate::catalog::{Catalog, Composite};
pub(super) use host::{Reports, Steps};

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
        let (front, arguments) = (self.clone(), arguments(&request.envelope));
        let part = Part::of_composite(&composite, request.exchange.audit_id());
        let run = |calls: Calls| async move {
            let steps = Steps { calls: &calls, part, reports: Reports::Progress };
            front.workflow_result(&composite, arguments, &steps).await
        };
        self.run_own(request, catalog, run).await
    }

    /// Runs a workflow, and returns the result of its tool as JSON.
    pub(super) async fn workflow_result(
        &self,
        composite: &Composite,
        arguments: Map<String, Value>,
        steps: &Steps<'_>,
    ) -> String {
        let started = Instant::now();
        let outcome = skep_workflow::run(&composite.workflow, arguments, steps).await;
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
