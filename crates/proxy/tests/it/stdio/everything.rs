//! A real server, the reference server of MCP, as a process behind the proxy.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use skep_config::RunConfig;
use skep_testkit::install;

use super::client::{Client, Events, STREAM, initialize, send};
use crate::fixture::{Fixture, call};

/// The command line of the server, which is installed once.
pub(crate) fn command() -> [String; 2] {
    let program = install("npm", &["server-everything"]).unwrap();
    [program.display().to_string(), "stdio".to_owned()]
}

async fn everything(more: Value) -> Fixture {
    let mut config = json!({
        "name": "everything", "transport": "stdio", "cmd_args": command(), "env_vars": {"OWN": "1"},
    });
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Fixture::of(&RunConfig::parse(&config.to_string()).unwrap()).await
}

fn tool(name: &str, arguments: Value, meta: Value) -> String {
    call("tools/call", json!({"name": name, "arguments": arguments, "_meta": meta}))
}

/// The next message of a stream that is not about changed lists.
async fn next_message(events: &mut Events) -> Value {
    loop {
        let message = events.next().await.expect("the stream has ended");
        let changed = message["method"].as_str().is_some_and(|method| method.ends_with("list_changed"));
        if !changed {
            return message;
        }
    }
}

#[tokio::test]
async fn many_clients_share_a_real_server_and_each_gets_its_own_responses() {
    let fixture = everything(json!({})).await;
    let mut clients = Vec::new();
    for _ in 0..8 {
        clients.push(Client::new(&fixture).await);
    }
    let talks = clients.iter().enumerate().map(|(number, client)| async move {
        for turn in 0..10 {
            let text = format!("{number}/{turn} é\u{a0}\u{200d}😀 <&>");
            let answer = client.post(&tool("echo", json!({"message": text}), json!({}))).await.json();
            assert_eq!(answer["id"], 7);
            assert_eq!(answer["result"]["content"][0]["text"], format!("Echo: {text}"));
        }
    });
    futures::future::join_all(talks).await;
    let environment = clients[0].post(&tool("get-env", json!({}), json!({}))).await.json();
    let environment = environment["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(environment.contains("\"OWN\": \"1\"") && !environment.contains("CARGO"), "{environment}");
}

#[tokio::test]
async fn a_real_server_reports_progress_under_the_clients_token() {
    let fixture = everything(json!({})).await;
    // Of clients with roots, the server requests these in between.
    let (one, two) = (
        Client::with_capabilities(&fixture, json!({})).await,
        Client::with_capabilities(&fixture, json!({})).await,
    );
    let arguments = json!({"duration": 0.3, "steps": 3});
    let body = |token: Value| {
        tool("trigger-long-running-operation", arguments.clone(), json!({"progressToken": token}))
    };
    let (mut first, mut second) = (one.stream(&body(json!("t"))).await, two.stream(&body(json!(4.5))).await);
    for (stream, token) in [(&mut first, json!("t")), (&mut second, json!(4.5))] {
        for step in 1..=3 {
            let params = next_message(stream).await["params"].clone();
            assert_eq!(params, json!({"progress": step, "total": 3, "progressToken": token}));
        }
        assert_eq!(next_message(stream).await["id"], 7);
    }
}

#[tokio::test]
async fn a_real_server_can_send_a_request_to_its_client() {
    let fixture = everything(json!({})).await;
    let client = Client::new(&fixture).await;
    // The server requests roots as soon as it has a client, and offers more tools once it knows its capabilities.
    loop {
        let tools = client.call("tools/list", json!({})).await["result"]["tools"].to_string();
        if tools.contains("trigger-sampling-request") {
            break;
        }
    }
    let mut stream =
        client.stream(&tool("trigger-sampling-request", json!({"prompt": "p"}), json!({}))).await;
    let request = next_message(&mut stream).await;
    assert_eq!(request["method"], "sampling/createMessage");
    let result =
        json!({"model": "m", "role": "assistant", "content": {"type": "text", "text": "from the client"}});
    let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result}).to_string();
    assert_eq!(client.post(&answer).await.status, StatusCode::ACCEPTED);
    let done = next_message(&mut stream).await;
    assert!(done["result"].to_string().contains("from the client"), "{done}");
}

#[tokio::test]
async fn policies_are_enforced_for_a_real_server() {
    let permit = r#"permit(principal, action, resource == Tool::"echo");"#;
    let document =
        json!({"version": "1.0", "type": "cedarv1", "cedar": {"policies": [permit], "entities_json": "[]"}});
    let middleware = json!([
        {"type": "auth", "parameters": {}},
        {"type": "authorization", "parameters": {"config_data": document}},
    ]);
    let fixture = everything(json!({"middleware_configs": middleware})).await;
    let client = Client::new(&fixture).await;
    for listed in [
        client.call("tools/list", json!({})).await,
        next_message(&mut client.stream(&call("tools/list", json!({}))).await).await,
    ] {
        let names: Vec<_> =
            listed["result"]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
        assert_eq!(names, ["echo"]);
    }
    let denied = client.post(&tool("get-env", json!({}), json!({}))).await;
    assert_eq!(denied.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_client_of_2024_can_use_a_real_server() {
    let fixture = everything(json!({"proxy_mode": "sse"})).await;
    let mut events = Events::new(send(&fixture, Method::GET, "/sse", &[STREAM], "").await);
    let (kind, path) = events.event().await.unwrap();
    assert_eq!(kind, "endpoint");
    let json = [("content-type", "application/json")];
    let post = async |body: &str| fixture.send(Method::POST, &path, &json, body.as_bytes()).await.status;
    assert_eq!(post(&initialize("2024-11-05", json!({}))).await, StatusCode::ACCEPTED);
    assert_eq!(next_message(&mut events).await["result"]["protocolVersion"], "2024-11-05");
    assert_eq!(post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await, StatusCode::ACCEPTED);
    assert_eq!(post(&tool("echo", json!({"message": "m"}), json!({}))).await, StatusCode::ACCEPTED);
    let answer = next_message(&mut events).await;
    assert_eq!(answer["result"]["content"][0]["text"], "Echo: m");
}
