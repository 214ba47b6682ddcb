//! Changes of messages: none that the reader could notice.

use http::StatusCode;
use serde_json::json;

use super::{
    client::{Client, STREAM, initialize},
    fake::{Act, Fake},
};
use crate::fixture::call;

#[tokio::test]
async fn only_the_id_and_the_progress_token_are_replaced_and_then_restored() {
    let fake = Fake::new(|received| match received.method() {
        "tools/call" => vec![Act::Send(format!(
            r#" {{ "result" : {{"n":1.0e+2,"big":123456789012345678901234567890,"nbsp":"{}\u200d<>&","_meta":{{"x":[]}}}} , "id": {},"jsonrpc":"2.0", "new" : null}} "#,
            '\u{a0}', received.json["id"]
        ))],
        _ => Vec::new(),
    });
    let fixture = fake.proxy().await;
    let client = Client::new(&fixture).await;
    let sent = "{\"jsonrpc\":\"2.0\" ,\r\n \"params\":{\"name\":\"a\",\"_meta\":{ \"z\":1e+40,\"progressToken\" : 1.50 ,\"a\":\"\u{200d}\"},\"x\":-0}, \"method\":\"tools/call\", \"id\" : \"\\u0041|7\" ,\"later\":{}}";
    let answer = client.post(sent).await;
    let expected = format!(
        r#" {{ "result" : {{"n":1.0e+2,"big":123456789012345678901234567890,"nbsp":"{}\u200d<>&","_meta":{{"x":[]}}}} , "id": "\u0041|7","jsonrpc":"2.0", "new" : null}} "#,
        '\u{a0}'
    );
    assert_eq!((answer.status, String::from_utf8(answer.body.to_vec()).unwrap()), (StatusCode::OK, expected));
    let received = fake.received_method("tools/call").await;
    let number = received.line.split("\"id\" : ").nth(1).unwrap().split(' ').next().unwrap();
    let expected = sent.replace("\r\n", "  ").replace("1.50", number).replace("\"\\u0041|7\"", number);
    assert_eq!(received.line, expected);
}

