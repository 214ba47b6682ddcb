//! Servers and clients that fail during a request.

use std::net::SocketAddr;

use futures::future::join_all;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use skep_proxy::limits;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::{backend::Backend, sockets, tasks, until};
use crate::{
    fixture::{Fixture, call},
    stdio::{
        client::{Client, STREAM},
        fake::Fake,
    },
};

/// How many fail in each manner.
const EACH: usize = 50;

/// A server that reads a request, and then fails as the request's method names it.
async fn failing_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(fail(stream));
        }
    });
    address
}

async fn fail(mut stream: TcpStream) {
    const EVENTS: &str =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut read = Vec::new();
    // The message is the last of the request, and ends with two braces.
    while !read.ends_with(b"}}") {
        if stream.read_buf(&mut read).await.is_ok_and(|count| count == 0) {
            return;
        }
    }
    let text = String::from_utf8(read).unwrap();
    let (_, method) = text.split_once("\"method\":\"").unwrap();
    let answer = match method.split_once('"').unwrap().0 {
        "half a head" => "HTTP/1.1 200 OK\r\nContent-Le".to_owned(),
        "no HTTP" => "garbage\r\n\r\n".to_owned(),
        "two lengths" => "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}".to_owned(),
        "half a body" => {
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"json"
                .to_owned()
        }
        "half a stream" => format!("{EVENTS}11\r\ndata: {{\"jsonrpc\"\n\r\n"),
        "a wrong chunk" => format!("{EVENTS}zz\r\ndata: 1\n\n\r\n"),
        "reset" => {
            // Unread bytes and no linger: the other side gets a reset.
            stream.set_zero_linger().unwrap();
            return;
        }
        "nothing" => return,
        _ => {
            let body = r#"{"jsonrpc":"2.0","id":7,"result":{}}"#;
            // It announces that it closes the connection: otherwise the next request on it would be lost.
            format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            )
        }
    };
    stream.write_all(answer.as_bytes()).await.ok();
}

/// The result of a request for its client.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Answered(StatusCode),
    /// The response breaks off, or the connection does before it.
    Broken,
}

