//! The calls of a script, as calls of the client that runs it.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use serde_json::Value;
use skep_gateway::message::Part;
use skep_mcp::List;
use skep_script::{CallError, Host};

use crate::front::own::Calls;

/// What makes the calls of a script.
pub(super) struct ScriptHost<'a> {
    calls: &'a Calls,
    part: Part,
    /// How many have ended.
    ended: AtomicUsize,
}

impl<'a> ScriptHost<'a> {
    pub(super) fn new(calls: &'a Calls, part: Part) -> Self {
        Self { calls, part, ended: AtomicUsize::new(0) }
    }
}

impl Host for ScriptHost<'_> {
    async fn call(&self, tool: &str, arguments: String) -> Result<Value, CallError> {
        let failed = |reason: &str| CallError(format!("tool {tool} failed: {reason}"));
        let entry = self.calls.catalog.table(List::Tools).get(tool);
        let entry = entry.ok_or_else(|| failed("it does not exist"))?;
        let trees = self.calls.trees();
        let result = self.calls.call(&self.part, entry, &arguments, &trees).await;
        let result = result.map_err(|error| failed(&error.message));
        let ended = self.ended.fetch_add(1, Ordering::Relaxed) + 1;
        self.calls.report_progress(ended, None, &format!("{tool} has ended"));
        let result = result?;
        match skep_workflow::failure(&result) {
            Some(reason) => Err(failed(&reason)),
            None => Ok(unwrapped(skep_workflow::output(&result))),
        }
    }

    fn input_time(&self) -> Duration {
        self.calls.input_time()
    }
}

/// The only field of a structure, if it is `result`: servers wrap values that are no objects in it.
fn unwrapped(output: Value) -> Value {
    match output {
        Value::Object(mut fields) if fields.len() == 1 && fields.contains_key("result") => {
            fields.remove("result").unwrap_or_default()
        }
        output => output,
    }
}
