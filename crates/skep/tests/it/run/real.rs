//! A real server, the reference server of MCP, as it would run in a cluster.

use std::path::Path;

use serde_json::json;
use skep_testkit::{free_port, install};

use super::{Manifests, Run, server};

/// The program of the server, which is installed once.
fn everything() -> String {
    install("npm", &["server-everything"]).unwrap().display().to_string()
}

#[test]
fn a_real_server_gets_its_variables_and_secrets() {
    let spec = "  env: [{name: PLAIN, value: seen}]
  secrets: [{name: token, key: api, targetEnvName: API_TOKEN}]
---
apiVersion: v1
kind: Secret
metadata: {name: token}
stringData: {api: hunter2}";
    let run = Run::start(&server("everything", &format!("{} stdio", everything()), spec));
    let client = run.client("everything");
    let environment = client.call_tool("get-env", json!({}))["result"]["content"][0]["text"].to_string();
    for variable in ["PLAIN\\\": \\\"seen", "API_TOKEN\\\": \\\"hunter2", "MCP_TRANSPORT\\\": \\\"stdio"] {
        assert!(environment.contains(variable), "no {variable} in {environment}");
    }
    assert!(!environment.contains("CARGO"), "{environment}");
    assert!(!run.output().contains("hunter2"));
}

#[test]
fn a_real_server_that_speaks_http_runs_beside_its_proxy_and_ends_with_it() {
    let port = free_port();
    let spec = format!(
        "  transport: streamable-http\n  mcpPort: {port}\n  env: [{{name: PORT, value: \"{port}\"}}]"
    );
    let run = Run::start(&server("everything", &format!("{} streamableHttp", everything()), &spec));
    let client = run.client("everything");
    let response = client.call_tool("echo", json!({"message": "hi"}));
    assert_eq!(response["result"]["content"][0]["text"], "Echo: hi");
    let child = run.child("everything");
    drop(run);
    assert!(!skep_testkit::process::is_running(child));
}

#[test]
fn a_package_needs_no_file() {
    // npx uses what is installed in the current folder, without the network.
    let program = everything();
    let installed = Path::new(&program).ancestors().nth(3).unwrap();
    let manifests = Manifests::new("");
    let mut command = manifests.skep_run();
    command.args(["npx://@modelcontextprotocol/server-everything", "--", "stdio"]).current_dir(installed);
    let run = Run::of(manifests, command);
    let client = run.client("server-everything");
    let response = client.call_tool("echo", json!({"message": "hi"}));
    assert_eq!(response["result"]["content"][0]["text"], "Echo: hi");
}