async fn end(fixture: &Fixture, method: &str) -> End {
    let request = Request::post(format!("http://{}/mcp", fixture.address)).header(STREAM.0, STREAM.1);
    let request = request.body(Full::from(call(method, json!({})))).unwrap();
    let Ok(response) = fixture.client.request(request).await else { return End::Broken };
    let (parts, body) = response.into_parts();
    if body.collect().await.is_ok() { End::Answered(parts.status) } else { End::Broken }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_server_affects_only_its_requests_in_flight() {
    let address = failing_server().await;
    let filter = json!([{"type": "tool-filter", "parameters": {"filter_tools": ["read"]}}]);
    let whole_or_nothing = End::Answered(StatusCode::INTERNAL_SERVER_ERROR);
    // Where responses are filtered, one that breaks off is an error before any of it is forwarded.
    for (middleware, half) in [(json!([]), End::Broken), (filter, whole_or_nothing)] {
        let proxy = Fixture::before(address, middleware).await;
        let fixture = &proxy;
        assert_eq!(end(fixture, "echo").await, End::Answered(StatusCode::OK));
        let before = tasks();
        let gateway = End::Answered(StatusCode::BAD_GATEWAY);
        let kinds = [
            ("half a head", &gateway),
            ("no HTTP", &gateway),
            ("two lengths", &gateway),
            ("reset", &gateway),
            ("nothing", &gateway),
            ("half a body", &half),
            ("half a stream", &End::Broken),
            ("a wrong chunk", &End::Broken),
        ];
        let requests = kinds.into_iter().flat_map(|kind| std::iter::repeat_n(kind, EACH));
        join_all(requests.map(|(kind, expected)| async move {
            assert_eq!(end(fixture, kind).await, *expected, "{kind}");
            assert_eq!(end(fixture, "echo").await, End::Answered(StatusCode::OK), "after {kind}");
        }))
        .await;
        let front = proxy.address;
        let proxy = proxy.without_client();
        until("sockets of clients are left", || sockets(front) == 0).await;
        // A connection to the server that is kept for the next request has a task at either end.
        until("tasks are left", || tasks() <= before + 2 * sockets(address)).await;
        proxy.end().await;
    }
}

/// Connects, sends this, waits for so many bytes of a response, and disconnects.
async fn connect_and_disconnect(address: SocketAddr, request: &str, wanted: usize) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut read = vec![0; wanted];
    stream.read_exact(&mut read).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_disconnect_leave_nothing() {
    let backend = Backend::start().await;
    let fixture = Fixture::before(backend.address, json!([])).await;
    assert_eq!(fixture.post(&[], &call("echo", json!({}))).await.status, StatusCode::OK);
    let before = tasks();
    let hang = call("hang", json!({}));
    let length = hang.len();
    let head = "POST /mcp HTTP/1.1\r\nHost: a\r\n";
    let hanging = format!("{head}Content-Length: {length}\r\n\r\n{hang}");
    let rows = [
        (String::new(), 0),
        ("POST /mcp HT".into(), 0),
        (format!("{head}Content-Length: 9999\r\n\r\n{{\"json"), 0),
        (format!("{head}Transfer-Encoding: chunked\r\n\r\nff\r\n{{"), 0),
        ("GET /mcp HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n".into(), 50),
        ("GET /flood HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n".into(), 100_000),
    ];
    join_all(rows.iter().flat_map(|(request, wanted)| {
        (0..EACH).map(|_| connect_and_disconnect(fixture.address, request, *wanted))
    }))
    .await;
    // Clients that wait for a response that is not sent, and disconnect.
    let mut waiting = Vec::new();
    for _ in 0..EACH {
        let mut stream = TcpStream::connect(fixture.address).await.unwrap();
        stream.write_all(hanging.as_bytes()).await.unwrap();
        waiting.push(stream);
    }
    until("they wait at the server", || backend.streams() >= EACH).await;
    assert_eq!(fixture.post(&[], &call("echo", json!({}))).await.status, StatusCode::OK);
    drop(waiting);
    until("the server still serves a client that has disconnected", || backend.streams() == 0).await;
    assert_eq!(fixture.post(&[], &call("echo", json!({}))).await.status, StatusCode::OK);
    let address = fixture.address;
    let fixture = fixture.without_client();
    until("sockets of clients are left", || sockets(address) == 0).await;
    until("tasks are left", || tasks() <= before + 2 * backend.connections()).await;
    fixture.end().await;
}

/// Sends a request that gets no response, with or without a session.
async fn send_hanging(address: SocketAddr, headers: &str, params: Value) -> TcpStream {
    let hang = call("hang", params);
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = hang.len();
    let request = format!("POST /mcp HTTP/1.1\r\nHost: a\r\n{headers}Content-Length: {length}\r\n\r\n{hang}");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disconnect_does_not_affect_other_clients_and_cancels_requests_since_2026() {
    let fake = Fake::new(|received| match (received.method(), received.json.get("id")) {
        ("hang", _) | (_, None) => Vec::new(),
        _ => vec![received.result(json!({}))],
    });
    let fixture = fake.proxy().await;
    let client = Client::new(&fixture).await;
    let before = tasks();
    let count = |method: &str| fake.methods().iter().filter(|received| *received == method).count();
    let session = format!("Mcp-Session-Id: {}\r\n", client.session);
    // More in one session than it may have at once.
    let mut received = 0;
    while received <= limits::SESSION_REQUESTS {
        let accept = if received == 0 { "" } else { "Accept: text/event-stream\r\n" };
        let headers = format!("{session}{accept}");
        let waiting = join_all((0..EACH).map(|_| send_hanging(fixture.address, &headers, json!({})))).await;
        received += EACH;
        until("the server receives them", || count("hang") == received).await;
        assert_eq!(client.call("ping", json!({})).await["id"], 7);
        drop(waiting);
        until("their connections are closed", || sockets(fixture.address) <= 1).await;
    }
    assert_eq!(client.call("ping", json!({})).await["id"], 7);
    assert_eq!(count("notifications/cancelled"), 0, "until 2025-11-25, a connection that ends means nothing");

    let meta = json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
    }});
    let headers = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: hang\r\n";
    let waiting = join_all((0..EACH).map(|_| send_hanging(fixture.address, headers, meta.clone()))).await;
    until("the server receives them", || count("hang") == received + EACH).await;
    drop(waiting);
    until("the requests are cancelled", || count("notifications/cancelled") == EACH).await;
    assert_eq!(client.call("ping", json!({})).await["id"], 7);
    let address = fixture.address;
    drop(client);
    let fixture = fixture.without_client();
    until("sockets of clients are left", || sockets(address) == 0).await;
    until("tasks are left", || tasks() <= before).await;
    fixture.end().await;
}
