//! A fake backend: an MCP server that counts its sessions and requests, and fails on demand.

use std::{
    collections::HashSet,
    convert::Infallible,
    fs::File,
    io::Write,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

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
}

#[derive(Default)]
struct State {
    mood: Mood,
    sessions: HashSet<String>,
    /// All requests, by their methods and sessions.
    received: Vec<(String, String)>,
    /// The tools that were called.
    called: Vec<String>,
    /// The headers of the last call.
    headers: HeaderMap,
    /// The methods of all requests, each with what authenticates it.
    authorizations: Vec<(String, Option<String>)>,
    /// Whether it also has a prompt.
    has_prompts: bool,
    /// Whether it rejects requests that nothing authenticates.
    needs_credentials: bool,
    /// Its tools, on one page. Others have three, each on a page.
    tools: Option<Vec<Value>>,
    /// Where it writes a line for each call that it runs.
    log: Option<File>,
    /// Whether calls never end.
    hangs_in_calls: bool,
    /// The result of all calls, as JSON, if it is always the same.
    result: Option<Arc<str>>,
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

    pub(crate) fn set_tools(&self, tools: Vec<Value>) {
        self.state().tools = Some(tools);
    }

    /// One that writes a line for each call that it runs, and may never end one.
    pub(crate) async fn logging(log: File, hangs_in_calls: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let state = State { log: Some(log), hangs_in_calls, ..State::default() };
        Self::on(listener, Arc::new(Mutex::new(state)))
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    fn on(listener: TcpListener, state: Arc<Mutex<State>>) -> Self {
        let address = listener.local_addr().unwrap();
        let shared = state.clone();
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let shared = shared.clone();
                connections.spawn(async move {
                    let service = service_fn(move |request| respond(request, shared.clone()));
                    http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
                });
            }
        });
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

    /// The tools that were called, in their order.
    pub(crate) fn called(&self) -> Vec<String> {
        self.state().called.clone()
    }

    /// A header of the last call.
    pub(crate) fn last_header(&self, name: &str) -> Option<String> {
        self.state().headers.get(name).map(|value| value.to_str().unwrap().to_owned())
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

async fn respond(
    request: Request<Incoming>,
    state: Arc<Mutex<State>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let session = request.headers().get("mcp-session-id").map(|id| id.to_str().unwrap().to_owned());
    let session = session.unwrap_or_default();
    let (method, headers) = (request.method().clone(), request.headers().clone());
    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let name = message["method"].as_str().unwrap_or(method.as_str()).to_owned();
    let mood = {
        let mut state = state.lock().unwrap();
        state.received.push((name.clone(), session.clone()));
        let authorization = headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
        if state.needs_credentials && authorization.is_none() {
            return Ok(reply(401, String::new()));
        }
        state.authorizations.push((name.clone(), authorization));
        if name == "tools/call" {
            state.headers = headers;
            state.called.push(message["params"]["name"].as_str().unwrap_or_default().to_owned());
        }
        state.mood
    };
    match mood {
        Mood::Hangs => std::future::pending::<()>().await,
        Mood::Slow(time) => tokio::time::sleep(Duration::from_millis(time)).await,
        Mood::Status(status) => return Ok(reply(status, String::new())),
        Mood::Garbage => return Ok(reply(200, "{\"not\": \"a message\"".into())),
        Mood::Good | Mood::EndlessPages => {}
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
            return Ok(reply(405, String::new()));
        }
        if name == "server/discover" {
            return Ok(reply(400, String::new()));
        }
        if name == "initialize" {
            let id = format!("s{}", NUMBER.fetch_add(1, Ordering::Relaxed));
            state.sessions.insert(id.clone());
            let mut result = json!({
                "protocolVersion": "2025-11-25", "serverInfo": {"name": "fake", "version": "1"},
                "capabilities": {"tools": {"listChanged": true}, "logging": {}, "resources": {"subscribe": true}},
            });
            if state.has_prompts {
                result["capabilities"]["prompts"] = json!({});
            }
            let mut response = reply(200, answer(&message, &result));
            response.headers_mut().insert("mcp-session-id", id.parse().unwrap());
            return Ok(response);
        }
        if !state.sessions.contains(&session) {
            return Ok(reply(404, String::new()));
        }
        match &*name {
            "tools/list" if mood == Mood::EndlessPages => {
                json!({"tools": [], "nextCursor": NUMBER.fetch_add(1, Ordering::Relaxed).to_string()})
            }
            "tools/list" if state.tools.is_some() => json!({"tools": state.tools}),
            "tools/list" => {
                let page =
                    message["params"]["cursor"].as_str().map_or(0, |cursor| cursor.parse::<usize>().unwrap());
                let name = ["echo", "whoami", "last"][page];
                let tool = json!({"name": name, "inputSchema": {"type": "object"}});
                let mut result = json!({"tools": [tool]});
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

fn reply(status: u16, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response.headers_mut().insert("content-type", "application/json".parse().unwrap());
    response
}
