//! `skep demo-server`: a small MCP server on standard input and output, as a first example for `skep run`.

use std::io::{self, BufRead, Read, Write};

use jiff::Timestamp;
use serde_json::{Value, json};
use skep_mcp::{Envelope, Method, Revision, empty_result};
use tokio::signal::unix::{SignalKind, signal};

/// Run a small MCP server on standard input and output, with the tools echo, add and time.
#[derive(clap::Args)]
#[command(
    hide = true,
    after_help = "Examples:\n  skep demo-server\n  skep run -f examples/quickstart.yaml    runs it behind a proxy"
)]
pub(crate) struct Args {}

/// The maximum length of a message.
const LONGEST: u64 = 1 << 20;
/// The revision for clients that request an unknown one.
const NEWEST: &str = "2025-11-25";

pub(crate) fn run() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let ended = runtime.block_on(async {
        // Signals end the first process of a container only if it handles them.
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            ended = tokio::task::spawn_blocking(serve) => ended?,
            _ = terminate.recv() => Ok(()),
        }
    });
    // A blocking read of standard input cannot be cancelled.
    runtime.shutdown_background();
    ended
}

/// Responds until its input ends.
fn serve() -> anyhow::Result<()> {
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let mut line = Vec::new();
    loop {
        line.clear();
        if (&mut input).take(LONGEST).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        // An invalid message has no id to respond to.
        if let Ok(message) = Envelope::parse(&line)
            && let Some(response) = response(&message)
        {
            writeln!(output, "{response}")?;
            output.flush()?;
        }
    }
}

/// The response to a request. Notifications have none.
fn response(message: &Envelope<'_>) -> Option<String> {
    let id = message.id().filter(|_| message.method().is_some())?;
    let outcome = match message.method()? {
        Method::Initialize => Ok(initialize_result(message)),
        Method::Ping => return String::from_utf8(empty_result(id)).ok(),
        Method::ToolsList => Ok(json!({"tools": tools()})),
        Method::ToolsCall => call_tool(message),
        _ => Err((-32601, "Method not found".to_owned())),
    };
    let id = id.raw().as_str();
    Some(match outcome {
        Ok(result) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#),
        Err((code, message)) => {
            let error = json!({"code": code, "message": message});
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
        }
    })
}

/// The result of initialize, with the requested revision if that has a handshake.
fn initialize_result(message: &Envelope<'_>) -> Value {
    let requested = message.requested_version().map(|version| version.decoded().into_owned());
    let known = requested.filter(|requested| {
        Revision::named(requested.as_bytes()).is_some_and(|revision| revision.era() == skep_mcp::Era::Legacy)
    });
    json!({
        "protocolVersion": known.as_deref().unwrap_or(NEWEST),
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "skep-demo-server", "version": env!("CARGO_PKG_VERSION")},
    })
}

fn tools() -> Value {
    let number = json!({"type": "number"});
    json!([
        {
            "name": "echo",
            "description": "Returns its message",
            "inputSchema": {
                "type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"],
            },
        },
        {
            "name": "add",
            "description": "Adds two numbers",
            "inputSchema": {
                "type": "object", "properties": {"a": number, "b": number}, "required": ["a", "b"],
            },
        },
        {
            "name": "time",
            "description": "Returns the current time in UTC",
            "inputSchema": {"type": "object", "properties": {}},
        },
    ])
}

fn call_tool(message: &Envelope<'_>) -> Result<Value, (i32, String)> {
    let wrong = |message: String| (-32602, message);
    let arguments = message.unambiguous_arguments().map_err(|fault| wrong(fault.to_string()))?;
    let arguments = arguments.unwrap_or_default();
    let text = match message.target().map(|tool| tool.name().into_owned()).unwrap_or_default().as_str() {
        "echo" => {
            let message_text = arguments["message"].as_str();
            message_text.ok_or_else(|| wrong("echo needs message, a string".into()))?.to_owned()
        }
        "add" => {
            let (Some(a), Some(b)) = (arguments["a"].as_f64(), arguments["b"].as_f64()) else {
                return Err(wrong("add needs a and b, two numbers".into()));
            };
            (a + b).to_string()
        }
        "time" => Timestamp::now().to_string(),
        other => return Err(wrong(format!("Unknown tool: {other}"))),
    };
    Ok(json!({"content": [{"type": "text", "text": text}], "isError": false}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requested(method: &str, params: Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": "a", "method": method, "params": params}).to_string();
        let response = response(&Envelope::parse(request.as_bytes()).unwrap()).unwrap();
        let response: Value = serde_json::from_str(&response).unwrap();
        assert_eq!((&response["jsonrpc"], &response["id"]), (&json!("2.0"), &json!("a")));
        response
    }

    #[test]
    fn it_uses_the_revision_of_the_client() {
        for (requested_revision, expected) in [
            ("2024-11-05", "2024-11-05"),
            ("2025-06-18", "2025-06-18"),
            ("1999", NEWEST),
            ("2026-07-28", NEWEST),
        ] {
            let response = requested("initialize", json!({"protocolVersion": requested_revision}));
            assert_eq!(response["result"]["protocolVersion"], expected, "{requested_revision}");
        }
    }

    #[test]
    fn its_tools_return_results_or_errors() {
        let call = |name: &str, arguments: Value| {
            requested("tools/call", json!({"name": name, "arguments": arguments}))
        };
        assert_eq!(call("echo", json!({"message": "hi"}))["result"]["content"][0]["text"], "hi");
        assert_eq!(call("add", json!({"a": 1.5, "b": 2}))["result"]["content"][0]["text"], "3.5");
        let time = call("time", json!({}))["result"]["content"][0]["text"].as_str().unwrap().to_owned();
        assert!(time.parse::<Timestamp>().is_ok(), "{time}");
        assert_eq!(call("add", json!({"a": 1}))["error"]["message"], "add needs a and b, two numbers");
        assert_eq!(call("fly", json!({}))["error"]["message"], "Unknown tool: fly");
        assert_eq!(requested("tasks/list", json!({}))["error"]["code"], -32601);
    }
}
