//! Every rule of the engine, with a fake host.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Map, Value, json};
use skep_api::vmcp::CompositeTool;
use tokio::{sync::Semaphore, time::Instant};

use super::*;
use crate::{Answer, CallError, Question};

/// A host whose tools are fake: each is named by what it does.
struct FakeHost {
    calls: Mutex<Vec<(String, Value)>>,
    events: Mutex<Vec<String>>,
    attempts: Mutex<HashMap<String, usize>>,
    answer: Option<Answer>,
    schema: Option<Value>,
    running: AtomicUsize,
    most_running: AtomicUsize,
    reserved: AtomicUsize,
    /// How much may be reserved.
    memory: usize,
    /// Lets calls of `gate` go on.
    gate: Semaphore,
    /// The runs that wait, where they are kept.
    kept: Option<Mutex<Vec<Checkpoint>>>,
}

impl FakeHost {
    fn new() -> Self {
        Self {
            calls: Mutex::default(),
            events: Mutex::default(),
            attempts: Mutex::default(),
            answer: None,
            schema: None,
            running: AtomicUsize::new(0),
            most_running: AtomicUsize::new(0),
            reserved: AtomicUsize::new(0),
            memory: usize::MAX,
            gate: Semaphore::new(0),
            kept: None,
        }
    }

    fn keeping() -> Self {
        Self { kept: Some(Mutex::default()), ..Self::new() }
    }

    /// The run that waits, as another process reads it.
    fn kept(&self) -> Option<Checkpoint> {
        let kept = self.kept.as_ref().and_then(|kept| kept.lock().unwrap().pop());
        kept.map(|checkpoint| serde_json::from_str(&serde_json::to_string(&checkpoint).unwrap()).unwrap())
    }

    fn called(&self) -> Vec<String> {
        self.calls.lock().unwrap().iter().map(|(tool, _)| tool.clone()).collect()
    }

    fn arguments(&self) -> Vec<Value> {
        self.calls.lock().unwrap().iter().map(|(_, arguments)| arguments.clone()).collect()
    }
}

/// Counts what runs, also if it is dropped.
struct Running<'a>(&'a AtomicUsize);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Host for FakeHost {
    async fn call(&self, tool: &str, arguments: Map<String, Value>) -> Result<Value, CallError> {
        let arguments = Value::Object(arguments);
        self.calls.lock().unwrap().push((tool.into(), arguments.clone()));
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_running.fetch_max(running, Ordering::SeqCst);
        let _running = Running(&self.running);
        let attempt = {
            let mut attempts = self.attempts.lock().unwrap();
            let attempt = attempts.entry(tool.into()).or_insert(0);
            *attempt += 1;
            *attempt
        };
        match tool {
            "echo" => Ok(json!({"content": [], "structuredContent": arguments})),
            "text" => Ok(json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]})),
            "bad" => Ok(json!({"content": [{"type": "text", "text": "the oven is cold"}], "isError": true})),
            "broken" => Err(CallError { message: "connection lost".into(), is_final: false }),
            "denied" => Err(CallError { message: "not allowed".into(), is_final: true }),
            "third" if attempt < 3 => Err(CallError { message: "not yet".into(), is_final: false }),
            "third" => Ok(json!({"structuredContent": {"attempt": attempt}})),
            "slow" => {
                tokio::time::sleep(Duration::from_secs(10)).await;
                Ok(json!({"structuredContent": {"v": "slow"}}))
            }
            "huge" => Ok(json!({"structuredContent": {"x": "x".repeat(1 << 20)}})),
            "gate" => {
                self.gate.acquire().await.unwrap().forget();
                Ok(json!({"structuredContent": {}}))
            }
            other => panic!("{other}"),
        }
    }

    fn keeps_runs(&self) -> bool {
        self.kept.is_some()
    }

    async fn elicit(&self, question: Question, checkpoint: Option<Checkpoint>) -> Result<Answer, CallError> {
        if let (Some(kept), Some(checkpoint)) = (&self.kept, checkpoint) {
            kept.lock().unwrap().push(checkpoint);
        }
        self.calls.lock().unwrap().push((format!("elicit {}", question.message), question.schema));
        match &self.answer {
            Some(answer) => Ok(answer.clone()),
            None => std::future::pending().await,
        }
    }

    fn input_schema(&self, _tool: &str) -> Result<Option<Arc<Value>>, CallError> {
        Ok(self.schema.clone().map(Arc::new))
    }

    fn reserve(&self, bytes: usize) -> Result<(), CallError> {
        let reserved = self.reserved.fetch_add(bytes, Ordering::SeqCst) + bytes;
        let full = CallError { message: "no memory".into(), is_final: true };
        if reserved > self.memory { Err(full) } else { Ok(()) }
    }

    fn record(&self, event: Event<'_>) {
        let text = match event {
            Event::Started { step } => format!("{step} started"),
            Event::Ended { step, status, done, of, .. } => format!("{step} {} {done}/{of}", status.as_str()),
        };
        self.events.lock().unwrap().push(text);
    }
}

