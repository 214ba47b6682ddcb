//! The steps of a workflow, as calls of the client that called the composite tool.

use std::sync::Arc;

use serde_json::{Map, Value};
use skep_mcp::{List, Raw};
use skep_workflow::{Answer, CallError, Checkpoint, Event, Host, Question};

use super::keeper::{Keeper, Lost, new_question};
use crate::{
    catalog::BackendTool,
    front::own::{Calls, Elicitation, NoTree, Part, Trees},
};

/// What the client gets of a workflow while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::front) enum Reports {
    /// Progress, step by step.
    Progress,
    /// Nothing: it is part of another call, which has progress of its own.
    Nothing,
}

/// What runs the steps.
pub(in crate::front) struct Steps<'a> {
    calls: &'a Calls,
    part: Part,
    reports: Reports,
    /// What keeps the run while it waits, where sessions are in Redis.
    keeper: Option<Arc<Keeper>>,
    /// The arguments, and results of steps: they count against the budget of bodies while the workflow runs.
    trees: Trees,
}

impl<'a> Steps<'a> {
    pub(in crate::front) fn new(
        calls: &'a Calls,
        part: Part,
        reports: Reports,
        keeper: Option<Arc<Keeper>>,
    ) -> Self {
        Self { calls, part, reports, keeper, trees: calls.trees() }
    }

    /// The arguments of the workflow.
    pub(super) fn arguments(&self, json: &str) -> Result<Map<String, Value>, NoTree> {
        self.trees.tree(json)
    }

    fn tool(&self, name: &str) -> Option<BackendTool<'_>> {
        self.calls.catalog.table(List::Tools).step(name)
    }

    /// Goes on only if no other replica does: the call ends here otherwise.
    async fn claim(&self, keeper: &Keeper) {
        let reason = match keeper.claim().await {
            Ok(()) => return,
            Err(Lost::Taken) => {
                "the question has been answered at another replica, which goes on with the workflow"
            }
            Err(Lost::Unavailable) => "the session store is unavailable: answer the question again, later",
        };
        self.calls.end(reason).await;
        std::future::pending().await
    }
}

impl Host for Steps<'_> {
    async fn call(&self, tool: &str, arguments: Map<String, Value>) -> Result<Value, CallError> {
        let missing = || CallError { message: format!("no backend has the tool {tool:?}"), is_final: false };
        let tool = self.tool(tool).ok_or_else(missing)?;
        let arguments = Value::Object(arguments).to_string();
        self.calls.call_backend(&self.part, tool, &arguments, &self.trees).await
    }

    fn keeps_runs(&self) -> bool {
        self.keeper.is_some()
    }

    async fn elicit(&self, question: Question, checkpoint: Option<Checkpoint>) -> Result<Answer, CallError> {
        self.calls.check_elicitation()?;
        let Some((keeper, checkpoint)) = self.keeper.as_ref().zip(checkpoint) else {
            let elicitation = Elicitation { id: new_question(), is_known: false, state: None, runs: None };
            return self.calls.elicit(question, elicitation, &self.trees).await;
        };
        let (id, is_known) = keeper.question(&question.step);
        let state = keeper.keep(checkpoint, &id, question.time).await;
        let runs = state.as_ref().map(|_| &*keeper.runs);
        let elicitation = Elicitation { id, is_known, state, runs };
        let answer = self.calls.elicit(question, elicitation, &self.trees).await;
        self.claim(keeper).await;
        answer
    }

    async fn withdraw(&self) {
        if let Some(keeper) = &self.keeper {
            self.claim(keeper).await;
        }
    }

    fn input_schema(&self, tool: &str) -> Option<Value> {
        let tool = Raw::spelled(self.tool(tool)?.entry.json())?;
        serde_json::from_str(tool.get("inputSchema")?.as_str()).ok()
    }

    fn record(&self, event: Event<'_>) {
        if let (Reports::Progress, Event::Ended { step, status, done, of, .. }) = (self.reports, event) {
            self.calls.report_progress(done, Some(of), &format!("{step} {}", status.as_str()));
        }
    }
}
