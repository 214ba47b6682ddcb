//! Scripts, run with a host that the test writes.

// A test panics where it fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod calls;
mod differential;
mod errors;
mod hostile;
mod judged;
mod language;

use serde_json::{Value, json};
use skep_script::{CallError, Host, Limits, Outcome, Pool, Script, run};

/// A host whose tools respond at once with what they were called with.
struct Echo;

impl Host for Echo {
    async fn call(&self, tool: &str, arguments: String) -> Result<Value, CallError> {
        match tool {
            "bad" => Err(CallError("tool bad failed: cold".into())),
            _ => {
                let arguments: Value = serde_json::from_str(&arguments).unwrap();
                Ok(json!({"tool": tool, "arguments": arguments}))
            }
        }
    }
}

const TOOLS: [&str; 4] = ["echo", "my-tool", "2nd", "bad"];

/// Runs a script with these limits and data.
async fn run_with(source: &str, limits: &Limits, data: Value) -> Outcome {
    let tools = TOOLS.map(str::to_owned).into();
    let data = data.as_object().cloned().unwrap_or_default();
    run(Script { source, data, tools }, limits, &Pool::new(1 << 30), &Echo).await
}

/// The result of a script.
async fn result(source: &str) -> Value {
    match run_with(source, &Limits::default(), json!({})).await.result {
        Ok(json) => serde_json::from_str(&json).unwrap(),
        Err(error) => panic!("{source}\n{error}"),
    }
}

/// Why a script fails.
async fn failure(source: &str) -> String {
    match run_with(source, &Limits::default(), json!({})).await.result {
        Ok(json) => panic!("{source}\n{json}"),
        Err(error) => error.to_string(),
    }
}
