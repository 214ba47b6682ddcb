//! A search with an embedding service, or with a model.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

use crate::{Server, backend::Backend, client::Client};

/// A fake embedding service. It knows that a letter is mail, and nothing else.
struct Service {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct State {
    /// All texts that it was sent, in the order of requests.
    texts: Vec<String>,
    headers: HeaderMap,
    path: String,
    body: Value,
    status: u16,
    /// It never responds.
    hangs: bool,
    /// It responds to searches only.
    embeds_no_tools: bool,
    /// What it has in its description, if it has one.
    info: Option<Value>,
    /// The most texts that a request had.
    largest: usize,
}

impl Service {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State { status: 200, ..State::default() }));
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

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn has_received(&self, text: &str) -> usize {
        self.state().texts.iter().filter(|received| received.contains(text)).count()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn vector(text: &str) -> Value {
    let is_post = ["mail", "letter"].iter().any(|word| text.contains(word));
    if is_post { json!([2.0, 0.0]) } else { json!([0.0, 3.0]) }
}

async fn respond(
    request: Request<Incoming>,
    state: Arc<Mutex<State>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let texts = body.get("inputs").or_else(|| body.get("input")).and_then(Value::as_array).cloned();
    let texts: Vec<String> =
        texts.unwrap_or_default().iter().map(|text| text.as_str().unwrap().to_owned()).collect();
    if state.lock().unwrap().hangs {
        std::future::pending::<()>().await;
    }
    let mut state = state.lock().unwrap();
    if head.uri.path().ends_with("/info") {
        let mut response =
            Response::new(Full::new(Bytes::from(state.info.clone().unwrap_or_default().to_string())));
        if state.info.is_none() {
            *response.status_mut() = http::StatusCode::NOT_FOUND;
        }
        return Ok(response);
    }
    state.largest = state.largest.max(texts.len());
    let answer = if head.uri.path().ends_with("/embed") {
        texts.iter().map(|text| vector(text)).collect::<Value>()
    } else {
        // The order is that of the field index.
        let all = texts.iter().enumerate().rev();
        json!({"data": all.map(|(index, text)| json!({"index": index, "embedding": vector(text)})).collect::<Value>()})
    };
    state.texts.extend(texts);
    (state.path, state.headers, state.body) = (head.uri.path().to_owned(), head.headers, body);
    let mut response = Response::new(Full::new(Bytes::from(answer.to_string())));
    *response.status_mut() = http::StatusCode::from_u16(state.status).unwrap();
    if state.embeds_no_tools && state.texts.last().is_some_and(|text| text.starts_with("name: ")) {
        *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
    }
    Ok(response)
}

fn tool(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}})
}

