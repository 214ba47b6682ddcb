//! The steps of a workflow, as calls of the client that called the composite tool.

use serde_json::{Map, Value};
use skep_mcp::{List, Raw};
use skep_workflow::{Answer, CallError, Event, Host, Question};

use crate::{
    catalog::Entry,
    front::own::{Calls, Part},
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
    pub(in crate::front) calls: &'a Calls,
    pub(in crate::front) part: Part,
    pub(in crate::front) reports: Reports,
}

impl Steps<'_> {
    fn tool(&self, name: &str) -> Option<&Entry> {
        self.calls.catalog.table(List::Tools).step(name)
    }
}

impl Host for Steps<'_> {
    async fn call(&self, tool: &str, arguments: Map<String, Value>) -> Result<Value, CallError> {
        let missing = || CallError { message: format!("no backend has the tool {tool:?}"), is_final: false };
        let entry = self.tool(tool).ok_or_else(missing)?;
        self.calls.call(&self.part, entry, arguments).await
    }

    async fn elicit(&self, question: Question) -> Result<Answer, CallError> {
        self.calls.elicit(question).await
    }

    fn input_schema(&self, tool: &str) -> Option<Value> {
        let tool = Raw::spelled(self.tool(tool)?.json())?;
        serde_json::from_str(tool.get("inputSchema")?.as_str()).ok()
    }

    fn record(&self, event: Event<'_>) {
        if let (Reports::Progress, Event::Ended { step, status, done, of, .. }) = (self.reports, event) {
            self.calls.report_progress(done, Some(of), &format!("{step} {}", status.as_str()));
        }
    }
}
