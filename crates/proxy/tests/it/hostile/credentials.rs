//! A remote server gets credentials of the proxy: callers can use them for MCP, and for nothing else.

use std::sync::{Arc, Mutex};

use http::{Method, StatusCode};
use serde_json::{Value, json};
use skep_config::RunConfig;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

use super::raw::Raw;
use crate::fixture::{Fixture, Server, call, eventually, result};

/// A fake of a server of 2024, whose streams stay open, with the first lines of the requests that it received.
async fn http_sse_server(endpoint: &'static str) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let requests: Arc<Mutex<Vec<String>>> = Arc::default();
    let received = requests.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, endpoint, received.clone()));
        }
    });
    (format!("http://{address}"), requests)
}

async fn serve(stream: TcpStream, endpoint: &str, received: Arc<Mutex<Vec<String>>>) {
    let mut stream = BufReader::new(stream);
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await.unwrap_or_default() == 0 {
                return;
            }
            match line.trim() {
                "" => break,
                line => lines.push(line.to_ascii_lowercase()),
            }
        }
        let length = lines.iter().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        stream.read_exact(&mut body).await.unwrap();
        let listens = lines[0].starts_with("get");
        received.lock().unwrap().push(lines.swap_remove(0));
        let response = if listens {
            let event = format!("event: endpoint\ndata: {endpoint}\n\n");
            let head =
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
            format!("{head}{:x}\r\n{event}\r\n", event.len())
        } else {
            "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n".to_owned()
        };
        stream.write_all(response.as_bytes()).await.unwrap();
    }
}

async fn proxy(transport: &str, remote_url: &str) -> Fixture {
    let headers = json!({"add_plaintext_headers": {"authorization": "Bearer of-the-organisation"}});
    let config: Value = json!({
        "name": "r", "transport": transport, "remote_url": remote_url, "header_forward": headers,
    });
    Fixture::of(&RunConfig::parse(&config.to_string()).unwrap()).await
}

#[tokio::test]
async fn only_the_stream_and_its_endpoint_are_reached_at_a_remote_http_sse_server() {
    let (url, received) = http_sse_server("/api/v4/mcp/messages?s=1").await;
    let fixture = proxy("sse", &format!("{url}/api/v4/mcp/sse")).await;
    let json = [("content-type", "application/json")];
    let ping = call("ping", json!({}));
    let post = async |path: &str| fixture.send(Method::POST, path, &json, ping.as_bytes()).await.status;
    assert_eq!(post("/api/v4/mcp/messages?s=1").await, StatusCode::NOT_FOUND, "there is no stream");

    let mut stream = Raw::new(fixture.address).await;
    stream.send("GET /sse HTTP/1.1\r\nHost: r\r\nAccept: text/event-stream\r\n\r\n").await;
    assert_eq!(stream.status().await, 200);
    eventually("the endpoint is announced", async || {
        post("/api/v4/mcp/messages?s=1").await == StatusCode::ACCEPTED
    })
    .await;
    for path in ["/api/v4/projects", "/api/v4/mcp/messages/", "/api/v4/mcp/sse", "/"] {
        assert_eq!(post(path).await, StatusCode::NOT_FOUND, "{path}");
    }
    for method in [Method::DELETE, Method::HEAD, Method::OPTIONS, Method::PUT] {
        let answer = fixture.send(method.clone(), "/api/v4/projects/1", &[], b"").await;
        assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED, "{method}");
    }
    let mut received: Vec<String> = received.lock().unwrap().clone();
    received.dedup();
    let expected = ["get /api/v4/mcp/sse http/1.1", "post /api/v4/mcp/messages?s=1 http/1.1"];
    assert_eq!(received, expected);
}

/// The server does not end the stream, and a pod has half a minute to end.
#[tokio::test]
async fn a_client_that_listens_does_not_delay_the_end_of_the_proxy() {
    let (url, _) = http_sse_server("/messages").await;
    let fixture = proxy("sse", &format!("{url}/sse")).await;
    let mut stream = Raw::new(fixture.address).await;
    stream.send("GET /sse HTTP/1.1\r\nHost: r\r\nAccept: text/event-stream\r\n\r\n").await;
    assert_eq!(stream.status().await, 200);
    let ended = tokio::time::timeout(skep_proxy::limits::DRAIN_TIME / 2, fixture.end()).await;
    assert!(ended.is_ok(), "it waits for the stream");
}

#[tokio::test]
async fn the_path_at_a_remote_server_without_one_is_not_the_caller_s_choice() {
    let server = Server::start(|request| result(request, json!({}))).await;
    let fixture = proxy("streamable-http", &format!("http://{}", server.address)).await;
    assert_eq!(fixture.post(&[], &call("ping", json!({}))).await.status, StatusCode::OK);
    let session = [("mcp-session-id", "x"), ("content-type", "application/json")];
    let ping = call("ping", json!({}));
    for (method, body) in [(Method::DELETE, ""), (Method::GET, ""), (Method::POST, ping.as_str())] {
        let answer = fixture.send(method.clone(), "/api/v4/projects/1", &session, body.as_bytes()).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{method}");
    }
    assert_eq!(server.requests().len(), 1, "{:?}", server.requests());
}

#[tokio::test]
async fn a_post_without_a_message_is_rejected() {
    let server = Server::start(|request| result(request, json!({}))).await;
    let fixture = Fixture::new(&server, json!([])).await;
    for path in ["/mcp", "/admin/restart"] {
        let answer = fixture.send(Method::POST, path, &[], b"").await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{path}");
    }
    assert!(server.requests().is_empty());
}