fn workflow(rest: Value) -> Workflow {
    let mut tool = json!({"name": "w", "description": "d"});
    tool.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    let tool: CompositeTool = serde_json::from_value(tool).unwrap();
    Workflow::new(&tool).unwrap()
}

async fn run_with(host: &FakeHost, rest: Value, arguments: Value) -> Result<Value, String> {
    let arguments = arguments.as_object().unwrap().clone();
    run(&workflow(rest), arguments, host).await.map_err(|error| error.to_string())
}

fn step(id: &str, tool: &str, after: &[&str]) -> Value {
    json!({"id": id, "tool": tool, "dependsOn": after})
}

#[tokio::test(start_paused = true)]
async fn a_step_uses_the_results_of_others_and_the_last_output_is_the_result() {
    let host = FakeHost::new();
    let steps = json!({
        "parameters": {"type": "object", "properties": {"word": {"type": "string"}}},
        "steps": [
            {"id": "a", "tool": "echo", "arguments": {"text": "{{.params.word}}", "list": ["{{.params.word}}", 1]}},
            {"id": "t", "tool": "text", "dependsOn": ["a"]},
            {"id": "b", "tool": "echo", "dependsOn": ["t"], "arguments": {"text":
                "{{.steps.a.output.text}} {{.steps.a.status}} {{.steps.t.output.text}}{{.steps.t.output.text_1}} {{.workflow.step_count}}"}},
        ],
    });
    let result = run_with(&host, steps, json!({"word": "hi"})).await;
    assert_eq!(result, Ok(json!({"text": "hi completed ab 2"})));
    assert_eq!(host.arguments()[0], json!({"text": "hi", "list": ["hi", 1]}));
    let events =
        ["a started", "a completed 1/3", "t started", "t completed 2/3", "b started", "b completed 3/3"];
    assert_eq!(*host.events.lock().unwrap(), events);
}

#[tokio::test(start_paused = true)]
async fn a_step_starts_as_soon_as_what_it_depends_on_has_ended() {
    let host = FakeHost::new();
    // By levels, `c` would wait for `slow`, which is beside `a`.
    let steps = json!({"steps": [step("a", "echo", &[]), step("s", "slow", &[]), step("c", "third", &["a"])], "timeout": "5s"});
    let error = run_with(&host, steps, json!({})).await.unwrap_err();
    assert_eq!(error, "step \"c\" failed: not yet");
}

