//! Servers and clients that die in the middle of something.

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

/// How many die of each kind.
const EACH: usize = 50;

/// A server that reads a request, and then does what the request's method says.
async fn dying() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(dies(stream));
        }
    });
    address
}

async fn dies(mut stream: TcpStream) {
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
            // It ends the connection, and says so: who does not makes others lose what they send meanwhile.
            format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            )
        }
    };
    stream.write_all(answer.as_bytes()).await.ok();
}

/// How the request ends for its client.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Answered(StatusCode),
    /// An answer begins and breaks off, or the connection does before it.
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
async fn a_server_that_dies_is_an_error_to_those_it_was_answering_and_to_nobody_else() {
    let address = dying().await;
    let filter = json!([{"type": "tool-filter", "parameters": {"filter_tools": ["read"]}}]);
    let whole_or_nothing = End::Answered(StatusCode::INTERNAL_SERVER_ERROR);
    // Where messages are looked into, an answer that breaks off is an error before any of it is told.
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
        let asked = kinds.into_iter().flat_map(|kind| std::iter::repeat_n(kind, EACH));
        join_all(asked.map(|(kind, expected)| async move {
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

/// Connects, sends this, waits for as much of an answer as is wanted, and vanishes.
async fn vanishes(address: SocketAddr, request: &str, wanted: usize) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut read = vec![0; wanted];
    stream.read_exact(&mut read).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_kept_of_clients_that_vanish_in_the_middle() {
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
    join_all(
        rows.iter()
            .flat_map(|(request, wanted)| (0..EACH).map(|_| vanishes(fixture.address, request, *wanted))),
    )
    .await;
    // Those who wait for an answer that does not come, and go while they wait.
    let mut waiting = Vec::new();
    for _ in 0..EACH {
        let mut stream = TcpStream::connect(fixture.address).await.unwrap();
        stream.write_all(hanging.as_bytes()).await.unwrap();
        waiting.push(stream);
    }
    until("they wait at the server", || backend.streams() >= EACH).await;
    assert_eq!(fixture.post(&[], &call("echo", json!({}))).await.status, StatusCode::OK);
    drop(waiting);
    until("the server still works for who is gone", || backend.streams() == 0).await;
    assert_eq!(fixture.post(&[], &call("echo", json!({}))).await.status, StatusCode::OK);
    let address = fixture.address;
    let fixture = fixture.without_client();
    until("sockets of clients are left", || sockets(address) == 0).await;
    until("tasks are left", || tasks() <= before + 2 * backend.connections()).await;
    fixture.end().await;
}

/// Sends a request that is not answered, in a session or by itself.
async fn waits(address: SocketAddr, headers: &str, params: Value) -> TcpStream {
    let hang = call("hang", params);
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = hang.len();
    let request = format!("POST /mcp HTTP/1.1\r\nHost: a\r\n{headers}Content-Length: {length}\r\n\r\n{hang}");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stdio_server_goes_on_with_others_when_clients_vanish_and_is_told_where_that_means_something() {
    let fake = Fake::new(|heard| match (heard.method(), heard.json.get("id")) {
        ("hang", _) | (_, None) => Vec::new(),
        _ => vec![heard.result(json!({}))],
    });
    let fixture = fake.proxied().await;
    let client = Client::new(&fixture).await;
    let before = tasks();
    let count = |method: &str| fake.methods().iter().filter(|heard| *heard == method).count();
    let session = format!("Mcp-Session-Id: {}\r\n", client.session);
    // More in one session than it may have at once.
    let mut heard = 0;
    while heard <= limits::SESSION_REQUESTS {
        let accept = if heard == 0 { "" } else { "Accept: text/event-stream\r\n" };
        let headers = format!("{session}{accept}");
        let waiting = join_all((0..EACH).map(|_| waits(fixture.address, &headers, json!({})))).await;
        heard += EACH;
        until("the server hears them", || count("hang") == heard).await;
        assert_eq!(client.call("ping", json!({})).await["id"], 7);
        drop(waiting);
        until("they are let go", || sockets(fixture.address) <= 1).await;
    }
    assert_eq!(client.call("ping", json!({})).await["id"], 7);
    assert_eq!(count("notifications/cancelled"), 0, "until 2025-11-25, a connection that ends means nothing");

    let meta = json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
    }});
    let headers = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: hang\r\n";
    let waiting = join_all((0..EACH).map(|_| waits(fixture.address, headers, meta.clone()))).await;
    until("the server hears them", || count("hang") == heard + EACH).await;
    drop(waiting);
    until("it is told that nobody waits", || count("notifications/cancelled") == EACH).await;
    assert_eq!(client.call("ping", json!({})).await["id"], 7);
    let address = fixture.address;
    drop(client);
    let fixture = fixture.without_client();
    until("sockets of clients are left", || sockets(address) == 0).await;
    until("tasks are left", || tasks() <= before).await;
    fixture.end().await;
}