#[tokio::test]
async fn every_response_reaches_its_client_byte_for_byte_in_any_order() {
    use std::sync::Mutex;
    // Delays responses, and sends them in reverse order.
    let held: Mutex<Vec<Act>> = Mutex::default();
    let fake = Fake::new(move |received| {
        let Some(params) = received.line.split(r#""params":"#).nth(1) else { return Vec::new() };
        let params = params.strip_suffix('}').unwrap();
        let mut held = held.lock().unwrap();
        held.push(received.result(params));
        // The number of concurrent requests.
        if held.len() < 16 { Vec::new() } else { held.drain(..).rev().collect() }
    });
    let fixture = fake.proxy().await;
    let mut clients = Vec::new();
    for _ in 0..16 {
        clients.push(Client::new(&fixture).await);
    }
    let talks = clients.iter().enumerate().map(|(number, client)| async move {
        for turn in 0..25 {
            // All use the same ids.
            let params =
                format!(r#"{{"of" :{number},"turn":{turn}.0,"text":"é{}"}}"#, "x".repeat(number * 50));
            let body = format!(r#"{{"jsonrpc":"2.0","id":{turn},"method":"tools/call","params":{params}}}"#);
            let expected = format!(r#"{{"jsonrpc":"2.0","id":{turn},"result":{params}}}"#);
            let answer = if turn % 2 == 0 {
                String::from_utf8(client.post(&body).await.body.to_vec()).unwrap()
            } else {
                client.stream(&body).await.text().await.unwrap()
            };
            assert_eq!(answer, expected);
        }
    });
    futures::future::join_all(talks).await;
}

#[tokio::test]
async fn each_client_gets_a_response_to_its_initialize_and_the_server_receives_one() {
    let fake = Fake::echo();
    let fixture = fake.proxy().await;
    let first = fixture.post(&[], &initialize("2025-06-18", json!({"roots": {}}))).await;
    assert_eq!(first.json()["result"]["protocolVersion"], "2025-06-18");
    let other = initialize("2025-11-25", json!({})).replace("\"id\":7", "\"id\":\"other\"");
    let second = fixture.post(&[STREAM], &other).await;
    let text = String::from_utf8(second.body.to_vec()).unwrap();
    assert!(text.starts_with("event: message\ndata: {") && text.contains(r#""id":"other""#), "{text}");
    assert!(text.contains(r#""protocolVersion":"2025-06-18""#), "{text}");
    assert_ne!(first.headers["mcp-session-id"], second.headers["mcp-session-id"]);

    let older = fixture.post(&[], &initialize("2024-11-05", json!({}))).await;
    assert_eq!(older.json()["result"]["protocolVersion"], "2024-11-05");

    let unknown = fixture.post(&[], &initialize("2023-01-01", json!({}))).await;
    let expected = json!({"supported": ["2025-06-18"], "requested": "2023-01-01"});
    assert_eq!((unknown.json()["error"]["data"].clone(), unknown.json()["id"].clone()), (expected, json!(7)));
    assert!(!unknown.headers.contains_key("mcp-session-id"), "no session after an error");

    for session in [&first, &second] {
        let header = [("mcp-session-id", session.headers["mcp-session-id"].to_str().unwrap())];
        let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert_eq!(fixture.post(&header, ready).await.status, StatusCode::ACCEPTED);
        assert_eq!(fixture.post(&header, &call("ping", json!({}))).await.json()["id"], 7);
    }
    assert_eq!(fake.methods(), ["initialize", "notifications/initialized", "ping", "ping"]);
}

#[tokio::test]
async fn initialize_can_be_retried_after_an_error() {
    let fake = Fake::raw(|received| {
        match (received.method(), received.json["params"]["protocolVersion"].as_str()) {
            ("initialize", Some("2024-11-05")) => {
                let id = &received.json["id"];
                vec![Act::Send(
                    json!({"jsonrpc": "2.0", "id": id, "error": {"code": 1, "message": "too old"}})
                        .to_string(),
                )]
            }
            ("initialize", _) => vec![received.result(json!({"protocolVersion": "2025-11-25"}))],
            _ => Vec::new(),
        }
    });
    let fixture = fake.proxy().await;
    let error = fixture.post(&[], &initialize("2024-11-05", json!({}))).await;
    assert_eq!(error.json()["error"]["message"], "too old");
    assert!(!error.headers.contains_key("mcp-session-id"));
    Client::new(&fixture).await;
}

#[tokio::test]
async fn requests_of_2026_have_no_session_and_a_subscription_has_the_id_of_its_client() {
    let fake = Fake::new(|received| {
        let id = &received.json["id"];
        let tagged = |method: &str| {
            let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
            Act::Send(json!({"jsonrpc": "2.0", "method": method, "params": {"_meta": meta}}).to_string())
        };
        match received.method() {
            "subscriptions/listen" => vec![
                tagged("notifications/subscriptions/acknowledged"),
                tagged("notifications/tools/list_changed"),
            ],
            _ => vec![received.result("{}")],
        }
    });
    let fixture = fake.proxy().await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let modern =
        |method: &'static str| [("mcp-protocol-version", "2026-07-28"), ("mcp-method", method), STREAM];
    let list = call("tools/list", json!({"_meta": meta}));
    let answer = fixture.post(&modern("tools/list"), &list).await;
    assert!(String::from_utf8(answer.body.to_vec()).unwrap().contains(r#""id":7,"result":{}"#));

    let listen = call("subscriptions/listen", json!({"_meta": meta, "notifications": {}}));
    let listen = listen.replace("\"id\":7", "\"id\":\"mine\"");
    let headers = modern("subscriptions/listen");
    let mut events = super::client::Events::new(
        super::client::send(&fixture, http::Method::POST, "/mcp", &headers, &listen).await,
    );
    for method in ["notifications/subscriptions/acknowledged", "notifications/tools/list_changed"] {
        let meta = json!({"io.modelcontextprotocol/subscriptionId": "mine"});
        events.expect(json!({"jsonrpc": "2.0", "method": method, "params": {"_meta": meta}})).await;
    }
    let number = fake.received_method("subscriptions/listen").await.json["id"].clone();
    drop(events);
    let cancelled = fake.received_method("notifications/cancelled").await;
    assert_eq!(cancelled.json["params"]["requestId"], number, "disconnecting cancels it");
    assert!(!fake.methods().contains(&"initialize".to_owned()));
}

#[tokio::test]
async fn errors_of_2026_have_a_status_and_methods_about_sessions_do_not_exist() {
    let fake = Fake::new(|received| {
        let error = |code: i32| {
            let error = json!({"code": code, "message": "m"});
            vec![Act::Send(json!({"jsonrpc": "2.0", "id": received.json["id"], "error": error}).to_string())]
        };
        match received.method() {
            "tools/list" => error(-32021),
            "prompts/list" => error(-32603),
            _ => error(-32601),
        }
    });
    let fixture = fake.proxy().await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    for (method, status) in [
        ("tools/list", StatusCode::BAD_REQUEST),
        ("prompts/list", StatusCode::OK),
        ("resources/list", StatusCode::NOT_FOUND),
        ("logging/setLevel", StatusCode::NOT_FOUND),
        ("resources/unsubscribe", StatusCode::NOT_FOUND),
    ] {
        let modern = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)];
        let body = call(method, json!({"_meta": meta}));
        for accepted in [STREAM, ("accept", "application/json")] {
            let answer = fixture.post(&[modern[0], modern[1], accepted], &body).await;
            assert_eq!(answer.status, status, "{method}");
            assert!(String::from_utf8_lossy(&answer.body).contains("\"id\":7"), "{method}");
        }
        let known = fake.methods().iter().any(|received| received == method);
        assert_eq!(known, method.ends_with("/list"), "{method}");
    }
}
