//! Traces and metrics, as a collector and Prometheus get them.

mod collector;
mod rate_limits;
mod scraping;
mod secrets;

use std::{fs, time::Duration};

use bytes::Bytes;
use http::{Method, Response};
use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind, status::StatusCode as SpanStatus};
use serde_json::{Value, json};
use skep_config::RunConfig;
use skep_proxy::Proxy;

use crate::fixture::{Fixture, ReceivedRequest, Server, call, json_response, result, status};
pub(crate) use collector::{Attributes, Collector, attributes, with_tls};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const OTHER_PARENT: &str = "00-11111111111111111111111111111111-2222222222222222-01";

/// Telemetry with everything on, and what the test changes.
fn telemetry(collector: &Collector, changes: Value) -> Value {
    let mut config = json!({
        "endpoint": collector.endpoint(), "insecure": true, "serviceName": "files-service",
        "tracingEnabled": true, "metricsEnabled": true, "samplingRate": "1",
    });
    config.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    let parameters = json!({"config": config, "server_name": "files", "transport": "streamable-http"});
    json!({"type": "telemetry", "parameters": parameters})
}

fn middleware(telemetry: Value) -> Value {
    let policies = ["permit(principal, action, resource) unless { resource == Tool::\"forbidden\" };"];
    let document =
        json!({"version": "1.0", "type": "cedarv1", "cedar": {"policies": policies, "entities_json": "[]"}});
    json!([
        {"type": "auth", "parameters": {}},
        telemetry,
        {"type": "authorization", "parameters": {"config_data": document}},
    ])
}

/// A server that fails depending on the tool.
async fn server() -> Server {
    Server::start(|request| match request.json()["params"]["name"].as_str() {
        Some("crash") => status(500),
        Some("unknown") => json_response(
            json!({"jsonrpc": "2.0", "id": 7, "error": {"code": -32602, "message": "no such tool"}}),
        ),
        Some("fails") => result(request, json!({"content": [], "isError": true})),
        Some("streams") => stream_response(request),
        _ if request.method == Method::GET => {
            events("data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n".into())
        }
        _ => result(request, json!({"content": []})),
    })
    .await
}

fn stream_response(request: &ReceivedRequest) -> Response<Bytes> {
    let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}});
    let answer = json!({"jsonrpc": "2.0", "id": request.json()["id"], "result": {"content": []}});
    events(format!("data: {progress}\n\ndata: {answer}\n\n"))
}

fn events(events: String) -> Response<Bytes> {
    Response::builder().header("content-type", "text/event-stream").body(events.into()).unwrap()
}

fn tool(name: &str) -> String {
    call("tools/call", json!({"name": name, "arguments": {"path": "/private"}}))
}

fn of<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("no {name} in {spans:#?}"))
}

