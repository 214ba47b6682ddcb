//! The plugin of kubectl, on a real API server.

use std::process::{Command, Output};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use skep_api::kinds::{MCPRemoteProxy, MCPServer};
use skep_testkit::Namespace;

fn plugin(test: &Namespace, args: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = Command::new(env!("CARGO_BIN_EXE_skep"))
        .env_clear()
        .env("KUBECONFIG", test.admin("kubectl").kubeconfig_file())
        .args(["kubectl", "--namespace", test.name()])
        .args(args)
        .output()
        .unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

async fn server(test: &Namespace, name: &str, status: Value) {
    let server: MCPServer = serde_json::from_value(json!({
        "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer", "metadata": {"name": name},
        "spec": {"image": "example"},
    }))
    .unwrap();
    test.create_object(&server).await;
    let servers: Api<MCPServer> = test.api();
    let status = Patch::Merge(json!({"status": status}));
    servers.patch_status(name, &PatchParams::default(), &status).await.unwrap();
}

#[tokio::test]
async fn servers_and_their_tools_are_shown_in_tables() {
    let test = skep_testkit::namespace().await;
    let (code, text, error) = plugin(&test, &["status"]);
    assert_eq!((code, text.as_str()), (Some(0), ""));
    assert_eq!(error, format!("No MCP servers found in namespace {}.\n", test.name()));
    let tools =
        json!([{"name": "echo", "title": "Echo", "hints": ["readOnly"], "digest": "0123456789abcdef"}]);
    server(&test, "one", json!({"phase": "Ready", "server": {"toolCount": 2, "tools": tools}})).await;
    server(&test, "two", json!({"phase": "Failed", "message": "its image does not exist"})).await;
    let (_, text, _) = plugin(&test, &["status"]);
    let cells: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(cells[0], ["NAMESPACE", "KIND", "NAME", "PHASE", "TOOLS", "AGE", "MESSAGE"]);
    assert_eq!(cells[1][..5], [test.name(), "MCPServer", "one", "Ready", "2"], "{text}");
    assert!(cells[2][..5] == [test.name(), "MCPServer", "two", "Failed", "-"], "{text}");
    assert!(text.ends_with("its image does not exist\n"), "{text}");
    let (code, text, error) = plugin(&test, &["tools", "one"]);
    let expected = "NAME  TITLE  HINTS     DIGEST\necho  Echo   readOnly  0123456789ab\n";
    assert_eq!((code, text.as_str(), error.as_str()), (Some(0), expected, "1 of 2 tools\n"));
    let (code, _, error) = plugin(&test, &["tools", "two"]);
    assert_eq!(code, Some(1));
    assert!(error.contains("the tools of MCPServer two are not known"), "{error}");
}

#[tokio::test]
async fn a_server_that_does_not_exist_and_a_name_of_two_are_errors_that_say_what_to_do() {
    let test = skep_testkit::namespace().await;
    let (code, _, error) = plugin(&test, &["tools", "missing"]);
    assert_eq!(code, Some(1));
    assert!(error.contains("there is no MCP server missing"), "{error}");
    server(&test, "twice", json!({"server": {"tools": []}})).await;
    let proxy: MCPRemoteProxy = serde_json::from_value(json!({
        "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPRemoteProxy", "metadata": {"name": "twice"},
        "spec": {"remoteUrl": "https://mcp.example.com"},
    }))
    .unwrap();
    test.create_object(&proxy).await;
    let (_, _, error) = plugin(&test, &["tools", "twice"]);
    assert!(error.contains("write mcpserver/twice or mcpremoteproxy/twice"), "{error}");
    assert_eq!(plugin(&test, &["tools", "mcpserver/twice"]).0, Some(0));
    let (_, _, error) = plugin(&test, &["call", "mcpserver/twice", "echo"]);
    assert!(error.contains("MCPServer twice has no address yet"), "{error}");
}

#[tokio::test]
async fn a_request_to_a_running_server_is_explained_by_its_run_config() {
    let test = skep_testkit::namespace().await;
    server(&test, "one", json!({})).await;
    let (code, _, error) = plugin(&test, &["explain", "one", "--tool", "echo"]);
    assert_eq!(code, Some(1));
    assert!(error.contains("MCPServer one has no RunConfig yet"), "{error}");
    let policies = [r#"permit(principal == Client::"system:serviceaccount:team:bot", action, resource);"#];
    let authz =
        json!({"version": "1.0", "type": "cedarv1", "cedar": {"policies": policies, "entities_json": "[]"}});
    let config = json!({
        "name": "one", "transport": "stdio", "authz_config": authz,
        "middleware_configs": [{"type": "authorization", "parameters": {"config_data": authz}}],
    });
    let map: ConfigMap = serde_json::from_value(json!({
        "metadata": {"name": "one-runconfig"}, "data": {"runconfig.json": config.to_string()},
    }))
    .unwrap();
    test.create_object(&map).await;
    let (code, text, error) =
        plugin(&test, &["explain", "one", "--tool", "echo", "--service-account", "team/bot"]);
    assert_eq!(code, Some(0), "{text}{error}");
    assert!(text.contains("policies[0]: permit"), "{text}");
    let (code, text, _) =
        plugin(&test, &["explain", "one", "--tool", "echo", "--service-account", "team/other"]);
    assert!(code == Some(3) && text.contains("rejected by authorization"), "{text}");
}
