//! Policies and limits of a cluster apply here, too.

use serde_json::{Value, json};

use super::{DEMO, Run, server};

#[test]
fn calls_are_limited_without_the_redis_of_a_cluster() {
    let spec = "  rateLimiting:
    tools: [{name: add, shared: {maxTokens: 2, refillPeriod: 1h}}]
  sessionStorage: {provider: redis, address: 'redis.databases.svc:6379', passwordRef: {name: redis, key: password}}
---
apiVersion: v1
kind: Secret
metadata: {name: redis}
stringData: {password: hunter2}";
    let run = Run::start(&server("demo", DEMO, spec));
    let client = run.client("demo");
    let add = || client.call_tool("add", json!({"a": 1, "b": 1}));
    assert_eq!(add()["result"]["content"][0]["text"], "2");
    assert_eq!(add()["result"]["content"][0]["text"], "2");
    let limited = add();
    assert_eq!(limited["error"]["code"], 429, "{limited}");
    assert_eq!(client.call_tool("echo", json!({"message": "hi"}))["result"]["content"][0]["text"], "hi");
}

#[test]
fn requests_are_written_to_the_audit_log() {
    let run = Run::start(&server("demo", DEMO, "  audit: {enabled: true}"));
    run.client("demo").call_tool("echo", json!({"message": "hunter2"}));
    run.expect_output("mcp_tool_call");
    let output = run.output();
    let event = output.lines().find(|line| line.contains("mcp_tool_call")).unwrap();
    let event: Value = serde_json::from_str(event).unwrap();
    assert_eq!((&event["outcome"], &event["target"]["name"]), (&json!("success"), &json!("echo")), "{event}");
    assert!(!output.contains("hunter2"), "{output}");
}
