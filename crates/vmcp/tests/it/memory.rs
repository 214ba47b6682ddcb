//! Large responses of backends, many at the same time, to clients that do not read them.

use std::sync::Arc;

use futures::{
    FutureExt,
    future::{join_all, select_all},
};
use http::{Method, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::{Value, json};

use crate::{
    Server,
    backend::{Backend, Mood},
    client::{Client, text},
    scripted::{Scripted, Speaks},
};

/// The text of a large result.
const LARGE: usize = 20 << 20;
/// How many of them one caller may have: half of the budget of bodies is for others.
const ROOM: usize = (64 << 20) / LARGE;
const CALLS: usize = ROOM + 2;
/// Much is read here by programs that are not optimized.
const TIMES: &str = "operational: {timeouts: {default: 3m}}\n";

fn large() -> Arc<str> {
    format!(r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#, "x".repeat(LARGE)).into()
}

async fn call(client: &Client, tool: &str) -> Response<Incoming> {
    let params = json!({"name": tool, "arguments": {}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    client.send(Method::POST, Some(&body)).await
}

async fn read(response: Response<Incoming>) -> Value {
    let body = response.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&body).unwrap()
}

/// Whether it is the large result. None of a response that has become a stream, as the machine is busy and it took long.
fn is_large(response: &Response<Incoming>) -> Option<bool> {
    let length = response.headers().get("content-length")?;
    Some(length.to_str().unwrap().parse::<usize>().unwrap() > LARGE)
}

/// Those that may be large, and the others. Of large ones there are no more than there is room for.
fn sorted(responses: Vec<Response<Incoming>>) -> (Vec<Response<Incoming>>, Vec<Response<Incoming>>) {
    let (held, errors): (Vec<_>, Vec<_>) =
        responses.into_iter().partition(|response| is_large(response) != Some(false));
    let large = held.iter().filter(|response| is_large(response) == Some(true)).count();
    assert!(!held.is_empty() && large <= ROOM, "{large} of {}", held.len());
    (held, errors)
}

/// Calls a tool many times without reading the responses, and returns how many of them are large. The others are errors that
/// have the reason.
async fn flood(server: &Server, tool: &str, reason: &str) -> Vec<Response<Incoming>> {
    let clients = join_all((0..CALLS).map(|_| server.client())).await;
    let responses = join_all(clients.iter().map(|client| call(client, tool))).await;
    let (large, errors) = sorted(responses);
    for error in errors {
        let error = read(error).await;
        assert!(text(&error).1 && text(&error).0.contains(reason), "{error}");
    }
    large
}

#[tokio::test(flavor = "multi_thread")]
async fn large_responses_that_are_not_read_take_no_more_than_the_budget_of_bodies() {
    let (backend, large) = (Backend::start().await, large());
    let combo = "compositeTools: [{name: combo, description: d, steps: [{id: s, tool: a_echo}]}]\n";
    let server = Server::before(&[("a", &backend)], &format!("{TIMES}{combo}")).await;
    let client = server.client().await;
    assert!(!text(&client.call("a_echo").await).1);
    backend.set_result(Some(large.clone()));
    for (tool, reason) in
        [("a_echo", "backend a: there is no memory for its response now"), ("combo", "memory")]
    {
        let held = flood(&server, tool, reason).await;
        // Other callers are not affected, nor are small responses.
        let other = Client::without_session(server.address).from([127, 0, 0, 2]).started(json!({})).await;
        assert_ne!(is_large(&call(&other, "a_echo").await), Some(false), "beside {tool}");
        backend.set_result(None);
        assert!(!text(&client.call("a_echo").await).1);
        // Nor are large ones, once the others have been read.
        backend.set_result(Some(large.clone()));
        for response in held {
            let is_large = is_large(&response);
            let body = response.into_body().collect().await.unwrap().to_bytes();
            assert!(body.len() > LARGE || is_large.is_none());
        }
        while is_large(&call(&client, tool).await) == Some(false) {}
    }
}

/// A workflow and scripts.
const OWN_TOOLS: &str = "codeMode: {enabled: true}\n\
                         compositeTools: [{name: flow, description: d, steps: [{id: s, tool: a_echo}]}]\n";
const NO_MEMORY: &str = "takes more memory than there is now: have fewer values in it, or try again later";

/// Four bytes of text are an array with room for four values.
fn dense(arrays: usize) -> String {
    format!("[{}[0]]", "[0],".repeat(arrays))
}

fn assert_no_memory(response: &Value, what: &str) {
    let (reason, is_error) = text(response);
    assert!(is_error && reason.contains(&format!("{what} {NO_MEMORY}")), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn json_counts_by_what_it_takes_once_it_is_parsed() {
    let backend = Backend::start().await;
    let server = Server::before(&[("a", &backend)], &format!("{TIMES}{OWN_TOOLS}")).await;
    let client = server.client().await;
    let result = format!(r#"{{"content":[],"structuredContent":{{"all":{}}}}}"#, dense(2 << 20));
    backend.set_result(Some(result.into()));
    let script = json!({"name": "execute_tool_script", "arguments": {"script": "return a_echo()"}});
    let flow = json!({"name": "flow", "arguments": {}});
    for params in [&flow, &script] {
        assert_no_memory(&client.request("tools/call", params.clone()).await, "its result");
    }
    backend.set_result(None);
    for params in [flow, script] {
        assert!(!text(&client.request("tools/call", params).await).1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_of_own_tools_count_by_what_they_take_once_they_are_parsed() {
    let backend = Backend::start().await;
    let server = Server::before(&[("a", &backend)], &format!("{TIMES}{OWN_TOOLS}")).await;
    let client = server.client().await;
    let all: Value = serde_json::from_str(&dense(1 << 18)).unwrap();
    let call = async |name: &str, arguments: Value| {
        client.request("tools/call", json!({"name": name, "arguments": arguments})).await
    };
    assert_no_memory(&call("flow", json!({"all": all})).await, "what is in params.arguments");
    let script = json!({"script": "return 1", "data": {"all": all}});
    assert_no_memory(&call("execute_tool_script", script).await, "data");
    // Passed on, they are no more than their text.
    assert!(!text(&call("a_echo", json!({"all": all})).await).1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_schema_counts_once_by_what_its_tree_takes() {
    let tool = |schema: Value| json!({"name": "echo", "inputSchema": {"type": "object", "default": schema}});
    let backend = Backend::with_tools(vec![tool(json!(vec![[0]; 1 << 18]))]).await;
    let looped = "compositeTools: [{name: flow, description: d, steps: [{id: s, type: forEach, \
                  collection: '[1,2,3,4,5,6,7,8]', step: {id: i, tool: a_echo}}]}]\n";
    let server = Server::before(&[("a", &backend)], &format!("{TIMES}{looped}")).await;
    let client = server.client().await;
    let flow = json!({"name": "flow", "arguments": {}});
    assert_no_memory(&client.request("tools/call", flow.clone()).await, "its input schema");
    assert_eq!(backend.called(), [""; 0]);
    // For each item, a quarter of the memory of a caller would be too much.
    let backend = Backend::with_tools(vec![tool(json!(vec![[0]; 1 << 15]))]).await;
    let server = Server::before(&[("a", &backend)], &format!("{TIMES}{looped}")).await;
    let response = server.client().await.request("tools/call", flow).await;
    assert!(!text(&response).1, "{response}");
    assert_eq!(backend.called().len(), 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn items_of_loops_count_by_what_they_take_while_the_loops_run() {
    let backend = Backend::start().await;
    let looped = "compositeTools: [{name: flow, description: d, \
                  parameters: {type: object, properties: {items: {type: string}}}, \
                  steps: [{id: s, type: forEach, collection: '{{.params.items}}', maxIterations: 1000, \
                  step: {id: i, tool: a_echo}}]}]\n";
    let server = Server::before(&[("a", &backend)], &format!("{TIMES}{looped}")).await;
    assert!(!text(&server.client().await.call("a_echo").await).1);
    backend.set(Mood::Hangs);
    // Each takes some 12 MiB, twice.
    let items = format!("[{}]", dense(1 << 15));
    let params = json!({"name": "flow", "arguments": {"items": items}});
    let clients = join_all((0..5).map(|_| server.client())).await;
    let calls = clients.iter().map(|client| client.request("tools/call", params.clone()).boxed_local());
    let (first, _, _) = select_all(calls).await;
    assert_no_memory(&first, "collection: it");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_count_while_they_are_read_and_while_their_client_does_not_read_them() {
    let backend = Scripted::start(Speaks::Legacy).await;
    let server = Server::with_urls(&[("a", backend.url())], TIMES, None).await;
    let clients = join_all((0..CALLS).map(|_| server.client())).await;
    let large = large();
    let script = async {
        for _ in 0..CALLS {
            backend.next("tools/call").await.result_text(&large);
        }
    };
    let calls = join_all(clients.iter().map(|client| call(client, "a_ask")));
    let (responses, ()) = tokio::join!(calls, script);
    let (held, errors) = sorted(responses);
    for error in errors {
        let error = read(error).await;
        assert!(text(&error).1 && text(&error).0.contains("there is no memory"), "{error}");
    }
    // The server notices soon that they are not read any more.
    drop(held);
    let client = server.client().await;
    loop {
        let script = async { backend.next("tools/call").await.result_text(&large) };
        let (response, ()) = tokio::join!(call(&client, "a_ask"), script);
        if is_large(&response) != Some(false) {
            break;
        }
    }
}
