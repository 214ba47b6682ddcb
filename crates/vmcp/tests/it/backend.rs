//! A fake backend: an MCP server that counts its sessions and requests, and fails on demand.

use std::{
    collections::{HashMap, HashSet},
    convert::Infallible,
    fs::File,
    io::{self, Write},
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures::{FutureExt, StreamExt, future, stream};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    body::{Frame, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{mpsc, watch},
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;

type Reply = Response<UnsyncBoxBody<Bytes, io::Error>>;

/// How a backend responds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mood {
    #[default]
    Good,
    /// It never responds.
    Hangs,
    /// It responds after so many milliseconds.
    Slow(u64),
    Status(u16),
    Garbage,
    /// Its lists have no end.
    EndlessPages,
    /// Its calls send log messages, and never a response.
    EndlessLogs,
    /// It sends the head of a response, ten bytes of a hundred, and then nothing.
    Stalls,
    /// The same, and then it closes the connection.
    Truncates,
    /// It closes the connection in the middle of an event.
    Breaks,
    /// Its responses are longer than they say.
    Overflows,
    /// It redirects to another server.
    Redirects,
    /// Its response has no end.
    Floods,
    /// It responds to another request than it got.
    Confuses,
}

/// A stream of messages that belong to no request.
struct Stream {
    session: String,
    /// What it is for. Before 2026-07-28, a stream has everything.
    wanted: Option<Value>,
    messages: mpsc::UnboundedSender<String>,
}

impl Stream {
    fn is_for(&self, message: &Value) -> bool {
        let Some(wanted) = &self.wanted else { return true };
        match message["method"].as_str().unwrap_or_default() {
            "notifications/tools/list_changed" => wanted["toolsListChanged"] == true,
            // On purpose also of resources that the client has not named: it must not hear of them.
            "notifications/resources/updated" => wanted["resourceSubscriptions"].is_array(),
            _ => false,
        }
    }
}

#[derive(Default)]
struct State {
    mood: Mood,
    sessions: HashSet<String>,
    /// All requests, by their methods and sessions.
    received: Vec<(String, String)>,
    /// The tools that were called.
    called: Vec<String>,
    /// The headers and the parameters of the last call.
    headers: HeaderMap,
    params: Value,
    /// The methods of all requests, each with what authenticates it.
    authorizations: Vec<(String, Option<String>)>,
    /// Whether it also has a prompt.
    has_prompts: bool,
    /// Whether it rejects requests that nothing authenticates.
    needs_credentials: bool,
    /// What it rejects in Authorization.
    rejected: HashSet<String>,
    /// Its tools, on one page. Others have three, each on a page.
    tools: Option<Vec<Value>>,
    /// Whether each of these is on a page of its own.
    has_a_page_for_each: bool,
    /// Where it writes a line for each call that it runs.
    log: Option<File>,
    /// Whether calls never end.
    hangs_in_calls: bool,
    /// Whether `initialize` has no response for now.
    holds_sessions: watch::Sender<bool>,
    /// The result of all calls, as JSON, if it is always the same.
    result: Option<Arc<str>>,
    /// The tools of callers with this value of X-Tenant.
    tools_of: HashMap<String, Vec<Value>>,
    /// Whether it speaks 2026-07-28, and nothing else.
    is_modern: bool,
    /// Whether it says that it speaks older revisions, too.
    promises_sessions: bool,
    /// Whether it has streams of messages that belong to no request, and those that are open.
    has_streams: bool,
    streams: Vec<Stream>,
}

impl State {
    /// Records a call, and returns whether it never ends.
    fn runs_forever(&mut self) -> bool {
        if let Some(log) = &mut self.log {
            log.write_all(b"call\n").unwrap();
        }
        self.hangs_in_calls
    }
}

pub(crate) struct Backend {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

impl Backend {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::on(listener, Arc::default())
    }

    /// One with these tools.
    pub(crate) async fn with_tools(tools: Vec<Value>) -> Self {
        let backend = Self::start().await;
        backend.set_tools(tools);
        backend
    }

    /// Has a page for each of its tools from now on.
    pub(crate) fn separate_tools(&self) {
        self.state().has_a_page_for_each = true;
    }

    pub(crate) fn set_tools(&self, tools: Vec<Value>) {
        self.state().tools = Some(tools);
    }

    /// Has these tools for callers with this value of X-Tenant from now on.
    pub(crate) fn set_tools_of(&self, tenant: &str, names: &[&str]) {
        self.state().tools_of.insert(tenant.to_owned(), names.iter().map(|name| tool(name)).collect());
    }

    /// One that speaks 2026-07-28.
    pub(crate) async fn modern() -> Self {
        let backend = Self::start().await;
        backend.state().is_modern = true;
        backend
    }

    /// The same, which says that it has sessions, and refuses them.
    pub(crate) async fn refusing_sessions() -> Self {
        let backend = Self::modern().await;
        backend.state().promises_sessions = true;
        backend
    }

    /// Has streams of messages that belong to no request from now on.
    pub(crate) fn allow_streams(&self) {
        self.state().has_streams = true;
    }

    /// The sessions of the streams that are open.
    pub(crate) fn streams(&self) -> Vec<String> {
        let mut state = self.state();
        state.streams.retain(|stream| !stream.messages.is_closed());
        state.streams.iter().map(|stream| stream.session.clone()).collect()
    }

    /// Sends a message on the streams of these sessions that are for it.
    pub(crate) fn send(&self, message: &Value, sessions: &[String]) {
        let state = self.state();
        let of = state.streams.iter().filter(|stream| sessions.contains(&stream.session));
        of.filter(|stream| stream.is_for(message)).for_each(|stream| {
            stream.messages.send(message.to_string()).ok();
        });
    }

    /// Ends all streams.
    pub(crate) fn break_streams(&self) {
        self.state().streams.clear();
    }

    /// Ends as a process does, with its connections and sessions.
    pub(crate) async fn kill(&mut self) {
        self.task.abort();
        (&mut self.task).await.unwrap_err();
        let mut state = self.state();
        state.sessions.clear();
        state.streams.clear();
    }

    /// Starts again at the same address.
    pub(crate) async fn start_again(&mut self) {
        // A connection of another test may have the port for a moment.
        let listener = loop {
            match TcpListener::bind(self.address).await {
                Ok(listener) => break listener,
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        };
        self.task = serving(listener, self.state.clone(), None);
    }

    /// One that writes a line for each call that it runs, and may never end one.
    pub(crate) async fn logging(log: File, hangs_in_calls: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let state = State { log: Some(log), hangs_in_calls, ..State::default() };
        Self::on(listener, Arc::new(Mutex::new(state)))
    }

    /// One that is reached by TLS, and its certificate, which signs itself.
    pub(crate) async fn with_tls() -> (Self, String) {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let config = builder.with_single_cert(vec![made.cert.der().clone()], key).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::default();
        let task = serving(listener, Arc::clone(&state), Some(TlsAcceptor::from(Arc::new(config))));
        (Self { address, state, task }, made.cert.pem())
    }

    pub(crate) fn https_url(&self) -> String {
        format!("https://{}/mcp", self.address)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    fn on(listener: TcpListener, state: Arc<Mutex<State>>) -> Self {
        let address = listener.local_addr().unwrap();
        let task = serving(listener, state.clone(), None);
        Self { address, state, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub(crate) fn set(&self, mood: Mood) {
        self.state().mood = mood;
    }

    /// Loses all sessions.
    pub(crate) fn lose_sessions(&self) {
        self.state().sessions.clear();
    }

    /// Opens no session until this is false again.
    pub(crate) fn hold_sessions(&self, holds: bool) {
        self.state().holds_sessions.send_replace(holds);
    }

    /// The sessions that are open.
    pub(crate) fn sessions(&self) -> usize {
        self.state().sessions.len()
    }

    /// The requests of a method, each by its session.
    pub(crate) fn received(&self, method: &str) -> Vec<String> {
        let state = self.state();
        let of = state.received.iter().filter(|(name, _)| name == method);
        of.map(|(_, session)| session.clone()).collect()
    }

    /// How many requests it has received.
    pub(crate) fn requests(&self) -> usize {
        self.state().received.len()
    }

    /// The tools that were called, in their order.
    pub(crate) fn called(&self) -> Vec<String> {
        self.state().called.clone()
    }

    /// A header of the last call.
    pub(crate) fn last_header(&self, name: &str) -> Option<String> {
        self.state().headers.get(name).map(|value| value.to_str().unwrap().to_owned())
    }

    /// The parameters of the last call.
    pub(crate) fn last_params(&self) -> Value {
        self.state().params.clone()
    }

    /// What authenticated the requests of a method, in their order.
    pub(crate) fn authorizations(&self, method: &str) -> Vec<Option<String>> {
        let state = self.state();
        let of = state.authorizations.iter().filter(|(name, _)| name == method);
        of.map(|(_, authorization)| authorization.clone()).collect()
    }

    /// Has a prompt from now on.
    pub(crate) fn add_prompt(&self) {
        self.state().has_prompts = true;
    }

    /// Rejects requests that nothing authenticates from now on.
    pub(crate) fn need_credentials(&self) {
        self.state().needs_credentials = true;
    }

    /// Rejects requests with this in Authorization from now on.
    pub(crate) fn reject(&self, authorization: &str) {
        self.state().rejected.insert(authorization.to_owned());
    }

    /// Has this result for all calls from now on, as JSON.
    pub(crate) fn set_result(&self, result: Option<Arc<str>>) {
        self.state().result = result;
    }

    pub(crate) fn forget(&self) {
        let mut state = self.state();
        state.received.clear();
        state.called.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn serving(listener: TcpListener, state: Arc<Mutex<State>>, tls: Option<TlsAcceptor>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).ok();
            let (of, state, tls) = (state.clone(), state.clone(), tls.clone());
            connections.spawn(async move {
                let service = service_fn(move |request| respond(request, state.clone()));
                let http = http1::Builder::new();
                match tls {
                    None => http.serve_connection(TokioIo::new(Wire { stream, of }), service).await.ok(),
                    Some(tls) => match tls.accept(stream).await {
                        Ok(stream) => http.serve_connection(TokioIo::new(stream), service).await.ok(),
                        Err(_) => None,
                    },
                }
            });
        }
    })
}

/// The length that a response has and does not say, and what it says.
const LENGTHS: [&str; 2] = ["content-length: 100", "content-length: 010"];

/// A connection, on which a backend may say something else than it does.
struct Wire {
    stream: TcpStream,
    of: Arc<Mutex<State>>,
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let overflows = self.of.lock().unwrap().mood == Mood::Overflows;
        let written = String::from_utf8_lossy(bytes).replace(LENGTHS[0], LENGTHS[1]);
        let bytes = if overflows { written.as_bytes() } else { bytes };
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// A tool of this name.
pub(crate) fn tool(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}})
}

async fn respond(request: Request<Incoming>, state: Arc<Mutex<State>>) -> Result<Reply, Infallible> {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let session = request.headers().get("mcp-session-id").map(|id| id.to_str().unwrap().to_owned());
    let session = session.unwrap_or_default();
    let (method, headers) = (request.method().clone(), request.headers().clone());
    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let name = message["method"].as_str().unwrap_or(method.as_str()).to_owned();
    let tenant = headers.get("x-tenant").map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default();
    let mood = {
        let mut state = state.lock().unwrap();
        state.received.push((name.clone(), session.clone()));
        let authorization = headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
        let is_rejected = match &authorization {
            Some(authorization) => state.rejected.contains(authorization),
            None => state.needs_credentials,
        };
        if is_rejected {
            return Ok(reply(401, String::new()));
        }
        state.authorizations.push((name.clone(), authorization));
        if name == "tools/call" {
            state.headers = headers;
            state.params = message["params"].clone();
            state.called.push(message["params"]["name"].as_str().unwrap_or_default().to_owned());
        }
        state.mood
    };
    match mood {
        Mood::Hangs => std::future::pending::<()>().await,
        Mood::Slow(time) => tokio::time::sleep(Duration::from_millis(time)).await,
        Mood::Status(status) => return Ok(reply(status, String::new())),
        Mood::Garbage => return Ok(reply(200, "{\"not\": \"a message\"".into())),
        Mood::EndlessLogs if name == "tools/call" => return Ok(endless_logs()),
        Mood::Stalls => return Ok(partial(Some(100), "{\"jsonrpc\"", future::pending().boxed())),
        Mood::Truncates => return Ok(partial(Some(100), "{\"jsonrpc\"", future::ready(()).boxed())),
        Mood::Breaks => return Ok(partial(None, "data: {\"json", future::ready(()).boxed())),
        Mood::Overflows => return Ok(reply(200, format!("{{\"jsonrpc\":\"2.0\",{:82}}}", ""))),
        Mood::Redirects => {
            let mut response = reply(307, String::new());
            response.headers_mut().insert("location", "http://elsewhere.example/mcp".parse().unwrap());
            return Ok(response);
        }
        Mood::Floods => return Ok(flood()),
        Mood::Confuses => {
            let another = json!({"jsonrpc": "2.0", "id": 1 << 40, "result": {"content": []}});
            return Ok(reply(200, another.to_string()));
        }
        Mood::Good | Mood::EndlessPages | Mood::EndlessLogs => {}
    }
    if name == "initialize" {
        let mut holds = state.lock().unwrap().holds_sessions.subscribe();
        holds.wait_for(|holds| !holds).await.unwrap();
    }
    let is_call = name == "tools/call" && state.lock().unwrap().sessions.contains(&session);
    if is_call && state.lock().unwrap().runs_forever() {
        std::future::pending::<()>().await;
    }
    let result = {
        let mut state = state.lock().unwrap();
        if method == Method::DELETE {
            state.sessions.remove(&session);
            return Ok(reply(200, String::new()));
        }
        if method == Method::GET {
            return Ok(match state.has_streams {
                false => reply(405, String::new()),
                true if !state.sessions.contains(&session) => reply(404, String::new()),
                true => opened(&mut state, session, None),
            });
        }
        if name == "subscriptions/listen" {
            return Ok(opened(&mut state, session, Some(message["params"]["notifications"].clone())));
        }
        let capabilities =
            json!({"tools": {"listChanged": true}, "logging": {}, "resources": {"subscribe": true}});
        if name == "server/discover" && state.is_modern {
            let older = state.promises_sessions.then_some("2025-11-25");
            let versions: Vec<&str> = ["2026-07-28"].into_iter().chain(older).collect();
            let result = json!({"supportedVersions": versions, "capabilities": capabilities});
            return Ok(reply(200, answer(&message, &result)));
        }
        if name == "server/discover" {
            return Ok(reply(400, String::new()));
        }
        if name == "initialize" && state.promises_sessions {
            let error = json!({"code": -32022, "message": "unsupported version"});
            let response = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
            return Ok(reply(400, response.to_string()));
        }
        if name == "initialize" {
            let id = format!("s{}", NUMBER.fetch_add(1, Ordering::Relaxed));
            state.sessions.insert(id.clone());
            let mut result = json!({
                "protocolVersion": "2025-11-25", "serverInfo": {"name": "fake", "version": "1"},
                "capabilities": capabilities,
            });
            if state.has_prompts {
                result["capabilities"]["prompts"] = json!({});
            }
            let mut response = reply(200, answer(&message, &result));
            response.headers_mut().insert("mcp-session-id", id.parse().unwrap());
            return Ok(response);
        }
        if !state.sessions.contains(&session) && !state.is_modern {
            return Ok(reply(404, String::new()));
        }
        match &*name {
            "tools/list" if mood == Mood::EndlessPages => {
                let number = NUMBER.fetch_add(1, Ordering::Relaxed).to_string();
                json!({"tools": [tool(&number)], "nextCursor": number})
            }
            "tools/list" if state.tools_of.contains_key(&tenant) => json!({"tools": state.tools_of[&tenant]}),
            "tools/list" if state.has_a_page_for_each && state.tools.is_some() => {
                let tools = state.tools.as_deref().unwrap_or_default();
                let page = message["params"]["cursor"].as_str().map_or(0, |cursor| cursor.parse().unwrap());
                let mut result = json!({"tools": tools.get(page).into_iter().collect::<Vec<_>>()});
                if page + 1 < tools.len() {
                    result["nextCursor"] = (page + 1).to_string().into();
                }
                result
            }
            "tools/list" if state.tools.is_some() => json!({"tools": state.tools}),
            "tools/list" => {
                let page =
                    message["params"]["cursor"].as_str().map_or(0, |cursor| cursor.parse::<usize>().unwrap());
                let mut result = json!({"tools": [tool(["echo", "whoami", "last"][page])]});
                if page < 2 {
                    result["nextCursor"] = (page + 1).to_string().into();
                }
                result
            }
            "tools/call" if state.result.is_some() => {
                let result = state.result.clone().unwrap_or_default();
                return Ok(reply(
                    200,
                    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, message["id"]),
                ));
            }
            "tools/call" => {
                json!({"content": [{"type": "text", "text": format!("{} {session}", message["params"]["name"])}]})
            }
            "resources/list" => json!({"resources": [{"uri": "kit://1", "name": "r"}]}),
            "resources/read" => json!({"contents": [{"uri": "kit://1", "text": "read"}]}),
            "prompts/list" => json!({"prompts": [{"name": "greet"}]}),
            "prompts/get" => json!({"messages": []}),
            "resources/templates/list" => json!({"resourceTemplates": []}),
            _ => json!({}),
        }
    };
    if message.get("id").is_none() {
        return Ok(reply(202, String::new()));
    }
    Ok(reply(200, answer(&message, &result)))
}

