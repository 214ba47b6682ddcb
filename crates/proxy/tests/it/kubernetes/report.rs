//! What a server offers, in the status of its object.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::{Value, json};
use skep_api::kinds::MCPServer;
use skep_config::RunConfig;
use skep_proxy::{Proxy, runtime::kubernetes::Reporter};
use skep_testkit::{IdentityProvider, Namespace, User, fixtures::TestServer};

use crate::{
    fixture::{Fixture, ReceivedRequest, Server, eventually, result, status},
    stdio::fake::Fake,
};

/// May do what the Role of the server `files` allows: read its own object, and report its status.
async fn reporting(test: &Namespace) -> User {
    let user = test.user("proxy");
    let rule = |resource: &str, verb: &str| PolicyRule {
        api_groups: Some(vec!["toolhive.stacklok.dev".into()]),
        resources: Some(vec![resource.into()]),
        resource_names: Some(vec!["files".into()]),
        verbs: vec![verb.into()],
        ..PolicyRule::default()
    };
    test.grant(&user, vec![rule("mcpservers", "get"), rule("mcpservers/status", "patch")]).await;
    user
}

fn config(server: &Server, name: &str) -> RunConfig {
    let config = json!({
        "name": name, "transport": "streamable-http",
        "target_host": "127.0.0.1", "target_port": server.address.port(),
    });
    RunConfig::parse(&config.to_string()).unwrap()
}

fn script(request: &ReceivedRequest) -> http::Response<bytes::Bytes> {
    let tools = json!([{"name": "read", "annotations": {"readOnlyHint": true}}, {"name": "write", "title": "Write a file"}]);
    match request.json()["method"].as_str() {
        Some("initialize") => {
            let server = json!({"name": "files", "version": "3"});
            result(
                request,
                json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": server}),
            )
        }
        Some("tools/list") => result(request, json!({"tools": tools})),
        _ => status(202),
    }
}

async fn live(test: &Namespace, name: &str) -> Value {
    json!(test.api::<MCPServer>().get(name).await.unwrap().status)
}

#[tokio::test]
async fn the_status_has_what_the_server_offers_and_is_written_only_when_that_changes() {
    let test = skep_testkit::namespace().await;
    let user = reporting(&test).await;
    test.create_object(&MCPServer::test("files")).await;
    let server = Server::start(script).await;
    let config = config(&server, "files");
    let recording = user.record();
    for replica in 0..2 {
        let proxy = Proxy::new(&config).unwrap();
        let reporter = Reporter::within(&config, user.client(), test.name());
        let reporting = tokio::spawn(async move { reporter.run(&proxy, None).await });
        eventually("the report", async || live(&test, "files").await["server"]["toolCount"] == 2).await;
        // The second one ends its session after it has read the lists, and then finds nothing to write.
        eventually("both read the lists", async || {
            let listed = |request: &&ReceivedRequest| request.json()["method"] == "tools/list";
            server.requests().iter().filter(listed).count() == replica + 1
        })
        .await;
        eventually("both have looked at the object", async || {
            recording.count("get", "mcpservers", "").await >= 2 * (replica + 1)
        })
        .await;
        reporting.abort();
    }
    let status = live(&test, "files").await;
    assert_eq!((&status["server"]["name"], &status["server"]["version"]), (&json!("files"), &json!("3")));
    assert_eq!(status["server"]["protocolVersions"], json!(["2025-11-25"]));
    let tools = status["server"]["tools"].as_array().unwrap();
    assert_eq!((&tools[0]["name"], &tools[0]["hints"]), (&json!("read"), &json!(["readOnly"])));
    assert_eq!((&tools[1]["name"], &tools[1]["title"]), (&json!("write"), &json!("Write a file")));
    assert_eq!(
        (&status["conditions"][0]["type"], &status["conditions"][0]["reason"]),
        (&json!("MCPInitialized"), &json!("Initialized"))
    );
    // That it is initializing, and then what it offers.
    assert_eq!(recording.count("patch", "mcpservers", "status").await, 2);
}

#[tokio::test]
async fn a_server_that_is_no_mcp_server_or_wants_credentials_is_reported_as_such() {
    let test = skep_testkit::namespace().await;
    let user = reporting(&test).await;
    test.create_object(&MCPServer::test("files")).await;
    for (code, reason) in [(404, "NotMCP"), (401, "CredentialRequired"), (500, "NoResponse")] {
        let server = Server::start(move |_| status(code)).await;
        let config = config(&server, "files");
        let proxy = Arc::new(Proxy::new(&config).unwrap());
        let reporter = Reporter::within(&config, user.client(), test.name());
        let reporting = tokio::spawn(async move { reporter.run(&proxy, None).await });
        eventually(reason, async || live(&test, "files").await["conditions"][0]["reason"] == reason).await;
        reporting.abort();
    }
}

