//! Clients that do not read. The buffer for each is bounded: backpressure stops the server long before its response ends.

use std::{net::SocketAddr, time::Duration};

use http::StatusCode;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
};

use super::{backend::Backend, sockets, until};
use crate::fixture::{Fixture, call};

/// The buffers of four sockets and the proxy's own: far less than the response.
const HELD: usize = 48 << 20;
/// The least that a server would have written without backpressure.
const WHOLE: usize = 256 << 20;

/// A client that reads the start of the response only.
async fn reader(address: SocketAddr, request: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(16 << 10).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut begins = [0; 12];
    stream.read_exact(&mut begins).await.unwrap();
    assert_eq!(&begins, b"HTTP/1.1 200");
    stream
}

/// What the server has written when it has stopped writing.
async fn written(backend: &Backend) -> usize {
    let mut before = 0;
    loop {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let now = backend.written();
        if now == before && now > 0 {
            return now;
        }
        before = now;
    }
}

fn requests() -> [(&'static str, String); 2] {
    let large = call("large", json!({}));
    let length = large.len();
    [
        (
            "a large response",
            format!("POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{large}"),
        ),
        ("a stream", "GET /flood HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n".into()),
    ]
}

fn filter() -> Value {
    json!([{"type": "tool-filter", "parameters": {"filter_tools": ["read"]}}])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_reader_causes_backpressure_and_affects_no_other_client() {
    // With a filter, a response that is not a stream is read completely first, which has its own bound.
    for (middleware, requests) in [(json!([]), &requests()[..]), (filter(), &requests()[1..])] {
        for (what, request) in requests {
            let backend = Backend::start().await;
            let fixture = Fixture::before(backend.address, middleware.clone()).await;
            let slow = reader(fixture.address, request).await;
            let held = written(&backend).await;
            assert!(held < HELD, "{what}: {held} of {WHOLE} bytes were read for a client that does not read");
            for _ in 0..20 {
                assert_eq!(
                    fixture.post(&[], &call("echo", json!({}))).await.status,
                    StatusCode::OK,
                    "{what}"
                );
            }
            drop(slow);
            until("the server still writes to a client that has disconnected", || backend.streams() == 0)
                .await;
            assert!(backend.written() < WHOLE, "{what}");
            let address = fixture.address;
            let fixture = fixture.without_client();
            until("a socket is left", || sockets(address) == 0).await;
            fixture.end().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_filtered_response_beyond_the_limit_is_an_error() {
    let backend = Backend::start().await;
    let fixture = Fixture::before(backend.address, filter()).await;
    let answer = fixture.post(&[], &call("large", json!({}))).await;
    assert_eq!(answer.status, StatusCode::INTERNAL_SERVER_ERROR);
    until("the server still writes", || backend.streams() == 0).await;
    assert!(backend.written() < WHOLE);
    assert_eq!(fixture.post(&[], &call("echo", json!({}))).await.status, StatusCode::OK);
}
