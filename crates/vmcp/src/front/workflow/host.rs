//! The steps of a workflow, as calls of the client that called the composite tool.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::{Map, Value};
use skep_gateway::message::Part;
use skep_mcp::{List, Raw};
use skep_workflow::{Answer, CallError, Checkpoint, Event, Host, Question};

use super::keeper::{Keeper, Lost, new_question};
use crate::{
    catalog::BackendTool,
    front::own::{Calls, Elicitation, NoTree, Trees},
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
    /// The memory of arguments, schemas, results of steps and items of loops while the workflow runs.
    trees: Trees,
    /// The input schemas of tools, each parsed once.
    schemas: Mutex<HashMap<Box<str>, Option<Arc<Value>>>>,
}

impl<'a> Steps<'a> {
    pub(in crate::front) fn new(
        calls: &'a Calls,
        part: Part,
        reports: Reports,
        keeper: Option<Arc<Keeper>>,
        trees: Trees,
    ) -> Self {
        Self { calls, part, reports, keeper, trees, schemas: Mutex::default() }
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

    fn input_schema(&self, tool: &str) -> Result<Option<Arc<Value>>, CallError> {
        let mut schemas = self.schemas.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(schema) = schemas.get(tool) {
            return Ok(schema.clone());
        }
        let entry = self.tool(tool).and_then(|tool| Raw::spelled(tool.entry.json()));
        let schema = match entry.and_then(|entry| entry.get("inputSchema")) {
            Some(schema) => match self.trees.tree::<Value>(schema.as_str()) {
                Err(error @ NoTree::TooLarge) => return Err(lasting("its input schema", error)),
                schema => schema.ok().map(Arc::new),
            },
            None => None,
        };
        schemas.insert(tool.into(), schema.clone());
        Ok(schema)
    }

    fn reserve(&self, bytes: usize) -> Result<(), CallError> {
        self.trees.reserve(bytes).map_err(|error| lasting("collection: it", error))
    }

    fn record(&self, event: Event<'_>) {
        if let (Reports::Progress, Event::Ended { step, status, done, of, .. }) = (self.reports, event) {
            self.calls.report_progress(done, Some(of), &format!("{step} {}", status.as_str()));
        }
    }
}

fn lasting(what: &str, error: NoTree) -> CallError {
    CallError { message: format!("{what} {error}"), is_final: true }
}
