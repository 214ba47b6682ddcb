//! What the proxy learns of its server by itself.

use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};
use skep_config::RunConfig;
use skep_gateway::http::Service;
use skep_proxy::{InspectError, Proxy};

use crate::{
    fixture::{ReceivedRequest, Server, json_response, result, status},
    stdio::everything,
};

/// A proxy in front of a server that speaks streamable HTTP.
fn proxy(server: &Server, more: Value) -> Proxy {
    let mut config = json!({
        "name": "files", "transport": "streamable-http",
        "target_host": "127.0.0.1", "target_port": server.address.port(),
    });
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Proxy::new(&RunConfig::parse(&config.to_string()).unwrap()).unwrap()
}

fn initialized(request: &ReceivedRequest) -> Response<Bytes> {
    let mut response = result(
        request,
        json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}, "resources": {}},
            "serverInfo": {"name": "files", "version": "1.2"},
        }),
    );
    response.headers_mut().insert("mcp-session-id", "s-1".parse().unwrap());
    response
}

/// A server with this many tools, fifty to a page.
pub(crate) fn listing(tools: usize) -> impl Fn(&ReceivedRequest) -> Response<Bytes> {
    move |request| match request.json()["method"].as_str() {
        Some("initialize") => initialized(request),
        Some("tools/list") => {
            let start: usize =
                request.json()["params"]["cursor"].as_str().map_or(0, |cursor| cursor.parse().unwrap());
            let end = tools.min(start + 50);
            let page: Vec<_> =
                (start..end).map(|number| json!({"name": format!("tool-{number:04}")})).collect();
            let next = (end < tools).then(|| end.to_string());
            result(request, json!({"tools": page, "nextCursor": next}))
        }
        Some("resources/list") => result(request, json!({"resources": [{"uri": "file:///a", "name": "a"}]})),
        Some(method) if method.starts_with("notifications/") => status(202),
        Some(_) => json_response(
            json!({"jsonrpc": "2.0", "id": request.json()["id"], "error": {"code": -32601, "message": "Method not found"}}),
        ),
        None => status(204),
    }
}

#[tokio::test]
async fn a_server_is_described_by_what_it_declares_and_lists_and_no_session_stays_open() {
    let server = Server::start(listing(120)).await;
    let headers = json!([{"type": "header-forward", "parameters": {"add_headers": {"X-Key": "k"}}}]);
    let report = proxy(&server, json!({"middleware_configs": headers})).inspect().await.unwrap();
    assert_eq!((report.name.as_deref(), report.version.as_deref()), (Some("files"), Some("1.2")));
    assert_eq!(report.protocol_versions, ["2025-06-18"]);
    assert_eq!((report.tool_count, report.resource_count, report.prompt_count), (Some(120), Some(1), None));
    assert_eq!(report.tools.len(), 120);
    assert_eq!(report.tools[7].name, "tool-0007");
    let requests = server.requests();
    assert!(requests.iter().all(|request| request.header("x-key") == Some("k")));
    let last = requests.last().unwrap();
    assert_eq!((last.method.as_str(), last.header("mcp-session-id")), ("DELETE", Some("s-1")));
}

#[tokio::test]
async fn a_server_with_thousands_of_tools_is_counted_and_a_part_is_listed() {
    let server = Server::start(listing(5_000)).await;
    let report = proxy(&server, json!({})).inspect().await.unwrap();
    assert_eq!((report.tool_count, report.tools.len()), (Some(5_000), 200));
}

/// A server that speaks 2026-07-28 and nothing else.
pub(crate) fn newest(request: &ReceivedRequest) -> Response<Bytes> {
    match request.json()["method"].as_str() {
        Some("server/discover") => {
            let meta = json!({"io.modelcontextprotocol/serverInfo": {"name": "new", "version": "2"}});
            result(
                request,
                json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "_meta": meta}),
            )
        }
        Some("tools/list") => {
            assert_eq!(request.header("mcp-method"), Some("tools/list"));
            result(request, json!({"tools": [{"name": "a"}]}))
        }
        _ => json_response(
            json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no such method"}}),
        ),
    }
}

#[tokio::test]
async fn a_server_of_the_newest_revision_alone_is_described_without_a_session() {
    let server = Server::start(newest).await;
    let report = proxy(&server, json!({})).inspect().await.unwrap();
    assert_eq!((report.name.as_deref(), report.tool_count), (Some("new"), Some(1)));
    assert_eq!(report.protocol_versions, ["2026-07-28"]);
}

#[tokio::test]
async fn a_server_that_cannot_be_described_is_reported_with_the_reason() {
    let wants = Server::start(|_| status(401)).await;
    assert_eq!(proxy(&wants, json!({})).inspect().await.unwrap_err(), InspectError::CredentialRequired(401));
    let page = Server::start(|_| Response::new(Bytes::from_static(b"<h1>Hello</h1>"))).await;
    let error = proxy(&page, json!({})).inspect().await.unwrap_err();
    assert_eq!(error, InspectError::Invalid("a response is not JSON".into()));
    let missing = Server::start(|_| status(404)).await;
    let error = proxy(&missing, json!({})).inspect().await.unwrap_err();
    assert_eq!(error, InspectError::Invalid("the server responds with 404".into()));
    let broken = Server::start(|_| status(500)).await;
    let error = proxy(&broken, json!({})).inspect().await.unwrap_err();
    assert_eq!(error, InspectError::Unreachable("the server responds with 500".into()));
}

#[tokio::test]
async fn a_real_stdio_server_is_described_behind_both_transports() {
    for mode in ["streamable-http", "sse"] {
        let config = json!({
            "name": "everything", "transport": "stdio", "cmd_args": everything::command(), "proxy_mode": mode,
        });
        let proxy = Proxy::new(&RunConfig::parse(&config.to_string()).unwrap()).unwrap();
        let running = tokio::spawn({
            let proxy = proxy.clone();
            async move { proxy.endpoint().run().await }
        });
        let report = proxy.inspect().await.unwrap();
        assert!(report.tools.iter().any(|tool| tool.name == "echo" && !tool.digest.is_empty()), "{report:?}");
        assert_eq!(report.tool_count, i32::try_from(report.tools.len()).ok(), "{mode}");
        assert!(report.prompt_count > Some(0) && report.resource_count > Some(0), "{report:?}");
        proxy.endpoint().stop();
        running.await.unwrap();
    }
}