fn answer(message: &Value, result: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string()
}

/// A stream of messages that belong to no request.
fn opened(state: &mut State, session: String, wanted: Option<Value>) -> Reply {
    let (messages, receiver) = mpsc::unbounded_channel();
    state.streams.push(Stream { session, wanted, messages });
    let next = |mut receiver: mpsc::UnboundedReceiver<String>| async move {
        let message = receiver.recv().await?;
        Some((message, receiver))
    };
    events(stream::unfold(receiver, next))
}

fn endless_logs() -> Reply {
    let log = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}});
    events(stream::unfold(log.to_string(), |log| async move {
        tokio::time::sleep(Duration::from_millis(5)).await;
        Some((log.clone(), log))
    }))
}

fn events(messages: impl futures::Stream<Item = String> + Send + 'static) -> Reply {
    let frame = |message| Ok(Frame::data(Bytes::from(format!("event: message\ndata: {message}\n\n"))));
    let mut response = Response::new(StreamBody::new(messages.map(frame)).boxed_unsync());
    response.headers_mut().insert("content-type", "text/event-stream".parse().unwrap());
    response
}

/// The start of a body of this length, or else of a stream of events, which breaks off after that.
fn partial(length: Option<usize>, start: &'static str, until: future::BoxFuture<'static, ()>) -> Reply {
    let start = stream::once(async move { Ok(Frame::data(Bytes::from(start))) });
    let broken = stream::once(async move {
        until.await;
        Err(io::Error::other("it breaks off"))
    });
    let mut response = Response::new(StreamBody::new(start.chain(broken)).boxed_unsync());
    let (name, value) = match length {
        Some(length) => ("content-length", length.to_string()),
        None => ("content-type", "text/event-stream".into()),
    };
    response.headers_mut().insert(name, value.parse().unwrap());
    response
}

fn flood() -> Reply {
    let spaces = stream::repeat_with(|| Ok(Frame::data(Bytes::from_static(&[b' '; 64 << 10]))));
    Response::new(StreamBody::new(spaces).boxed_unsync())
}

fn reply(status: u16, body: String) -> Reply {
    let body = Full::new(Bytes::from(body)).map_err(|never| match never {});
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response.headers_mut().insert("content-type", "application/json".parse().unwrap());
    response
}