#[tokio::test]
async fn an_issuer_that_is_unavailable_is_reported_until_its_keys_can_be_fetched() {
    let test = skep_testkit::namespace().await;
    let user = reporting(&test).await;
    test.create_object(&MCPServer::test("files")).await;
    let server = Server::start(script).await;
    let provider = IdentityProvider::start().await;
    provider.down();
    let mut config = config(&server, "files");
    let auth = json!([{"type": "auth", "parameters": {"oidc_config": provider.oidc(json!({}))}}]);
    config.middleware_configs = serde_json::from_value(auth).unwrap();
    let proxy = Proxy::new(&config).unwrap();
    let reporter = Reporter::within(&config, user.client(), test.name());
    let reporting = tokio::spawn(async move { reporter.run(&proxy, None).await });
    let issuer = async || {
        let status = live(&test, "files").await;
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|condition| condition["type"] == "IssuerAvailable").unwrap_or_default()
    };
    eventually("the failure", async || issuer().await["status"] == "False").await;
    let message = issuer().await["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("no caller can be authenticated: http://127.0.0.1"), "{message}");
    provider.up();
    eventually("the keys", async || issuer().await["status"] == "True").await;
    reporting.abort();
}

#[tokio::test]
async fn a_proxy_without_the_permission_ends_its_reports_and_cannot_report_for_others() {
    let test = skep_testkit::namespace().await;
    let user = reporting(&test).await;
    test.create_object(&MCPServer::test("other")).await;
    let server = Server::start(script).await;
    let config = config(&server, "other");
    let proxy = Proxy::new(&config).unwrap();
    Reporter::within(&config, user.client(), test.name()).run(&proxy, None).await;
    assert_eq!(live(&test, "other").await["server"], Value::Null);
}

#[tokio::test]
async fn tools_that_a_server_announces_are_in_the_status_without_a_restart() {
    let test = skep_testkit::namespace().await;
    let user = reporting(&test).await;
    test.create_object(&MCPServer::test("files")).await;
    let has_more = Arc::new(AtomicBool::new(false));
    let more = has_more.clone();
    let fake = Fake::raw(move |received| match received.method() {
        "initialize" => {
            let version = &received.json["params"]["protocolVersion"];
            let server = json!({"name": "files", "version": "3"});
            let tools = json!({"tools": {"listChanged": true}});
            let started = json!({"protocolVersion": version, "serverInfo": server, "capabilities": tools});
            vec![received.result(started)]
        }
        "tools/list" => {
            let all = [json!({"name": "read"}), json!({"name": "write"})];
            let count = if more.load(Ordering::SeqCst) { 2 } else { 1 };
            vec![received.result(json!({"tools": all[..count]}))]
        }
        _ => Vec::new(),
    });
    let config = RunConfig::parse(&json!({"name": "files", "transport": "stdio"}).to_string()).unwrap();
    let proxy = Proxy::with_attached(&config, fake.clone(), Duration::from_secs(20)).unwrap();
    let proxy = Arc::new(proxy);
    let fixture = Fixture::serving(proxy.clone()).await;
    let reporter = Reporter::within(&config, user.client(), test.name());
    let reporting = tokio::spawn(async move { reporter.run(&proxy, None).await });
    eventually("the report", async || live(&test, "files").await["server"]["toolCount"] == 1).await;
    has_more.store(true, Ordering::SeqCst);
    fake.send(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
    eventually("the new tool", async || live(&test, "files").await["server"]["toolCount"] == 2).await;
    reporting.abort();
    fixture.end().await;
}

#[tokio::test]
async fn tools_that_a_server_behind_http_announces_to_a_client_are_in_the_status() {
    let test = skep_testkit::namespace().await;
    let user = reporting(&test).await;
    test.create_object(&MCPServer::test("files")).await;
    let has_more = Arc::new(AtomicBool::new(false));
    let more = has_more.clone();
    let server = Server::start(move |request| match request.method {
        http::Method::GET => {
            let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
            let mut response = http::Response::new(format!("data: {changed}\n\n").into());
            response.headers_mut().insert("content-type", "text/event-stream".parse().unwrap());
            response
        }
        _ if request.json()["method"] == "tools/list" && more.load(Ordering::SeqCst) => {
            result(request, json!({"tools": [{"name": "read"}, {"name": "write"}, {"name": "delete"}]}))
        }
        _ => script(request),
    })
    .await;
    let config = config(&server, "files");
    let proxy = Arc::new(Proxy::new(&config).unwrap());
    let fixture = Fixture::serving(proxy.clone()).await;
    let reporter = Reporter::within(&config, user.client(), test.name());
    let reporting = tokio::spawn(async move { reporter.run(&proxy, None).await });
    eventually("the report", async || live(&test, "files").await["server"]["toolCount"] == 2).await;
    has_more.store(true, Ordering::SeqCst);
    let listened = fixture.send(http::Method::GET, "/mcp", &[("accept", "text/event-stream")], b"").await;
    assert!(listened.status.is_success());
    eventually("the new tool", async || live(&test, "files").await["server"]["toolCount"] == 3).await;
    reporting.abort();
    fixture.end().await;
}
