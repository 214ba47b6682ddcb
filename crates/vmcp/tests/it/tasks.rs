//! Tasks, which are not supported: no client takes one for a result.

use serde_json::{Value, json};

use crate::{Server, backend::Backend, client::Client};

const TASK: &str = r#"{"resultType":"task","taskId":"t1","status":"working"}"#;
const REASON: &str = r#"backend a: its result is of the type \"task\", which is not supported"#;

#[tokio::test]
async fn a_task_is_an_error_that_names_the_backend() {
    let more = "codeMode: {enabled: true}\n\
                compositeTools: [{name: flow, description: d, steps: [{id: s, tool: a_echo}]}]\n";
    for backend in [Backend::start().await, Backend::modern().await] {
        backend.set_result(Some(TASK.into()));
        let server = Server::before(&[("a", &backend)], more).await;
        for client in [server.client().await, Client::modern(server.address, json!({}))] {
            let call = async |name: &str, arguments: Value| {
                let params = json!({"name": name, "arguments": arguments});
                client.request("tools/call", params).await.to_string()
            };
            for response in [
                call("a_echo", json!({})).await,
                call("flow", json!({})).await,
                call("execute_tool_script", json!({"script": "return a_echo()"})).await,
            ] {
                let unescaped = response.replace(r#"\\\""#, r#"\""#);
                assert!(unescaped.contains(REASON), "{response}");
            }
        }
    }
}

#[tokio::test]
async fn a_backend_is_not_asked_for_a_task() {
    let backend = Backend::modern().await;
    let server = Server::before(&[("a", &backend)], "").await;
    let declared = json!({"extensions": {"io.modelcontextprotocol/tasks": {}, "a/b": {}}});
    let client = Client::modern(server.address, declared);
    let params = json!({"name": "a_echo", "arguments": {}, "task": {"ttl": 1000}});
    client.request("tools/call", params).await;
    let sent = backend.last_params();
    let capabilities = &sent["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(*capabilities, json!({"extensions": {"a/b": {}}}));
    assert_eq!(sent.get("task"), None);
}