#[tokio::test(start_paused = true)]
async fn at_most_ten_steps_run_at_once() {
    let host = FakeHost::new();
    let steps: Vec<Value> = (0..30).map(|n| step(&format!("s{n}"), "slow", &[])).collect();
    let started = Instant::now();
    run_with(&host, json!({"steps": steps}), json!({})).await.unwrap();
    assert_eq!(host.most_running.load(Ordering::SeqCst), 10);
    assert_eq!(started.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn no_step_runs_after_an_abort_and_those_that_run_are_cancelled() {
    let host = FakeHost::new();
    let steps = json!({"steps": [step("s", "slow", &[]), step("a", "bad", &[]), step("b", "echo", &["a"])]});
    let error = run_with(&host, steps, json!({})).await.unwrap_err();
    assert_eq!(error, "step \"a\" failed: the oven is cold");
    assert_eq!(host.called(), ["slow", "bad"]);
    assert_eq!(host.running.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn an_ignored_failure_has_the_default_results() {
    let host = FakeHost::new();
    let steps = json!({"steps": [
        {"id": "a", "tool": "bad", "onError": {"action": "continue"}, "defaultResults": {"v": "instead"}},
        {"id": "b", "tool": "echo", "dependsOn": ["a"],
         "arguments": {"t": "{{.steps.a.status}}/{{.steps.a.output.v}}/{{.steps.a.error}}"}},
    ]});
    let result = run_with(&host, steps, json!({})).await;
    assert_eq!(result, Ok(json!({"t": "failed/instead/the oven is cold"})));
}

#[tokio::test(start_paused = true)]
async fn a_step_is_tried_as_often_as_its_retries_allow_with_growing_pauses() {
    let retry = |tool: &str, count: u32| {
        let on_error = json!({"action": "retry", "retryCount": count, "retryDelay": "2s"});
        json!({"steps": [{"id": "a", "tool": tool, "onError": on_error}]})
    };
    let host = FakeHost::new();
    let started = Instant::now();
    assert_eq!(run_with(&host, retry("third", 3), json!({})).await, Ok(json!({"attempt": 3})));
    assert_eq!(started.elapsed(), Duration::from_secs(5));
    for (tool, calls) in [("bad", 3), ("broken", 3), ("denied", 1)] {
        let host = FakeHost::new();
        run_with(&host, retry(tool, 2), json!({})).await.unwrap_err();
        assert_eq!(host.called().len(), calls, "{tool}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_condition_decides_whether_a_step_runs() {
    let steps = json!({
        "parameters": {"type": "object", "properties": {"go": {}}},
        "steps": [
            {"id": "a", "tool": "echo", "arguments": {"v": "ran"}, "condition": "{{.params.go}}", "defaultResults": {"v": "default"}},
            {"id": "b", "tool": "echo", "dependsOn": ["a"], "arguments": {"t": "{{.steps.a.status}} {{.steps.a.output.v}}"}},
        ],
    });
    for (go, expected) in [
        (json!(true), Ok(json!({"t": "completed ran"}))),
        (json!("True"), Ok(json!({"t": "completed ran"}))),
        (json!(false), Ok(json!({"t": "skipped default"}))),
        (json!("1"), Err("step \"a\" failed: condition: \"1\" is neither true nor false".to_owned())),
    ] {
        let host = FakeHost::new();
        assert_eq!(run_with(&host, steps.clone(), json!({"go": go})).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn arguments_are_checked_by_the_parameters_and_get_their_defaults() {
    let steps = json!({
        "parameters": {"type": "object", "required": ["word"], "properties": {
            "word": {"type": "string", "enum": ["a", "b"]},
            "n": {"type": "integer", "default": 7},
            "deep": {"type": "object", "properties": {"x": {"type": "array", "items": {"type": "boolean"}}}},
        }},
        "steps": [{"id": "s", "tool": "echo", "arguments": {"t": "{{.params.word}}{{.params.n}}"}}],
    });
    for (arguments, expected) in [
        (json!({"word": "a"}), Ok(json!({"t": "a7"}))),
        (json!({"word": "a", "n": 2.0}), Ok(json!({"t": "a2"}))),
        (json!({}), Err("arguments.word is required")),
        (json!({"word": 5}), Err("arguments.word must be of type string")),
        (json!({"word": "c"}), Err("arguments.word must be one of \"a\", \"b\"")),
        (json!({"word": "a", "n": 1.5}), Err("arguments.n must be of type integer")),
        (json!({"word": "a", "deep": {"x": [true, 1]}}), Err("arguments.deep.x[1] must be of type boolean")),
    ] {
        let host = FakeHost::new();
        let result = run_with(&host, steps.clone(), arguments).await;
        assert_eq!(result, expected.map_err(str::to_owned));
        assert_eq!(host.called().len(), usize::from(result.is_ok()));
    }
}

#[tokio::test(start_paused = true)]
async fn rendered_arguments_get_the_types_of_the_tools_schema() {
    let properties = json!({
        "i": {"type": "integer"}, "f": {"type": "number"}, "b": {"type": "boolean"}, "s": {"type": "string"},
        "a": {"type": "array"}, "o": {"type": "object", "properties": {"n": {"type": "integer"}}},
        "big": {"type": "integer"}, "bad": {"type": "integer"}, "opt": {"type": ["null", "integer"]},
    });
    let host =
        FakeHost { schema: Some(json!({"type": "object", "properties": properties})), ..FakeHost::new() };
    let arguments = json!({
        "i": "4", "f": "4.5", "b": "true", "s": "4", "a": "[1,2]", "o": {"n": "1"}, "big": "1e+06", "bad": "x",
        "opt": "3", "other": "5",
    });
    run_with(&host, json!({"steps": [{"id": "s", "tool": "echo", "arguments": arguments}]}), json!({}))
        .await
        .unwrap();
    let expected = json!({
        "i": 4, "f": 4.5, "b": true, "s": "4", "a": [1, 2], "o": {"n": 1}, "big": 1_000_000, "bad": "x",
        "opt": 3, "other": "5",
    });
    assert_eq!(host.arguments(), [expected]);
}

#[tokio::test(start_paused = true)]
async fn a_loop_runs_its_step_for_each_item_within_its_bounds() {
    let steps = |inner: Value| {
        json!({
            "parameters": {"type": "object", "properties": {"list": {}}},
            "steps": [{
                "id": "loop", "type": "forEach", "collection": "{{json .params.list}}", "itemVar": "word",
                "maxParallel": 2, "maxIterations": 3, "step": inner,
            }],
        })
    };
    let echo =
        json!({"id": "in", "tool": "echo", "arguments": {"t": "{{.forEach.index}}:{{.forEach.word}}"}});
    let host = FakeHost::new();
    let result = run_with(&host, steps(echo.clone()), json!({"list": ["a", {"k": 1}]})).await;
    let iterations = json!([
        {"index": 0, "item": "a", "status": "completed", "output": {"t": "0:a"}},
        {"index": 1, "item": {"k": 1}, "status": "completed", "output": {"t": "1:{\"k\":1}"}},
    ]);
    assert_eq!(result, Ok(json!({"iterations": iterations, "count": 2, "completed": 2, "failed": 0})));
    let empty = json!({"iterations": [], "count": 0, "completed": 0, "failed": 0});
    for (list, expected) in [
        (json!([]), Ok(empty.clone())),
        (Value::Null, Ok(empty)),
        (json!("x"), Err("collection: it is not a JSON array")),
        (json!([1, 2, 3, 4]), Err("collection: it has 4 items, and the maximum is 3")),
    ] {
        let result = run_with(&FakeHost::new(), steps(echo.clone()), json!({"list": list})).await;
        assert_eq!(result, expected.map_err(|error| format!("step \"loop\" failed: {error}")));
    }
    let slow = FakeHost::new();
    run_with(&slow, steps(json!({"id": "in", "tool": "slow"})), json!({"list": [1, 2, 3]})).await.unwrap();
    assert_eq!(slow.most_running.load(Ordering::SeqCst), 2);
    let ignored = json!({"id": "in", "tool": "bad", "onError": {"action": "continue"}});
    let result = run_with(&FakeHost::new(), steps(ignored), json!({"list": [1, 2]})).await.unwrap();
    assert_eq!(
        (&result["failed"], &result["iterations"][1]["error"]),
        (&json!(2), &json!("the oven is cold"))
    );
    let aborted =
        run_with(&FakeHost::new(), steps(json!({"id": "in", "tool": "bad"})), json!({"list": [1]})).await;
    assert_eq!(aborted, Err("step \"loop\" failed: item 0: the oven is cold".into()));
}

fn asking(on_decline: Value, on_cancel: Value) -> Value {
    json!({
        "steps": [
            {
                "id": "ask", "type": "elicitation", "message": "May I?", "timeout": "3s",
                "schema": {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]},
                "onDecline": {"action": on_decline}, "onCancel": {"action": on_cancel},
            },
            {"id": "then", "tool": "echo", "dependsOn": ["ask"], "arguments": {"t": "{{.steps.ask.output.action}}"}},
        ],
    })
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_the_user_decides_how_a_workflow_goes_on() {
    let accepted = || Some(Answer::Accept(json!({"ok": true})));
    let skipped = |action: &str| Ok(json!({"action": action, "skipped": true}));
    let next = |action: &str| Ok(json!({"t": action}));
    let failed = |why: &str| Err(format!("step \"ask\" failed: {why}"));
    for (answer, action, expected) in [
        (accepted(), "abort", next("accept")),
        (Some(Answer::Accept(json!({"ok": 1}))), "abort", failed("the answer.ok must be of type boolean")),
        (Some(Answer::Decline), "abort", failed("the user declined")),
        (Some(Answer::Decline), "continue", next("decline")),
        (Some(Answer::Decline), "skip_remaining", skipped("decline")),
        (Some(Answer::Cancel), "abort", failed("the user dismissed the question")),
        (Some(Answer::Cancel), "continue", next("cancel")),
        (Some(Answer::Cancel), "skip_remaining", skipped("cancel")),
        (None, "abort", failed("the user did not answer in time")),
        (None, "continue", next("timeout")),
        (None, "skip_remaining", skipped("timeout")),
    ] {
        let host = FakeHost { answer: answer.clone(), ..FakeHost::new() };
        let result = run_with(&host, asking(json!(action), json!(action)), json!({})).await;
        assert_eq!(result, expected, "{answer:?} {action}");
        let runs_next = matches!(&result, Ok(value) if value.get("t").is_some());
        assert_eq!(host.called().contains(&"echo".to_owned()), runs_next, "{answer:?} {action}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_and_a_workflow_end_at_their_limits() {
    let host = FakeHost::new();
    let limited = json!({"timeout": "1s", "steps": [step("a", "slow", &[])]});
    assert_eq!(run_with(&host, limited, json!({})).await, Err("the workflow took longer than 1 s".into()));
    assert_eq!(host.running.load(Ordering::SeqCst), 0);
    let limited = json!({"steps": [
        {"id": "a", "tool": "slow", "timeout": "1s", "onError": {"action": "continue"}, "defaultResults": {"v": "late"}},
        {"id": "b", "tool": "echo", "dependsOn": ["a"], "arguments": {"t": "{{.steps.a.output.v}}"}},
    ]});
    assert_eq!(run_with(&host, limited, json!({})).await, Ok(json!({"t": "late"})));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_dropped_cancels_its_steps() {
    let host = FakeHost::new();
    let workflow = workflow(json!({"steps": [step("a", "gate", &[])]}));
    let mut running = Box::pin(run(&workflow, Map::new(), &host));
    assert!(futures::poll!(&mut running).is_pending());
    assert_eq!(host.running.load(Ordering::SeqCst), 1);
    drop(running);
    assert_eq!(host.running.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn the_output_is_made_of_results_with_types_and_defaults() {
    let shaped = |type_: &str, value: &str, default: Value| {
        let mut property = json!({"type": type_, "description": "d", "value": value});
        if !default.is_null() {
            property["default"] = default;
        }
        property
    };
    let output = |property: Value, required: &[&str]| {
        json!({
            "steps": [{"id": "a", "tool": "echo", "arguments": {"n": 3, "s": "w"}}],
            "output": {"properties": {"x": property}, "required": required},
        })
    };
    let nested = json!({"type": "object", "description": "d", "properties": {"y": shaped("string", "{{.steps.a.output.s}}", Value::Null)}});
    for (property, required, expected) in [
        (
            shaped("string", "{{.steps.a.output.s}} {{.workflow.status}}", Value::Null),
            true,
            Ok(json!({"x": "w completed"})),
        ),
        (shaped("integer", "{{.steps.a.output.n}}", Value::Null), true, Ok(json!({"x": 3}))),
        (shaped("number", "1.5", Value::Null), true, Ok(json!({"x": 1.5}))),
        (shaped("boolean", "true", Value::Null), true, Ok(json!({"x": true}))),
        (shaped("array", "[1,2]", Value::Null), true, Ok(json!({"x": [1, 2]}))),
        (
            shaped("object", "{{json .steps.a.output}}", Value::Null),
            true,
            Ok(json!({"x": {"n": 3, "s": "w"}})),
        ),
        (nested, true, Ok(json!({"x": {"y": "w"}}))),
        (shaped("string", "{{.steps.a.output.none}}", json!("d")), true, Ok(json!({"x": "d"}))),
        (shaped("integer", "{{.steps.a.output.s}}", json!(9)), true, Ok(json!({"x": 9}))),
        (shaped("string", "{{.steps.a.output.none}}", Value::Null), false, Ok(json!({}))),
        (
            shaped("string", "{{.steps.a.output.none}}", Value::Null),
            true,
            Err("output: x is required and has no value"),
        ),
        (
            shaped("integer", "{{.steps.a.output.s}}", Value::Null),
            false,
            Err("output: x: \"w\" is not of type integer"),
        ),
    ] {
        let required: &[&str] = if required { &["x"] } else { &[] };
        let result = run_with(&FakeHost::new(), output(property.clone(), required), json!({})).await;
        assert_eq!(result, expected.map_err(str::to_owned), "{property}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_workflow_whose_results_are_too_large_ends() {
    let host = FakeHost::new();
    let items: Vec<usize> = (0..100).collect();
    let inner = json!({"id": "in", "tool": "huge"});
    let steps = json!({"steps": [{"id": "loop", "type": "forEach", "collection": json!(items).to_string(), "step": inner}]});
    let error = run_with(&host, steps, json!({})).await.unwrap_err();
    assert!(error.ends_with("the results of all steps are too large"), "{error}");
}

/// A text of arrays whose tree takes at least this much.
fn dense(bytes: usize) -> String {
    format!("[{}[0]]", "[0],".repeat(bytes / skep_mcp::tree_size("[0]")))
}

#[tokio::test(start_paused = true)]
async fn a_loop_reserves_the_memory_of_its_items() {
    let collection = dense(1 << 20);
    let inner = json!({"id": "in", "tool": "echo", "arguments": {}});
    let steps = json!({"steps": [{
        "id": "loop", "type": "forEach", "collection": "{{.params.items}}", "step": inner, "maxIterations": 1000,
    }]});
    let arguments = json!({"items": format!("[{collection}]")});
    let host = FakeHost::new();
    run_with(&host, steps.clone(), arguments.clone()).await.unwrap();
    let reserved = host.reserved.load(Ordering::SeqCst);
    assert!(reserved >= 2 << 20, "the items, and the output that has them: {reserved}");
    let full = FakeHost { memory: reserved - 1, ..FakeHost::new() };
    let error = run_with(&full, steps, arguments).await.unwrap_err();
    assert!(error.ends_with("no memory") && full.called().is_empty(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_collection_has_a_largest_size() {
    let inner = json!({"id": "in", "tool": "echo", "arguments": {}});
    for collection in [dense(17 << 20), format!("[{}", "[0],".repeat(1 << 20))] {
        let steps = json!({"steps": [{
            "id": "loop", "type": "forEach", "collection": "{{.params.items}}", "step": inner,
        }]});
        let host = FakeHost::new();
        let error = run_with(&host, steps, json!({"items": collection})).await.unwrap_err();
        assert!(error.ends_with("collection: it has too many values"), "{error}");
        assert_eq!(host.reserved.load(Ordering::SeqCst), 0);
    }
}

/// Two questions beside each other, and steps before, beside and after them.
fn with_questions() -> Value {
    let ask = |id: &str, after: &[&str]| {
        json!({
            "id": id, "type": "elicitation", "message": id, "dependsOn": after,
            "schema": {"type": "object", "properties": {"ok": {"type": "boolean"}}},
        })
    };
    json!({
        "parameters": {"type": "object", "properties": {"word": {"type": "string"}}},
        "steps": [
            {"id": "before", "tool": "echo", "arguments": {"w": "{{.params.word}}"}},
            ask("first", &["before"]),
            {"id": "beside", "tool": "slow"},
            ask("second", &["before"]),
            {"id": "last", "tool": "text", "dependsOn": ["first", "second", "beside"],
             "arguments": {"w": "{{.steps.before.output.w}} {{.steps.first.output.content.ok}} {{.steps.beside.output.v}}"}},
        ],
    })
}

#[tokio::test(start_paused = true)]
async fn a_run_that_ends_at_each_of_its_questions_goes_on_elsewhere_and_runs_each_step_once() {
    let workflow = workflow(with_questions());
    let arguments = Map::from_iter([("word".to_owned(), json!("w"))]);
    let accept = || Answer::Accept(json!({"ok": true}));
    let mut called = Vec::new();
    let mut all_arguments = Vec::new();
    let mut waits: Option<Checkpoint> = None;
    let result = loop {
        let host = FakeHost::keeping();
        let run = match waits.take() {
            None => run(&workflow, arguments.clone(), &host),
            Some(checkpoint) => resume(&workflow, checkpoint, Some(accept()), &host),
        };
        // It ends where it waits for an answer that does not come.
        let ended = tokio::time::timeout(Duration::from_secs(60), run).await;
        let called_again: Vec<String> = host.called();
        assert!(
            called_again.iter().filter(|call| call.starts_with("elicit")).count() <= 1,
            "one at a time: {called_again:?}"
        );
        called.extend(called_again);
        all_arguments.extend(host.arguments());
        match ended {
            Ok(result) => break result,
            Err(_) => waits = host.kept(),
        }
    };
    assert_eq!(result, Ok(json!({"text": "a", "text_1": "b"})));
    assert!(all_arguments.contains(&json!({"w": "w true slow"})), "{all_arguments:?}");
    called.sort();
    assert_eq!(called, ["echo", "elicit first", "elicit second", "slow", "text"]);
}

#[tokio::test(start_paused = true)]
async fn a_resumed_run_waits_for_its_own_question_first_and_for_the_rest_of_the_time() {
    let mut definition = with_questions();
    for step in
        definition["steps"].as_array_mut().unwrap().iter_mut().filter(|step| step["type"] == "elicitation")
    {
        step["timeout"] = "40s".into();
        step["onCancel"] = json!({"action": "skip_remaining"});
    }
    let workflow = workflow(definition);
    let host = FakeHost::keeping();
    let run = run(&workflow, Map::new(), &host);
    tokio::time::timeout(Duration::from_secs(20), run).await.unwrap_err();
    let mut kept = host.kept().unwrap();
    // Both may be sent: either is the first.
    let own = kept.step.clone();
    let other = if own == "first" { "second" } else { "first" };
    // As if it had waited for 30 s.
    kept.sent -= jiff::SignedDuration::from_secs(30);
    let host = FakeHost::keeping();
    let started = Instant::now();
    let resumed = resume(&workflow, kept, None, &host);
    tokio::time::timeout(Duration::from_secs(30), resumed).await.unwrap_err();
    assert_eq!(host.called(), [format!("elicit {own}"), format!("elicit {other}")], "its own is the first");
    let kept = host.kept().unwrap();
    assert_eq!((kept.step.as_str(), kept.skips_rest), (other, true), "{:?}", started.elapsed());
    // The rest is skipped, but for the question that waits.
    let host = FakeHost::keeping();
    let result = resume(&workflow, kept, Some(Answer::Accept(json!({}))), &host).await;
    assert_eq!(result, Ok(json!({"action": "accept", "content": {}})));
    assert_eq!(host.called(), [] as [&str; 0]);
}
