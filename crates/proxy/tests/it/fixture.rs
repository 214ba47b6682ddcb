//! A scripted server, a proxy in front of it, and a client.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
};
use serde_json::{Value, json};
use skep_config::RunConfig;
use skep_proxy::{Configured, Extras, Proxy, Workers, limits, serve};
use tokio::{
    net::{TcpListener, TcpSocket},
    sync::{oneshot, watch},
    task::JoinHandle,
};

/// A request as the server received it.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedRequest {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl ReceivedRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// The reserved address of a server: nothing listens there yet.
pub(crate) struct Place(TcpSocket);

impl Place {
    pub(crate) fn new() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
        Self(socket)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }
}

/// A fake of an MCP server: it responds as scripted by a test, and records its requests.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
    _stop: oneshot::Sender<()>,
    _place: Option<Place>,
}

impl Server {
    pub(crate) async fn start(
        script: impl Fn(&ReceivedRequest) -> Response<Bytes> + Send + Sync + 'static,
    ) -> Self {
        Self::at(Place::new(), script)
    }

    pub(crate) fn at(
        place: Place,
        script: impl Fn(&ReceivedRequest) -> Response<Bytes> + Send + Sync + 'static,
    ) -> Self {
        Self::gated(place, watch::channel(true).1, script)
    }

