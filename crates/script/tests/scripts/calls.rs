//! Calls of tools.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use serde_json::{Map, Value, json};
use skep_script::{CallError, Host, Limits, Pool, Script, identifier, run};
use tokio::sync::Barrier;

use crate::{failure, result, run_with};

#[tokio::test]
async fn a_tool_is_called_as_a_function_or_by_its_name() {
    for (script, tool, arguments) in [
        ("return echo(text=\"hi\")", "echo", json!({"text": "hi"})),
        ("return my_tool(1, [2], k=None)", "my-tool", json!({"arg0": 1, "arg1": [2], "k": null})),
        ("return _2nd()", "2nd", json!({})),
        ("return call_tool(\"my-tool\", 1, a={\"b\": (1,)})", "my-tool", json!({"arg0": 1, "a": {"b": [1]}})),
        (
            "f = echo\nreturn f(**{\"x-y\": 18446744073709551615})",
            "echo",
            json!({"x-y": 18446744073709551615u64}),
        ),
    ] {
        assert_eq!(result(script).await, json!({"tool": tool, "arguments": arguments}), "{script}");
    }
    assert_eq!(identifier("1a.b/ü").as_deref(), Some("_1a_b__"));
    assert_eq!(["len", "call-tool", "data", "if", "None", ""].map(identifier), [const { None }; 6]);
}

#[tokio::test]
async fn no_tool_takes_the_place_of_a_builtin() {
    let names =
        ["len", "str", "sorted", "print", "sum", "None", "json", "data", "_sorted", "call-tool", "parallel"];
    let run = async |source: &str| {
        let data = json!({"users": ["ada:password1"]}).as_object().cloned().unwrap();
        let script = Script { source, data, tools: names.map(str::to_owned).into() };
        run(script, &Limits::default(), &Pool::new(1 << 30), &crate::Echo).await.result
    };
    for (source, expected) in [
        (
            "print(users)\nreturn [len(users), str(users), sum([1, 2]), None]",
            r#"[1,"[\"ada:password1\"]",3,null]"#,
        ),
        ("return sorted([\"bb\", \"a\"], key=len)", r#"["a","bb"]"#),
        ("return [json.encode(data), parallel([lambda: 1])]", r#"["{\"users\":[\"ada:password1\"]}",[1]]"#),
        ("return call_tool(\"len\", 1)[\"tool\"]", r#""len""#),
        ("return call_tool(\"call-tool\")[\"tool\"]", r#""call-tool""#),
        ("return _sorted()[\"tool\"]", r#""_sorted""#),
    ] {
        assert_eq!(run(source).await.unwrap(), expected, "{source}");
    }
}

#[tokio::test]
async fn a_tool_that_fails_ends_the_script() {
    let found = failure("x = 1\nreturn bad()").await;
    assert_eq!(found, "line 2, column 11: tool bad failed: cold\n    return bad()\n              ^");
    assert!(failure("return call_tool(\"none\")").await.contains("there is no tool \"none\""));
    assert!(failure("return parallel([lambda: 1, lambda: bad()])").await.contains("cold"));
}

#[tokio::test]
async fn data_is_there_under_its_names_and_as_a_whole() {
    let data = json!({"items": [1, 2], "not-a-name": 3});
    let outcome =
        run_with("return [x * 2 for x in items] + [data[\"not-a-name\"]]", &Limits::default(), data).await;
    assert_eq!(outcome.result.unwrap(), "[2,4,3]");
    for name in ["echo", "my_tool", "parallel"] {
        let mut data = json!({});
        data[name] = json!(1);
        let error = run_with("return 1", &Limits::default(), data).await.result.unwrap_err().to_string();
        assert!(error.starts_with(&format!("data.{name}: ")), "{error}");
    }
}

/// A host whose calls wait for each other.
struct Together {
    barrier: Barrier,
    running: AtomicUsize,
    most: AtomicUsize,
}

impl Host for Together {
    async fn call(&self, _: &str, arguments: String) -> Result<Value, CallError> {
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(running, Ordering::SeqCst);
        self.barrier.wait().await;
        self.running.fetch_sub(1, Ordering::SeqCst);
        let arguments: Value = serde_json::from_str(&arguments).unwrap();
        Ok(arguments["n"].clone())
    }
}

#[tokio::test]
async fn parallel_calls_run_side_by_side_up_to_their_limit() {
    let host = Together { barrier: Barrier::new(4), running: 0.into(), most: 0.into() };
    let limits = Limits { parallel: 4, ..Limits::default() };
    let source = "return parallel([lambda: wait(n=i) for i in range(12)])";
    let script = Script { source, data: Map::new(), tools: vec!["wait".into()] };
    let outcome = run(script, &limits, &Pool::new(1 << 30), &host).await;
    assert_eq!(outcome.result.unwrap(), "[0,1,2,3,4,5,6,7,8,9,10,11]");
    assert_eq!(host.most.into_inner(), 4);
}

#[tokio::test]
async fn threads_take_what_is_no_function_of_the_script_and_can_be_nested() {
    let script = "def f(n):\n    return parallel([lambda: n, lambda: len(echo(n=n)[\"tool\"])])\n\
                  return parallel([lambda: f(1), lambda: f(2), dict]) + parallel([])";
    assert_eq!(result(script).await, json!([[1, 4], [2, 4], {}]));
    assert_eq!(result("return len(parallel([echo, my_tool]))").await, json!(2));
}

/// A host whose calls never end.
struct Silent {
    /// How long the user is waited for.
    input: Duration,
    started: tokio::time::Instant,
}

impl Host for Silent {
    async fn call(&self, _: &str, _: String) -> Result<Value, CallError> {
        std::future::pending().await
    }

    fn input_time(&self) -> Duration {
        self.started.elapsed().min(self.input)
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_and_a_script_end_at_their_time_limits_without_the_time_of_the_user() {
    for (call_time, script_time, input, message, took) in [
        (30, 60, 0, "the tool does not respond within 30s", 30),
        (90, 60, 0, "the script takes longer than 60s", 60),
        (30, 60, 600, "the tool does not respond within 30s", 630),
    ] {
        let limits = Limits {
            call_time: Duration::from_secs(call_time),
            script_time: Duration::from_secs(script_time),
            ..Limits::default()
        };
        let started = tokio::time::Instant::now();
        let host = Silent { input: Duration::from_secs(input), started };
        let script = Script { source: "x = 1\nreturn wait()", data: Map::new(), tools: vec!["wait".into()] };
        let error = run(script, &limits, &Pool::new(1 << 30), &host).await.result.unwrap_err();
        assert_eq!((&*error.message, error.place.unwrap().line), (message, 2));
        assert_eq!(started.elapsed().as_secs(), took);
    }
}
