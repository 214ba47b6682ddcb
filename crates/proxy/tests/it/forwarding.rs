//! Messages are forwarded unchanged.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::fixture::{Fixture, Place, Server, call, json_response, result, status};

#[tokio::test]
async fn messages_and_responses_are_forwarded_byte_for_byte() {
    const ANSWER: &str = r#"{"id" : "\u0061", "result":{"new":1e2,"_meta":{}},"jsonrpc":"2.0"}"#;
    let server = Server::start(|_| json_response(Value::Null).map(|_| ANSWER.into())).await;
    let fixture = Fixture::new(&server, json!([{"type": "mcp-parser"}, {"type": "recovery"}])).await;
    let odd = r#"{ "params":{"unknown":1.50,"name":"a\u0062"},"id":"\u0061","jsonrpc":"2.0" ,"method":"tools/call"}"#;
    let answer = fixture.post(&[("x-custom", "kept"), ("accept", "application/json")], odd).await;
    assert_eq!((answer.status, &*answer.body), (StatusCode::OK, ANSWER.as_bytes()));
    let request = &server.requests()[0];
    assert_eq!(&*request.body, odd.as_bytes());
    assert_eq!((request.path.as_str(), request.header("x-custom")), ("/mcp", Some("kept")));
    assert_eq!(request.header("x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!(request.header("content-length"), Some(odd.len().to_string().as_str()));
}

#[tokio::test]
async fn an_invalid_message_is_rejected_and_not_forwarded() {
    let server = Server::start(|_| status(200)).await;
    let fixture = Fixture::new(&server, json!([])).await;
    for (body, code) in [
        ("{", -32700),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}"#, -32602),
    ] {
        let answer = fixture.post(&[], body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{body}");
        assert_eq!(answer.json()["error"]["code"], code, "{body}");
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_body_that_is_too_large_is_not_read() {
    let server = Server::start(|_| status(200)).await;
    let fixture =
        Fixture::new(&server, json!([{"type": "bodylimit", "parameters": {"max_bytes": 100}}])).await;
    let large = call("tools/call", json!({"name": "a", "arguments": {"text": "x".repeat(200)}}));
    assert_eq!(fixture.post(&[], &large).await.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn headers_that_do_not_match_the_body_are_rejected() {
    let server = Server::start(|request| result(request, json!({}))).await;
    let fixture = Fixture::new(&server, json!([])).await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    });
    let body = call("tools/call", json!({"name": "safe", "arguments": {}, "_meta": meta}));
    let modern = ("mcp-protocol-version", "2026-07-28");
    let good = [modern, ("mcp-method", "tools/call"), ("mcp-name", "safe")];
    assert_eq!(fixture.post(&good, &body).await.status, StatusCode::OK);
    let other = [modern, ("mcp-method", "tools/call"), ("mcp-name", "dangerous")];
    let answer = fixture.post(&other, &body).await;
    assert_eq!(
        (answer.status, answer.json()["error"]["code"].clone()),
        (StatusCode::BAD_REQUEST, json!(-32020))
    );
    let stream = fixture.send(Method::GET, "/mcp", &[modern], b"").await;
    assert_eq!(stream.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn an_unreachable_server_is_reported_as_such() {
    let unused = Place::new();
    let fixture = Fixture::before(unused.address(), json!([])).await;
    for _ in 0..3 {
        let answer = fixture.post(&[], &call("ping", json!({}))).await;
        assert_eq!((answer.status, answer.json()["id"].clone()), (StatusCode::BAD_GATEWAY, json!(7)));
    }
}

#[tokio::test]
async fn requests_wait_for_a_starting_server_and_the_proxy_is_ready_when_it_is_available() {
    let place = Place::new();
    let fixture = Fixture::before(place.address(), json!([])).await;
    let health = async || {
        let answer = fixture.send(Method::GET, "/health", &[], b"").await;
        (answer.status.as_u16(), answer.json())
    };
    let (code, report) = health().await;
    assert_eq!(
        (code, &report["status"], &report["mcp"]["available"]),
        (503, &json!("starting"), &json!(false))
    );
    let ping = call("ping", json!({}));
    let (answer, server) = tokio::join!(fixture.post(&[], &ping), async {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        Server::at(place, |request| result(request, json!({})))
    });
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(server.requests().len(), 1, "it received the request once");
    let (code, report) = health().await;
    assert_eq!(
        (code, &report["status"], &report["mcp"]["available"]),
        (200, &json!("healthy"), &json!(true))
    );
    assert_eq!(server.requests().len(), 1, "it has just responded, so it is not checked");
}

#[tokio::test]
async fn a_recent_health_check_of_the_server_is_not_repeated() {
    let server = Server::start(|_| status(404)).await;
    let fixture = Fixture::new(&server, json!([])).await;
    for _ in 0..3 {
        assert_eq!(fixture.send(Method::GET, "/health", &[], b"").await.status, StatusCode::OK);
    }
    assert_eq!(server.requests().len(), 1);
    assert_eq!((server.requests()[0].method.clone(), server.requests()[0].path.as_str()), (Method::GET, "/"));
    assert_eq!(fixture.send(Method::POST, "/health", &[], b"").await.status, StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn the_endpoint_that_a_server_of_2024_names_is_replaced_by_the_proxy_s() {
    const EVENTS: &str = "event: endpoint\ndata: http://10.9.8.7:1234/messages?sessionId=1\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n";
    let server = Server::start(|request| match request.method {
        Method::GET => {
            http::Response::builder().header("content-type", "text/event-stream").body(EVENTS.into()).unwrap()
        }
        _ => status(202),
    })
    .await;
    let config = json!({
        "name": "files", "transport": "sse", "target_port": server.address.port(), "endpoint_prefix": "/team",
        "trust_proxy_headers": true,
    });
    let fixture = Fixture::of(&skep_config::RunConfig::parse(&config.to_string()).unwrap()).await;
    let answer = fixture.send(Method::GET, "/sse", &[], b"").await;
    let expected = EVENTS.replace("http://10.9.8.7:1234/", "/team/");
    assert_eq!(String::from_utf8(answer.body.to_vec()).unwrap(), expected);
    let forwarded = [("x-forwarded-host", "out.example"), ("x-forwarded-proto", "https")];
    let answer = fixture.send(Method::GET, "/sse", &forwarded, b"").await;
    let expected = EVENTS.replace("http://10.9.8.7:1234/", "https://out.example/team/");
    assert_eq!(String::from_utf8(answer.body.to_vec()).unwrap(), expected);
}