fn map(pairs: &[(&str, &str)]) -> Attributes {
    pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

#[tokio::test]
async fn a_call_is_a_span_by_the_conventions_with_no_argument_in_it() {
    let (server, collector) = (server().await, Collector::start().await);
    let changes = json!({
        "serviceVersion": "1.2", "customAttributes": {"zone": "eu"},
        "environmentVariables": ["PATH", "NOT_THERE"],
    });
    let fixture = Fixture::new(&server, middleware(telemetry(&collector, changes))).await;
    let host = fixture.address.to_string();
    let session = "0123456789abcdef0123456789abcdef";
    let headers = [
        ("user-agent", "tester/1"),
        ("traceparent", PARENT),
        ("mcp-protocol-version", "2025-06-18"),
        ("mcp-session-id", session),
    ];
    let body = tool("read");
    fixture.send(Method::POST, "/mcp?key=hidden", &headers, body.as_bytes()).await;
    fixture.end().await;

    let spans = collector.spans();
    let [span] = &spans[..] else { panic!("{spans:#?}") };
    assert_eq!((span.name.as_str(), span.kind), ("tools/call read", SpanKind::Server as i32));
    assert_eq!(hex(&span.trace_id), "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(hex(&span.parent_span_id), "b7ad6b7169203331");
    assert!(span.end_time_unix_nano >= span.start_time_unix_nano);
    let mut seen = attributes(&span.attributes);
    assert!(seen.remove("client.port").is_some());
    let size = body.len().to_string();
    let answer = seen.remove("http.response.body.size").unwrap();
    assert!(answer.parse::<u32>().unwrap() > 0);
    let expected = map(&[
        ("client.address", "127.0.0.1"),
        ("environment.PATH", &std::env::var("PATH").unwrap()),
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "read"),
        ("http.request.body.size", &size),
        ("http.request.method", "POST"),
        ("http.response.status_code", "200"),
        ("jsonrpc.protocol.version", "2.0"),
        ("jsonrpc.request.id", "7"),
        ("mcp.method.name", "tools/call"),
        ("mcp.protocol.version", "2025-06-18"),
        ("mcp.server.name", "files"),
        ("mcp.session.id", "01234567"),
        ("network.protocol.name", "http"),
        ("network.protocol.version", "1.1"),
        ("network.transport", "tcp"),
        ("rpc.system.name", "jsonrpc"),
        ("server.address", &host),
        ("url.full", &format!("http://{host}/mcp")),
        ("url.path", "/mcp"),
        ("url.scheme", "http"),
        ("user_agent.original", "tester/1"),
    ]);
    assert_eq!(seen, expected);
    let resource = collector.resource();
    let about = ["service.name", "service.version", "zone"].map(|key| resource[key].as_str());
    assert_eq!(about, ["files-service", "1.2", "eu"]);
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn spans_and_metrics_have_the_outcome_of_each_request() {
    let (server, collector) = (server().await, Collector::start().await);
    let fixture = Fixture::new(&server, middleware(telemetry(&collector, json!({})))).await;
    for name in ["read", "forbidden", "unknown", "fails", "crash", "streams"] {
        fixture.post(&[], &tool(name)).await;
    }
    fixture.post(&[], &call("initialize", json!({"clientInfo": {"name": "inspector"}}))).await;
    fixture.post(&[], &call("tools/list", json!({"cursor": "secret-page"}))).await;
    fixture.post(&[], &call("resources/read", json!({"uri": "db://me:pw@host/t?key=1"}))).await;
    fixture.end().await;

    let spans = collector.spans();
    let actual: Vec<_> = [
        "tools/call read",
        "tools/call forbidden",
        "tools/call unknown",
        "tools/call fails",
        "tools/call crash",
        "tools/call streams",
        "initialize inspector",
        "tools/list",
        "resources/read db://host/t",
    ]
    .iter()
    .map(|name| {
        let span = of(&spans, name);
        let attributes = attributes(&span.attributes);
        let code = span.status.as_ref().map_or(0, |status| status.code);
        let error = attributes.get("error.type").cloned().unwrap_or_default();
        (attributes["http.response.status_code"].clone(), code, error)
    })
    .collect();
    let (ok, unset, error) = (SpanStatus::Ok as i32, SpanStatus::Unset as i32, SpanStatus::Error as i32);
    let expected = [
        ("200", ok, ""),
        ("403", unset, ""),
        ("200", error, "-32602"),
        ("200", error, "tool_error"),
        ("500", error, "500"),
        ("200", ok, ""),
        ("200", ok, ""),
        ("200", ok, ""),
        ("200", ok, ""),
    ];
    assert_eq!(actual, expected.map(|(status, code, error)| (status.to_owned(), code, error.to_owned())));
    assert_eq!(spans.len(), expected.len());

    let mut calls: Vec<_> = collector
        .points("toolhive_mcp_tool_calls")
        .iter()
        .map(|point| (point.attributes["tool"].clone(), point.attributes["status"].clone(), point.count))
        .collect();
    calls.sort_by(|a, b| a.partial_cmp(b).unwrap());
    // Those that no result has confirmed may be made up.
    let expected = [("_OTHER", "error", 4.0), ("read", "success", 1.0), ("streams", "success", 1.0)];
    assert_eq!(calls, expected.map(|(tool, status, count)| (tool.to_owned(), status.to_owned(), count)));

    let requests = collector.points("toolhive_mcp_requests");
    let initialize = requests.iter().find(|point| point.attributes["mcp_method"] == "initialize").unwrap();
    let expected = map(&[
        ("mcp_method", "initialize"),
        ("mcp_resource_id", "inspector"),
        ("method", "POST"),
        ("server", "files"),
        ("status", "success"),
        ("status_code", "200"),
        ("transport", "streamable-http"),
    ]);
    assert_eq!((&initialize.attributes, initialize.count), (&expected, 1.0));
    let durations = collector.points("toolhive_mcp_request_duration");
    assert_eq!(durations.iter().map(|point| point.count).sum::<f64>(), 9.0);
    assert_eq!(durations[0].bounds.len(), 14);
    let operations = collector.points("mcp.server.operation.duration");
    let crash = operations.iter().find(|point| point.attributes.get("error.type") == Some(&"500".into()));
    let expected = map(&[
        ("error.type", "500"),
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "_OTHER"),
        ("jsonrpc.protocol.version", "2.0"),
        ("mcp.method.name", "tools/call"),
        ("network.protocol.name", "http"),
        ("network.protocol.version", "1.1"),
        ("network.transport", "tcp"),
    ]);
    assert_eq!(crash.unwrap().attributes, expected);
    let active = collector.points("toolhive_mcp_active_connections");
    assert!(active.iter().all(|point| point.count == 0.0), "{active:?}");
    let text = collector.text();
    assert!(!text.contains("secret-page") && !text.contains("me:pw") && !text.contains("/private"));
}

#[tokio::test]
async fn the_trace_of_the_message_overrides_that_of_the_header_and_both_are_forwarded() {
    let (server, collector) = (server().await, Collector::start().await);
    let fixture = Fixture::new(&server, middleware(telemetry(&collector, json!({})))).await;
    let body = call("tools/call", json!({"name": "read", "_meta": {"traceparent": OTHER_PARENT}}));
    fixture.post(&[("traceparent", PARENT)], &body).await;
    fixture.post(&[("traceparent", "not a trace")], &tool("fails")).await;
    fixture.end().await;
    let spans = collector.spans();
    let span = of(&spans, "tools/call read");
    assert_eq!((hex(&span.trace_id), hex(&span.parent_span_id)), ("1".repeat(32), "2".repeat(16)));
    assert!(of(&spans, "tools/call fails").parent_span_id.is_empty());
    let requests = server.requests();
    assert_eq!((requests[0].header("traceparent"), &requests[0].body[..]), (Some(PARENT), body.as_bytes()));
}

#[tokio::test]
async fn with_a_sampling_rate_of_zero_only_what_the_caller_traces_is_traced() {
    let (server, collector) = (server().await, Collector::start().await);
    let changes = json!({"samplingRate": "0"});
    let fixture = Fixture::new(&server, middleware(telemetry(&collector, changes))).await;
    for _ in 0..20 {
        fixture.post(&[], &tool("read")).await;
    }
    fixture.post(&[("traceparent", PARENT)], &tool("streams")).await;
    fixture.end().await;
    let names: Vec<_> = collector.spans().into_iter().map(|span| span.name).collect();
    assert_eq!(names, ["tools/call streams"]);
    let calls = collector.points("toolhive_mcp_tool_calls");
    assert_eq!(calls.iter().map(|point| point.count).sum::<f64>(), 21.0, "metrics count all");
}

#[tokio::test]
async fn legacy_attributes_are_set_if_configured() {
    let (server, collector) = (server().await, Collector::start().await);
    let changes = json!({"useLegacyAttributes": true});
    let fixture = Fixture::new(&server, middleware(telemetry(&collector, changes))).await;
    let answer = fixture.post(&[], &tool("read")).await;
    fixture.end().await;
    let seen = attributes(&collector.spans()[0].attributes);
    let size = answer.body.len().to_string();
    for (key, value) in [
        ("http.method", "POST"),
        ("http.status_code", "200"),
        ("http.response_content_length", &size),
        ("http.target", "/mcp"),
        ("mcp.method", "tools/call"),
        ("mcp.tool.name", "read"),
        ("mcp.transport", "streamable-http"),
        ("rpc.system", "jsonrpc"),
        ("gen_ai.tool.name", "read"),
    ] {
        assert_eq!(seen.get(key).map(String::as_str), Some(value), "{key}");
    }
}

#[tokio::test]
async fn the_span_of_a_session_stream_ends_when_the_stream_starts() {
    let (server, collector) = (server().await, Collector::start().await);
    let fixture = Fixture::new(&server, middleware(telemetry(&collector, json!({})))).await;
    fixture.send(Method::GET, "/mcp", &[("accept", "text/event-stream")], b"").await;
    fixture.end().await;
    let spans = collector.spans();
    let names: Vec<_> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["sse.connection_established"]);
    assert_eq!(collector.points("toolhive_mcp_requests")[0].count, 1.0);
    assert!(
        collector.points("toolhive_mcp_request_duration").is_empty(),
        "the duration of a stream is not measured"
    );
    let active = collector.points("toolhive_mcp_active_connections");
    assert_eq!(active[0].attributes["connection_type"], "sse");
}