async fn found(client: &Client, description: &str) -> Vec<String> {
    let params = json!({"name": "find_tool", "arguments": {"tool_description": description}});
    let response = client.request("tools/call", params).await;
    let tools = response["result"]["structuredContent"]["tools"].as_array();
    let tools = tools.unwrap_or_else(|| panic!("{response}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// Searches until this is found: vectors are made in the background.
async fn find_until(client: &Client, description: &str, expected: &[&str]) {
    while found(client, description).await != expected {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn optimizer(service: &Service, more: &str) -> String {
    format!(
        "optimizer: {{embeddingService: \"http://{}\", semanticDistanceThreshold: \"0.5\"{more}}}\n",
        service.address
    )
}

#[tokio::test]
async fn a_service_finds_what_no_word_does_and_embeds_each_tool_once() {
    let service = Service::start().await;
    let backend = Backend::with_tools(vec![tool("mail"), tool("coffee")]).await;
    let server = Server::before(&[("a", &backend)], &optimizer(&service, "")).await;
    let client = server.client().await;
    find_until(&client, "letter", &["a_mail"]).await;
    assert_eq!(service.state().path, "/embed");
    assert_eq!(service.state().body, json!({"inputs": ["letter"], "truncate": true}));
    assert_eq!((service.has_received("name: a_mail"), service.has_received("name: a_coffee")), (1, 1));

    backend.set_tools(vec![tool("mail"), tool("tea"), tool("letterbox")]);
    let newer = loop {
        let client = server.client().await;
        if found(&client, "tea").await.contains(&"a_tea".to_owned()) {
            break client;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    find_until(&newer, "letter", &["a_letterbox", "a_mail"]).await;
    assert_eq!(service.has_received("name: a_mail"), 1, "it has not changed");
    assert_eq!(service.has_received("name: a_tea"), 1);
}

#[tokio::test]
async fn a_service_with_the_api_of_openai_gets_its_model_and_headers() {
    let service = Service::start().await;
    let backend = Backend::with_tools(vec![tool("mail"), tool("coffee")]).await;
    let more = ", embeddingProvider: openai, embeddingModel: small, embeddingHeaders: {X-Project: outdoors}";
    let server = Server::before(&[("a", &backend)], &optimizer(&service, more)).await;
    let client = server.client().await;
    find_until(&client, "letter", &["a_mail"]).await;
    let state = service.state();
    assert_eq!(state.path, "/embeddings");
    assert_eq!(state.body, json!({"model": "small", "input": ["letter"], "encoding_format": "float"}));
    assert_eq!(state.headers["x-project"], "outdoors");
}

const TELEMETRY: &str =
    "telemetry: {serviceName: test, enablePrometheusMetricsPath: true, metricsEnabled: true}\n";

#[tokio::test]
async fn without_its_service_a_search_uses_words_and_counts_that() {
    let service = Service::start().await;
    service.state().status = 500;
    let backend = Backend::with_tools(vec![tool("mail"), tool("coffee")]).await;
    let server = Server::before(&[("a", &backend)], &(optimizer(&service, "") + TELEMETRY)).await;
    assert_words_are_compared(&server).await;
}

/// Two searches by words alone, which are counted.
async fn assert_words_are_compared(server: &Server) {
    let client = server.client().await;
    assert_eq!(found(&client, "mail").await, ["a_mail"]);
    assert_eq!(found(&client, "letter").await, [""; 0]);
    let page = client.page("/metrics").await;
    let line = page.lines().find(|line| line.starts_with("skep_vmcp_optimizer_embedding_errors_total"));
    assert!(line.unwrap_or_else(|| panic!("{page}")).ends_with(" 2"), "{page}");
}

#[tokio::test]
async fn while_tools_are_not_embedded_a_search_uses_words_and_counts_that() {
    let service = Service::start().await;
    service.state().embeds_no_tools = true;
    let backend = Backend::with_tools(vec![tool("mail"), tool("coffee")]).await;
    let server = Server::before(&[("a", &backend)], &(optimizer(&service, "") + TELEMETRY)).await;
    assert_words_are_compared(&server).await;
}

#[tokio::test]
async fn a_search_does_not_wait_for_a_service_that_hangs() {
    let service = Service::start().await;
    service.state().hangs = true;
    let backend = Backend::with_tools(vec![tool("mail"), tool("coffee")]).await;
    let server = Server::before(&[("a", &backend)], &optimizer(&service, "")).await;
    let client = server.client().await;
    let started = Instant::now();
    // Only the first of them waits.
    for _ in 0..20 {
        assert_eq!(found(&client, "mail").await, ["a_mail"]);
    }
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_static_model_finds_what_no_word_does_without_any_service() {
    let folder = std::env::temp_dir().join(format!("skep-model-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let vocabulary = json!({"mail": 0, "letter": 1, "coffee": 2});
    let tokenizer = json!({"model": {"type": "WordPiece", "vocab": vocabulary}});
    std::fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    let values: Vec<u8> =
        [1.0_f32, 0.0, 0.9, 0.1, 0.0, 1.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    let header = json!({"embeddings": {"dtype": "F32", "shape": [3, 2], "data_offsets": [0, values.len()]}});
    let header = header.to_string();
    let weights = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &values].concat();
    std::fs::write(folder.join("model.safetensors"), weights).unwrap();
    let backend = Backend::with_tools(vec![tool("mail"), tool("coffee")]).await;
    let optimizer = format!(
        "optimizer: {{embeddingModelPath: \"{}\", semanticDistanceThreshold: \"0.5\"}}\n",
        folder.display()
    );
    let server = Server::before(&[("a", &backend)], &optimizer).await;
    assert_eq!(found(&server.client().await, "letter").await, ["a_mail"]);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn a_tei_service_gets_as_many_texts_at_once_as_it_describes_and_all_again_when_its_model_changes() {
    let service = Service::start().await;
    service.state().info = Some(json!({"model_id": "one", "max_client_batch_size": 2}));
    let names = ["send_mail", "a", "b", "c", "d"];
    let backend = Backend::with_tools(names.map(tool).to_vec()).await;
    let server = Server::before(&[("x", &backend)], &optimizer(&service, "")).await;
    let client = server.client().await;
    find_until(&client, "letter", &["x_send_mail"]).await;
    let largest = service.state().largest;
    assert_eq!((largest, service.has_received("send_mail")), (2, 1));
    service.state().info = Some(json!({"model_id": "two", "max_client_batch_size": 2}));
    let mut tools = names.map(tool).to_vec();
    tools.push(tool("e"));
    backend.set_tools(tools);
    while service.has_received("send_mail") < 2 {
        // A new session sees the new tool once the lists have been read again.
        found(&server.client().await, "letter").await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(service.state().largest, 2);
}
