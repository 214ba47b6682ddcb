//! The audit log of a virtual server: calls that its own tools make.

use serde_json::{Value, json};

use crate::{Server, backend::Backend, client::text};

/// The entries of calls, once the server has stopped.
fn calls(file: &std::path::Path) -> Vec<Value> {
    let log = std::fs::read_to_string(file).unwrap();
    std::fs::remove_file(file).unwrap();
    let entries = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    entries.filter(|entry| entry["type"] == "mcp_tool_call").collect()
}

fn named<'a>(entries: &'a [Value], tool: &str) -> &'a Value {
    let mut of = entries.iter().filter(|entry| entry["target"]["name"] == tool);
    let entry = of.next().unwrap_or_else(|| panic!("no entry of {tool}: {entries:#?}"));
    assert_eq!(of.next(), None, "two of {tool}");
    entry
}

/// What says of which call an entry is a part.
fn part_of(parent: &Value, tool: &str) -> Value {
    json!({"tool": tool, "audit_id": parent["audit_id"]})
}

#[tokio::test]
async fn each_call_of_a_workflow_or_script_is_an_event_of_the_caller_that_names_the_call_it_is_a_part_of() {
    let backend = Backend::start().await;
    let path = std::env::temp_dir().join(format!("skep-vmcp-audit-parts-{}.log", std::process::id()));
    let more = format!(
        "audit: {{enabled: true, logFile: {}}}\ncodeMode: {{enabled: true}}\nallowRunAsWorkflow: true\n\
         compositeTools:\n  - {{name: combo, description: d, runAs: workflow, steps: [{{id: s, tool: a_echo}}]}}\n",
        path.display()
    );
    let server = Server::before(&[("a", &backend)], &more).await;
    let client = server.client().await;
    let script = json!({"script": "a_whoami()\nreturn combo()"});
    let response =
        client.request("tools/call", json!({"name": "execute_tool_script", "arguments": script})).await;
    assert!(!text(&response).1, "{response}");
    client.call("a_last").await;
    server.stop().await;
    let entries = calls(&path);
    assert_eq!(entries.len(), 5, "{entries:#?}");
    let script = named(&entries, "execute_tool_script");
    let (inner, combo, step) =
        (named(&entries, "a_whoami"), named(&entries, "combo"), named(&entries, "a_echo"));
    assert_eq!(script.get("part_of"), None);
    assert_eq!(named(&entries, "a_last").get("part_of"), None, "the caller's own call");
    assert_eq!(inner["part_of"], part_of(script, "execute_tool_script"));
    assert_eq!(combo["part_of"], part_of(script, "execute_tool_script"));
    assert_eq!(step["part_of"], part_of(combo, "combo"));
    assert_eq!(step["authorized_as"], r#"Workflow::"combo""#);
    assert_eq!(combo.get("authorized_as"), None);
    for entry in &entries {
        assert_eq!(entry["subjects"], script["subjects"], "the caller: {entry}");
        assert_eq!(entry["outcome"], "success");
    }
    for entry in [inner, step] {
        assert_eq!(entry["metadata"]["extra"]["backend_name"], "a");
    }
}

#[tokio::test]
async fn a_step_that_is_cancelled_is_an_event_too() {
    let backend = Backend::start().await;
    let path = std::env::temp_dir().join(format!("skep-vmcp-audit-cancelled-{}.log", std::process::id()));
    let more = format!(
        "audit: {{enabled: true, logFile: {}}}\ncompositeTools:\n  \
         - {{name: combo, description: d, timeout: 300ms, steps: [{{id: s, tool: a_echo}}]}}\n",
        path.display()
    );
    let server = Server::before(&[("a", &backend)], &more).await;
    let client = server.client().await;
    client.call("a_last").await;
    backend.set(crate::backend::Mood::Hangs);
    assert!(text(&client.call("combo").await).1);
    backend.set(crate::backend::Mood::Good);
    server.stop().await;
    let entries = calls(&path);
    let step = named(&entries, "a_echo");
    assert_eq!(step["part_of"], part_of(named(&entries, "combo"), "combo"));
    assert_eq!(step["outcome"], "failure");
}