#[tokio::test]
async fn a_request_whose_client_disconnects_is_measured() {
    let collector = Collector::start().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = json!({
        "name": "files", "transport": "streamable-http", "host": "127.0.0.1", "target_host": "127.0.0.1",
        "target_port": listener.local_addr().unwrap().port(),
    });
    config["middleware_configs"] = middleware(telemetry(&collector, json!({})));
    let fixture = Fixture::of(&RunConfig::parse(&config.to_string()).unwrap()).await;
    let body = tool("read");
    let waiting = fixture.post(&[], &body);
    // The server accepts the connection, and the client disconnects.
    tokio::select! {
        _ = waiting => panic!("the server does not respond"),
        accepted = listener.accept() => { accepted.unwrap(); }
    }
    fixture.end().await;
    let requests = collector.points("toolhive_mcp_requests");
    assert_eq!(requests[0].attributes["status_code"], "499");
    let span = &collector.spans()[0];
    assert_eq!(attributes(&span.attributes)["error.type"], "cancelled");
}

#[tokio::test]
async fn what_is_rejected_before_or_while_it_is_read_is_measured() {
    let (server, collector) = (server().await, Collector::start().await);
    let fixture = Fixture::new(&server, middleware(telemetry(&collector, json!({})))).await;
    let rejected = [
        (Method::PUT, "application/json", "", 405),
        (Method::POST, "application/json", "{", 400),
        (Method::POST, "text/plain", "{}", 415),
    ];
    for (method, content, body, status) in rejected {
        let response = fixture.send(method, "/mcp", &[("content-type", content)], body.as_bytes()).await;
        assert_eq!(response.status, status);
    }
    fixture.end().await;
    let requests = collector.points("toolhive_mcp_requests");
    let mut measured: Vec<_> = requests
        .iter()
        .map(|point| (&*point.attributes["status_code"], &*point.attributes["status"], point.count))
        .collect();
    measured.sort_by_key(|(status, ..)| *status);
    assert_eq!(measured, [("400", "error", 1.0), ("405", "error", 1.0), ("415", "error", 1.0)]);
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_collector_has_tls_its_own_authority_and_headers() {
    let (server, collector) = (server().await, Collector::start().await);
    let (address, certificate) = with_tls(collector.0.address).await;
    let file = std::env::temp_dir().join(format!("skep-collector-{}.pem", std::process::id()));
    fs::write(&file, certificate).unwrap();
    let changes = json!({
        "endpoint": format!("{address}/base"), "insecure": false, "caCertPath": file,
        "headers": {"x-team": "a"},
    });
    let fixture = Fixture::new(&server, middleware(telemetry(&collector, changes))).await;
    fs::remove_file(&file).unwrap();
    fixture.post(&[], &tool("read")).await;
    fixture.end().await;
    let requests = collector.0.requests();
    let mut paths: Vec<_> = requests.iter().map(|request| request.path.as_str()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["/base/v1/metrics", "/base/v1/traces"]);
    assert!(requests.iter().all(|request| request.header("x-team") == Some("a")));
    assert_eq!(collector.spans().len(), 1);
}

/// Only telemetry is lost: requests are served, and the proxy ends.
#[tokio::test]
async fn an_unavailable_collector_delays_no_request() {
    let server = server().await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stopped = Server::stopped();
    for endpoint in [stopped.address, silent.local_addr().unwrap()] {
        let collector = Collector(Server::stopped());
        let changes = json!({"endpoint": endpoint.to_string()});
        let fixture = Fixture::new(&server, middleware(telemetry(&collector, changes))).await;
        for _ in 0..50 {
            assert_eq!(fixture.post(&[], &tool("read")).await.status, 200);
        }
        tokio::time::timeout(Duration::from_secs(60), fixture.end())
            .await
            .expect("timeout stopping the proxy");
    }
}

#[tokio::test]
async fn an_invalid_configuration_is_an_error_that_names_the_field() {
    let collector = Collector(Server::stopped());
    let server = Server::stopped();
    for (changes, expected) in [
        (json!({"serviceName": ""}), "telemetry: serviceName is missing"),
        (json!({"tracingEnabled": false, "metricsEnabled": false}), "telemetry: endpoint: nothing is sent"),
        (json!({"samplingRate": "2"}), "telemetry: samplingRate"),
        (json!({"headers": {"a b": "c"}}), "telemetry: headers"),
        (json!({"caCertPath": "/not/there"}), "telemetry: caCertPath: /not/there"),
    ] {
        let config = json!({
            "name": "files", "transport": "streamable-http", "target_port": server.address.port(),
            "middleware_configs": [telemetry(&collector, changes)],
        });
        let error = Proxy::new(&RunConfig::parse(&config.to_string()).unwrap()).err().unwrap().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}
