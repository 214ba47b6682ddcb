//! Clients that take all they can get: others are served, and probes are answered.

use std::net::{IpAddr, SocketAddr};

use http::Method;
use serde_json::json;
use skep_config::RunConfig;
use skep_gateway::{
    http::{ConnectionLimits, serve_within},
    limits::{BODIES, REQUEST_BODY},
};
use skep_proxy::{Proxy, Workers};
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::oneshot,
    task::{JoinHandle, JoinSet},
};

use crate::{
    fixture::{Server, call, result},
    hostile::raw::{Raw, post},
};

/// A connection from this address, as if from another machine.
async fn connect(from: IpAddr, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((from, 0).into()).unwrap();
    socket.connect(to).await.unwrap()
}

fn health() -> &'static str {
    "GET /health HTTP/1.1\r\nHost: files\r\n\r\n"
}

fn ping() -> String {
    let body = call("ping", json!({}));
    post(&[&format!("Content-Length: {}", body.len())], &body)
}

/// A proxy in front of a server that answers every request.
struct Endpoint {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<std::io::Result<()>>,
    _server: Server,
}

impl Endpoint {
    async fn start(limits: ConnectionLimits) -> Self {
        let server = Server::start(|request| match request.method == Method::POST {
            true => result(request, json!({})),
            false => crate::fixture::status(200),
        })
        .await;
        let config = json!({
            "name": "files", "transport": "streamable-http", "host": "127.0.0.1",
            "target_host": "127.0.0.1", "target_port": server.address.port(),
        });
        let proxy = Proxy::new(&RunConfig::parse(&config.to_string()).unwrap()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving =
            tokio::spawn(serve_within(limits, listener, proxy.endpoint(), Workers::default(), async move {
                stopped.await.ok();
            }));
        Self { address, stop, serving, _server: server }
    }

    async fn end(self) {
        drop(self.stop);
        self.serving.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_stranger_that_holds_connections_locks_out_neither_others_nor_probes() {
    let limits = ConnectionLimits { all: 20, of_an_address: 10, for_probes: 4, for_probes_of_an_address: 2 };
    let endpoint = Endpoint::start(limits).await;
    let address = endpoint.address;
    let [stranger, other, kubelet] = [2, 3, 4].map(|last| IpAddr::from([127, 0, 0, last]));

    // More than it may have; some wait in a head, the rest say nothing.
    let mut held = Vec::new();
    for number in 0..30 {
        let mut connection = Raw::of(connect(stranger, address).await);
        if number % 2 == 0 {
            connection.try_send("POST /mcp HTTP/1.1\r\nHost: fi").await;
        }
        held.push(connection);
    }
    let mut served = Vec::new();
    for _ in 0..10 {
        let mut connection = Raw::of(connect(other, address).await);
        connection.send(ping()).await;
        assert_eq!(connection.reply().await.unwrap().status, 200, "another client is served");
        served.push(connection);
    }
    // Now all places are taken.
    let mut probe = Raw::of(connect(kubelet, address).await);
    probe.send(health()).await;
    assert_eq!(probe.reply().await.unwrap().status, 200, "the kubelet gets its answer");
    assert!(probe.ends().await, "nor can its place be held");
    let mut late = Raw::of(connect(kubelet, address).await);
    late.send(ping()).await;
    let reply = late.reply().await.unwrap();
    assert_eq!(reply.status, 503);
    assert!(reply.head.contains("connection: close"), "{reply:?}");
    drop(late);

    // Strangers that take the places for probes, and send nothing, lose them soon.
    let mut silent = Vec::new();
    for number in 0..8 {
        silent.push(connect([127, 0, 1, number + 1].into(), address).await);
    }
    crate::fixture::eventually("the kubelet gets its answer again", async || {
        let mut probe = Raw::of(connect(kubelet, address).await);
        probe.try_send(health()).await && probe.reply().await.is_some_and(|reply| reply.status == 200)
    })
    .await;

    // What they held is free again when they end.
    drop(held);
    crate::fixture::eventually("a place is free", async || {
        let mut connection = Raw::of(connect(stranger, address).await);
        connection.try_send(&ping()).await
            && connection.reply().await.is_some_and(|reply| reply.status == 200)
    })
    .await;
    drop(served);
    endpoint.end().await;
}

/// A body of this size, as a call.
fn large_call(size: usize) -> String {
    let call = call("echo", json!({"text": ""}));
    call.replace("\"text\":\"\"", &format!("\"text\":\"{}\"", "x".repeat(size - call.len())))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_with_large_bodies_that_never_end_leaves_memory_for_others() {
    let endpoint = Endpoint::start(ConnectionLimits::default()).await;
    let address = endpoint.address;
    let body = large_call(REQUEST_BODY);
    let head = post(&[&format!("Content-Length: {}", body.len())], "");
    // As many as would take all of the memory for bodies: each lacks its last byte.
    let mut uploads = JoinSet::new();
    for _ in 0..BODIES / REQUEST_BODY {
        let (head, body) = (head.clone(), body.clone());
        uploads.spawn(async move {
            let mut upload = Raw::of(connect([127, 0, 0, 2].into(), address).await);
            // One that is rejected may find the connection closed.
            upload.try_send(&head).await;
            upload.try_send(&body[..body.len() - 1]).await;
            upload.reply().await.map(|reply| reply.status)
        });
    }
    // At most half of it is theirs: the others are rejected.
    for _ in 0..BODIES / REQUEST_BODY / 2 {
        let status = uploads.join_next().await.unwrap().unwrap();
        assert!(status.is_none_or(|status| status == 503), "{status:?}");
    }
    assert!(!uploads.is_empty(), "some go on");
    for size in [1 << 10, 1 << 20, REQUEST_BODY] {
        let mut other = Raw::of(connect([127, 0, 0, 3].into(), address).await);
        let body = large_call(size);
        other.send(post(&[&format!("Content-Length: {}", body.len())], &body)).await;
        assert_eq!(other.reply().await.unwrap().status, 200, "another client is served: {size}");
    }
    drop(uploads);
    endpoint.end().await;
}
