//! Metrics as Prometheus gets them.

use http::Method;
use serde_json::{Value, json};
use skep_testkit::free_port;

use super::{middleware, server, tool};
use crate::fixture::{Fixture, call};

fn prometheus(changes: Value) -> Value {
    let mut config = json!({
        "serviceName": "files-service", "enablePrometheusMetricsPath": true, "prometheusPort": free_port(),
        "customAttributes": {"deployment.zone": "eu"},
    });
    config.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    let parameters = json!({"config": config, "server_name": "files", "transport": "streamable-http"});
    middleware(json!({"type": "telemetry", "parameters": parameters}))
}

pub(super) async fn scrape(fixture: &Fixture) -> String {
    let answer = fixture.send(Method::GET, "/metrics", &[], b"").await;
    assert_eq!(answer.status, 200);
    assert!(answer.headers["content-type"].to_str().unwrap().starts_with("application/openmetrics-text"));
    String::from_utf8(answer.body.to_vec()).unwrap()
}

/// The page, once it has this line. A request is measured when its response has ended, which may be a moment after
/// the client has all of it.
async fn with_line(fixture: &Fixture, line: &str) -> String {
    for _ in 0..500 {
        let page = scrape(fixture).await;
        if page.lines().any(|seen| seen == line) {
            return page;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("no {line} in {}", scrape(fixture).await)
}

#[tokio::test]
async fn metrics_have_the_names_and_labels_that_dashboards_know() {
    let server = server().await;
    let fixture = Fixture::new(&server, prometheus(json!({}))).await;
    fixture.post(&[], &tool("read")).await;
    fixture.post(&[], &tool("forbidden")).await;
    fixture.post(&[], &call("prompts/get", json!({"name": "greet"}))).await;
    let labels = |rest: &str| format!("{{server=\"files\",transport=\"streamable-http\",{rest}}}");
    let read = labels(
        "method=\"POST\",status_code=\"200\",status=\"success\",mcp_method=\"tools/call\",mcp_resource_id=\"read\"",
    );
    let denied = labels(
        "method=\"POST\",status_code=\"403\",status=\"error\",mcp_method=\"tools/call\",mcp_resource_id=\"_OTHER\"",
    );
    let prompt = labels(
        "method=\"POST\",status_code=\"200\",status=\"success\",mcp_method=\"prompts/get\",mcp_resource_id=\"greet\"",
    );
    let page = with_line(&fixture, &format!("toolhive_mcp_requests_total{prompt} 1")).await;
    for line in [
        format!("toolhive_mcp_requests_total{read} 1"),
        format!("toolhive_mcp_requests_total{denied} 1"),
        format!("toolhive_mcp_request_duration_seconds_count{read} 1"),
        format!("toolhive_mcp_active_connections{} 0", labels("connection_type=\"\"")),
        "toolhive_mcp_tool_calls_total{server=\"files\",tool=\"read\",status=\"success\"} 1".into(),
        "toolhive_mcp_tool_calls_total{server=\"files\",tool=\"_OTHER\",status=\"error\"} 1".into(),
        "# TYPE toolhive_mcp_requests counter".into(),
        "# TYPE mcp_server_operation_duration_seconds histogram".into(),
        "# EOF".into(),
    ] {
        assert!(page.lines().any(|seen| seen == line), "no {line} in {page}");
    }
    assert!(page.contains("le=\"0.01\"") && page.contains("le=\"300.0\""), "{page}");
    assert!(
        page.contains("deployment_zone=\"eu\"") && page.contains("service_name=\"files-service\""),
        "{page}"
    );
    assert!(page.contains("gen_ai_prompt_name=\"greet\""), "{page}");
}

#[tokio::test]
async fn names_that_callers_make_up_are_one_series() {
    let server = server().await;
    let fixture = Fixture::new(&server, prometheus(json!({}))).await;
    for index in 0..200 {
        fixture.post(&[], &call(&format!("made/up/{index}"), json!({}))).await;
        let body = call("tools/call", json!({"name": "forbidden", "x": index}));
        fixture.post(&[], &body).await;
    }
    let made_up = "{server=\"files\",transport=\"streamable-http\",method=\"POST\",status_code=\"403\",status=\"error\",mcp_method=\"_OTHER\",mcp_resource_id=\"\"}";
    let page = with_line(&fixture, &format!("toolhive_mcp_requests_total{made_up} 200")).await;
    let series = page.lines().filter(|line| line.starts_with("toolhive_mcp_requests_total")).count();
    assert_eq!(series, 2, "{page}");
}

#[tokio::test]
async fn metrics_can_be_kept_off_the_port_of_clients() {
    let server = server().await;
    let port = free_port();
    let changes = json!({"metricsOnTransportPort": false, "prometheusPort": port});
    let fixture = Fixture::new(&server, prometheus(changes)).await;
    fixture.post(&[], &tool("read")).await;
    let answer = fixture.send(Method::GET, "/metrics", &[], b"").await;
    assert_eq!(
        (answer.status.as_u16(), &answer.body[..]),
        (404, &b"metrics are not served on this port\n"[..])
    );
    let address = format!("http://127.0.0.1:{port}/metrics").parse().unwrap();
    let mut scrape = fixture.client.get(address).await;
    for _ in 0..500 {
        if scrape.is_ok() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        scrape = fixture.client.get(format!("http://127.0.0.1:{port}/metrics").parse().unwrap()).await;
    }
    let body = http_body_util::BodyExt::collect(scrape.unwrap().into_body()).await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&body).contains("toolhive_mcp_requests_total"));
}

#[tokio::test]
async fn without_metrics_the_path_is_not_found_and_not_forwarded() {
    let server = server().await;
    let fixture = Fixture::new(&server, json!([{"type": "auth", "parameters": {}}])).await;
    assert_eq!(fixture.send(Method::GET, "/metrics", &[], b"").await.status, 404);
    assert!(server.requests().is_empty());
}
