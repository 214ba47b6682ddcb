//! Workflows: whatever the texts of conditions, arguments, collections, questions and outputs, a workflow without mistakes runs to
//! its end.
#![no_main]

use std::{cell::RefCell, sync::Arc};

use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value, json};
use skep_api::vmcp::CompositeTool;
use skep_workflow::{Answer, CallError, Checkpoint, Event, Host, Question, Workflow, check, run};
use tokio::runtime::{Builder, Runtime};

struct Echo;

impl Host for Echo {
    async fn call(&self, tool: &str, arguments: Map<String, Value>) -> Result<Value, CallError> {
        match tool {
            "bad" => Err(CallError { message: "it failed".into(), is_final: true }),
            _ => Ok(json!({"content": [{"type": "text", "text": "done"}], "structuredContent": arguments})),
        }
    }

    async fn elicit(&self, _: Question, _: Option<Checkpoint>) -> Result<Answer, CallError> {
        Ok(Answer::Accept(json!({"region": "eu"})))
    }

    fn input_schema(&self, _: &str) -> Result<Option<Arc<Value>>, CallError> {
        let properties = json!({"n": {"type": "integer"}, "o": {"type": "object"}});
        Ok(Some(json!({"type": "object", "properties": properties}).into()))
    }

    fn reserve(&self, _: usize) -> Result<(), CallError> {
        Ok(())
    }

    fn record(&self, _: Event<'_>) {}
}

thread_local! {
    static RUNTIME: RefCell<Option<Runtime>> = const { RefCell::new(None) };
}

// The texts are separated by lines with a dash.
fuzz_target!(|text: &str| {
    let mut texts = text.split("\n-\n");
    let mut next = || texts.next().unwrap_or("{{.params.n}}");
    let tool = json!({
        "name": "combo", "description": "d",
        "parameters": {"type": "object", "properties": {
            "n": {"type": "integer"}, "s": {"type": "string"}, "l": {"type": "array"}, "o": {"type": "object"},
        }},
        "steps": [
            {"id": "a", "tool": "echo", "condition": next(), "arguments": {"n": next(), "o": next(), "x": [next()]},
             "defaultResults": {"n": 1, "o": {}, "x": []}},
            {"id": "b", "tool": "bad", "dependsOn": ["a"], "onError": {"action": "continue"}, "condition": next(),
             "defaultResults": {"text": ""}},
            {"id": "e", "type": "elicitation", "message": next(), "dependsOn": ["b"],
             "schema": {"type": "object", "properties": {"region": {"type": "string"}}}},
            {"id": "f", "type": "forEach", "collection": next(), "dependsOn": ["e"], "maxIterations": 20,
             "step": {"id": "i", "type": "tool", "tool": "echo", "arguments": {"n": next()}}},
        ],
        "output": {"properties": {
            "n": {"type": "integer", "description": "", "value": next(), "default": 1},
            "s": {"type": "string", "description": "", "value": next()},
        }},
    });
    let Ok(tool) = serde_json::from_value::<CompositeTool>(tool) else { return };
    let mistakes = check(&tool);
    let workflow = Workflow::new(&tool);
    assert_eq!(workflow.is_ok(), mistakes.is_empty(), "{mistakes:?}");
    let Ok(workflow) = workflow else { return };
    let arguments = json!({"n": 3, "s": "text", "l": [1, "two", {"k": [true]}], "o": {"a": {"b": {}}}});
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    RUNTIME.with_borrow_mut(|runtime| {
        let runtime = runtime
            .get_or_insert_with(|| Builder::new_current_thread().enable_time().build().expect("a runtime"));
        if let Ok(output) = runtime.block_on(run(&workflow, arguments, &Echo)) {
            assert!(output["n"].is_i64() || output["n"].is_u64(), "{output}");
            assert!(output.get("s").is_none_or(Value::is_string), "{output}");
        }
    });
});