    /// One that responds while the gate is open, and otherwise when it opens.
    pub(crate) fn gated(
        place: Place,
        gate: watch::Receiver<bool>,
        script: impl Fn(&ReceivedRequest) -> Response<Bytes> + Send + Sync + 'static,
    ) -> Self {
        let listener = place.0.listen(64).unwrap();
        let address = listener.local_addr().unwrap();
        let requests: Arc<Mutex<Vec<ReceivedRequest>>> = Arc::default();
        let (stop, mut stopped) = oneshot::channel();
        let (script, memory) = (Arc::new(script), requests.clone());
        tokio::spawn(async move {
            loop {
                let (stream, _) = tokio::select! {
                    accepted = listener.accept() => accepted.unwrap(),
                    _ = &mut stopped => return,
                };
                let (script, memory, gate) = (script.clone(), memory.clone(), gate.clone());
                let service = service_fn(move |request: Request<Incoming>| {
                    let (script, memory, mut gate) = (script.clone(), memory.clone(), gate.clone());
                    async move {
                        let (parts, body) = request.into_parts();
                        let body = body.collect().await.unwrap().to_bytes();
                        let path = parts.uri.to_string();
                        let request =
                            ReceivedRequest { method: parts.method, path, headers: parts.headers, body };
                        memory.lock().unwrap().push(request.clone());
                        let is_open = gate.wait_for(|is_open| *is_open).await.is_ok();
                        let response = script(&request);
                        if !is_open || response.extensions().get::<Never>().is_some() {
                            std::future::pending::<()>().await;
                        }
                        Ok::<_, Infallible>(response.map(Full::new))
                    }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { address, requests, _stop: stop, _place: None }
    }

    /// One that has ended: nothing listens at its address.
    pub(crate) fn stopped() -> Self {
        let place = Place::new();
        Self {
            address: place.address(),
            requests: Arc::default(),
            _stop: oneshot::channel().0,
            _place: Some(place),
        }
    }

    pub(crate) fn requests(&self) -> Vec<ReceivedRequest> {
        self.requests.lock().unwrap().clone()
    }
}

/// A response in JSON.
pub(crate) fn json_response(body: Value) -> Response<Bytes> {
    let response = Response::builder().header("content-type", "application/json");
    response.body(Bytes::from(body.to_string())).unwrap()
}

/// A response to an MCP request.
pub(crate) fn result(request: &ReceivedRequest, result: Value) -> Response<Bytes> {
    json_response(json!({"jsonrpc": "2.0", "id": request.json()["id"], "result": result}))
}

/// Marks a response that is not sent.
#[derive(Clone)]
struct Never;

/// In the place of a response: the server hangs.
pub(crate) fn never() -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    response.extensions_mut().insert(Never);
    response
}

pub(crate) fn status(code: u16) -> Response<Bytes> {
    Response::builder().status(code).body(Bytes::new()).unwrap()
}

/// The response that the client received.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }
}

/// A proxy in this process, with a client.
pub(crate) struct Fixture {
    pub(crate) address: SocketAddr,
    pub(crate) client: Client<HttpConnector, Full<Bytes>>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<std::io::Result<()>>,
}

impl Fixture {
    /// A proxy in front of the server, with these middlewares.
    pub(crate) async fn new(server: &Server, middleware: Value) -> Self {
        Self::before(server.address, middleware).await
    }

    /// The same in front of the server at this address, whether there is one or not.
    pub(crate) async fn before(server: SocketAddr, middleware: Value) -> Self {
        Self::with_config(server, json!({"middleware_configs": middleware})).await
    }

    /// A proxy in front of the server, with more in its RunConfig.
    pub(crate) async fn with(server: &Server, more: Value) -> Self {
        Self::with_config(server.address, more).await
    }

    async fn with_config(server: SocketAddr, more: Value) -> Self {
        let mut config = json!({
            "name": "files", "transport": "streamable-http", "host": "127.0.0.1",
            "target_host": "127.0.0.1", "target_port": server.port(),
        });
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Self::of(&RunConfig::parse(&config.to_string()).unwrap()).await
    }

    pub(crate) async fn of(config: &RunConfig) -> Self {
        Self::around(Proxy::new(config).unwrap()).await
    }

    pub(crate) async fn with_extras(config: &RunConfig, extras: Extras) -> Self {
        Self::around(Proxy::new(Configured { config, extras }).unwrap()).await
    }

    pub(crate) async fn around(proxy: Proxy) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(serve(listener, proxy.endpoint(), Workers::default(), async move {
            stopped.await.ok();
        }));
        let client = client();
        Self { address, client, stop, serving }
    }

    /// The same proxy, without the connections that its client keeps.
    pub(crate) fn without_client(self) -> Self {
        Self { client: client(), ..self }
    }

    /// Stops the proxy, and waits until it has ended.
    pub(crate) async fn end(self) {
        drop(self.stop);
        self.serving.await.unwrap().unwrap();
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(format!("http://{}{path}", self.address));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::copy_from_slice(body))).unwrap();
        let (parts, body) = self.client.request(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer { status: parts.status, headers: parts.headers, body }
    }

    pub(crate) async fn post(&self, headers: &[(&str, &str)], body: &str) -> Answer {
        let json = ("content-type", "application/json");
        let headers: Vec<_> = headers.iter().copied().chain([json]).collect();
        self.send(Method::POST, "/mcp", &headers, body.as_bytes()).await
    }
}

/// A client that does not reuse a connection that the proxy is about to close as idle. It keeps one: if a request
/// starts before the connection of the last is idle, there are two for a moment.
fn client() -> Client<HttpConnector, Full<Bytes>> {
    let builder = &mut Client::builder(TokioExecutor::new());
    builder.pool_idle_timeout(limits::HEAD_TIME / 4).pool_max_idle_per_host(1).build_http()
}

/// An MCP request.
pub(crate) fn call(method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string()
}

/// Waits until something is true.
pub(crate) async fn eventually(what: &str, mut is_true: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !is_true().await {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), waiting).await.expect(what);
}

/// A connection to Redis, to read and change its data.
pub(crate) async fn redis_connection(redis: &skep_testkit::Redis) -> redis::aio::MultiplexedConnection {
    let client = redis::Client::open(format!("redis://{}/", redis.address())).unwrap();
    client.get_multiplexed_async_connection().await.unwrap()
}

/// The request that starts a session.
pub(crate) fn initialize() -> String {
    let client = json!({"name": "t", "version": "1"});
    call("initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}))
}

/// The response to it, of a server that gives the session this id.
pub(crate) fn initialize_response(request: &ReceivedRequest, id: &str) -> Response<Bytes> {
    let mut response = result(request, json!({"protocolVersion": "2025-11-25"}));
    response.headers_mut().insert("mcp-session-id", id.parse().unwrap());
    response
}

/// The id of the session that a response starts.
pub(crate) fn session_id(answer: &Answer) -> String {
    answer.headers["mcp-session-id"].to_str().unwrap().to_owned()
}
