//! Scripts: whatever the source, it ends within its limits, and an error shows a place in it.
#![no_main]

use std::{cell::RefCell, time::Duration};

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use skep_script::{CallError, Host, Limits, Pool, Script, run};
use tokio::runtime::{Builder, Runtime};

struct Echo;

impl Host for Echo {
    async fn call(&self, tool: &str, arguments: String) -> Result<Value, CallError> {
        match tool {
            "bad" => Err(CallError("it failed".into())),
            _ => Ok(serde_json::from_str(&arguments).expect("arguments are JSON")),
        }
    }
}

thread_local! {
    static RUNTIME: RefCell<Option<Runtime>> = const { RefCell::new(None) };
}

fuzz_target!(|source: &str| {
    let limits = Limits {
        steps: 5_000,
        memory: 1 << 20,
        output: 64 << 10,
        script_time: Duration::from_secs(5),
        ..Limits::default()
    };
    let pool = Pool::new(4 << 20);
    let data = json!({"items": [1, 2.5, "three", null, true], "d": {"a": {"b": []}}});
    let data = data.as_object().cloned().unwrap_or_default();
    let tools = vec!["echo".to_owned(), "bad".into(), "my-tool".into()];
    let outcome = RUNTIME.with_borrow_mut(|runtime| {
        let runtime = runtime
            .get_or_insert_with(|| Builder::new_current_thread().enable_time().build().expect("a runtime"));
        runtime.block_on(run(Script { source, data, tools }, &limits, &pool, &Echo))
    });
    assert_eq!(pool.used(), 0);
    assert!(outcome.logs.len() <= limits.output + 100);
    match outcome.result {
        Ok(result) => {
            assert!(result.len() <= limits.output);
            serde_json::from_str::<Value>(&result).expect("a result is JSON");
        }
        Err(error) => {
            assert!(error.to_string().len() < 100_000);
            if let Some(place) = &error.place {
                assert!(place.line <= source.matches('\n').count() + 1);
            }
        }
    }
});
