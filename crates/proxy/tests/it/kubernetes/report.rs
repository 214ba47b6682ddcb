//! What a server offers, in the status of its object.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use k8s_openapi::{
    api::rbac::v1::{PolicyRule, Role},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use skep_api::kinds::MCPServer;
use skep_config::RunConfig;
use skep_proxy::{Proxy, runtime::kubernetes::Reporter};
use skep_testkit::{ControlPlane, IdentityProvider, Namespace, User, fixtures::TestServer};
use tokio::sync::watch;

use crate::{
    fixture::{Fixture, Place, ReceivedRequest, Server, eventually, result, status},
    inspect::{listing, newest},
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

/// What the status must have of a server.
struct Expected {
    /// The status, reason and message of the condition.
    condition: [&'static str; 3],
    tools: Value,
    /// How many of them are listed.
    listed: usize,
    revisions: Value,
}

impl Expected {
    fn described(tools: usize, listed: usize, revision: &str) -> Self {
        let condition = ["True", "Initialized", "the server responds as an MCP server"];
        Self { condition, tools: json!(tools), listed, revisions: json!([revision]) }
    }

    fn failed(reason: &'static str, message: &'static str) -> Self {
        Self { condition: ["False", reason, message], tools: Value::Null, listed: 0, revisions: Value::Null }
    }

    fn is_met(&self, status: &Value) -> bool {
        let condition = &status["conditions"][0];
        let server = &status["server"];
        let [met, reason, message] = self.condition;
        let listed = server["tools"].as_array().map_or(0, Vec::len);
        condition["status"] == met
            && condition["reason"] == reason
            && condition["message"] == message
            && (&server["toolCount"], &server["protocolVersions"]) == (&self.tools, &self.revisions)
            && listed == self.listed
    }
}

/// Reports about the server behind a proxy until the status has this.
async fn reports(what: &str, test: &Namespace, config: &RunConfig, proxy: Proxy, expected: &Expected) {
    let user = reporting(test).await;
    test.create_object(&MCPServer::test("files")).await;
    let reporter = Reporter::within(config, user.client(), test.name()).with_time(Duration::from_secs(2));
    let reporting = tokio::spawn(async move { reporter.run(&proxy, None).await });
    eventually(what, async || expected.is_met(&live(test, "files").await)).await;
    reporting.abort();
}

#[tokio::test]
async fn the_status_has_the_truth_about_every_server() {
    type Script = Box<dyn Fn(&ReceivedRequest) -> http::Response<bytes::Bytes> + Send + Sync>;
    let no_credential = "the server was not queried for what it offers: the server responds with 401 to requests \
                         without the credentials of a caller";
    let rows: [(&str, Script, Expected); 6] = [
        ("no path", Box::new(|_| status(404)), Expected::failed("NotMCP", "the server responds with 404")),
        (
            "a page",
            Box::new(|_| http::Response::new("<h1>Hello</h1>".into())),
            Expected::failed("NotMCP", "a response is not JSON"),
        ),
        (
            "a credential is needed",
            Box::new(|_| status(401)),
            Expected::failed("CredentialRequired", no_credential),
        ),
        ("broken", Box::new(|_| status(500)), Expected::failed("NoResponse", "the server responds with 500")),
        ("2026-07-28 only", Box::new(newest), Expected::described(1, 1, "2026-07-28")),
        ("5,000 tools", Box::new(listing(5_000)), Expected::described(5_000, 200, "2025-06-18")),
    ];
    for (what, script, expected) in rows {
        let test = skep_testkit::namespace().await;
        let server = Server::start(script).await;
        let config = config(&server, "files");
        reports(what, &test, &config, Proxy::new(&config).unwrap(), &expected).await;
    }
}

#[tokio::test]
async fn a_server_of_2024_alone_is_reported_with_its_revision() {
    let test = skep_testkit::namespace().await;
    let fake = Fake::raw(|received| match received.method() {
        "initialize" => {
            let server = json!({"name": "old", "version": "1"});
            let capabilities = json!({"tools": {}});
            let started =
                json!({"protocolVersion": "2024-11-05", "serverInfo": server, "capabilities": capabilities});
            vec![received.result(started)]
        }
        "tools/list" => vec![received.result(json!({"tools": [{"name": "a"}, {"name": "b"}]}))],
        _ => Vec::new(),
    });
    let config = RunConfig::parse(&json!({"name": "files", "transport": "stdio"}).to_string()).unwrap();
    let proxy = Proxy::with_attached(&config, fake, Duration::from_secs(20)).unwrap();
    let fixture = Fixture::around(proxy.clone()).await;
    let user = reporting(&test).await;
    test.create_object(&MCPServer::test("files")).await;
    let reporter = Reporter::within(&config, user.client(), test.name());
    let reporting = tokio::spawn(async move { reporter.run(&proxy, None).await });
    let expected = Expected::described(2, 2, "2024-11-05");
    eventually("2024-11-05 only", async || expected.is_met(&live(&test, "files").await)).await;
    reporting.abort();
    fixture.end().await;
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_not_initialized_until_it_does() {
    let test = skep_testkit::namespace().await;
    let (gate, is_open) = watch::channel(false);
    let server = Server::gated(Place::new(), is_open, script);
    let config = config(&server, "files");
    let user = reporting(&test).await;
    test.create_object(&MCPServer::test("files")).await;
    let proxy = Proxy::new(&config).unwrap();
    let reporter = Reporter::within(&config, user.client(), test.name()).with_time(Duration::from_secs(2));
    let reporting = tokio::spawn(async move { reporter.run(&proxy, None).await });
    let initializing = Expected::failed("Initializing", "the server has not responded yet");
    eventually("it is slow", async || initializing.is_met(&live(&test, "files").await)).await;
    let silent = Expected::failed("NoResponse", "no response within 2 s");
    eventually("it never answers", async || silent.is_met(&live(&test, "files").await)).await;
    gate.send_replace(true);
    let described = Expected::described(2, 2, "2025-11-25");
    eventually("it answers at last", async || described.is_met(&live(&test, "files").await)).await;
    reporting.abort();
}

/// The CRD without the field for what servers offer, as ToolHive's is.
async fn lacking_the_field(test: &Namespace) {
    let crds: Api<CustomResourceDefinition> = Api::all(test.client());
    let name = "mcpservers.toolhive.stacklok.dev";
    let mut crd = json!(crds.get(name).await.unwrap());
    for version in crd["spec"]["versions"].as_array_mut().unwrap() {
        let status = &mut version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"];
        status.as_object_mut().unwrap().remove("server").unwrap();
    }
    let crd: CustomResourceDefinition = serde_json::from_value(crd).unwrap();
    crds.replace(name, &PostParams::default(), &crd).await.unwrap();
    // The API server takes a moment until it uses the new schema.
    let probe = json!({
        "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer", "metadata": {"name": "files"},
        "status": {"server": {"toolCount": 1}},
    });
    let params = PatchParams::apply("probe").dry_run();
    eventually("the schema is used", async || {
        let applied = test.api::<MCPServer>().patch_status("files", &params, &Patch::Apply(&probe)).await;
        applied.is_err_and(|error| error.to_string().contains("field not declared in schema"))
    })
    .await;
}

#[tokio::test]
async fn a_crd_that_lacks_the_field_gets_the_condition_once_and_no_further_writes() {
    let plane = ControlPlane::start().await;
    let test = plane.namespace().await;
    let user = reporting(&test).await;
    test.create_object(&MCPServer::test("files")).await;
    lacking_the_field(&test).await;
    let fake = Fake::raw(|received| match received.method() {
        "initialize" => {
            let version = &received.json["params"]["protocolVersion"];
            let tools = json!({"tools": {"listChanged": true}});
            vec![received.result(json!({"protocolVersion": version, "capabilities": tools}))]
        }
        "tools/list" => vec![received.result(json!({"tools": [{"name": "read"}]}))],
        _ => Vec::new(),
    });
    let config = RunConfig::parse(&json!({"name": "files", "transport": "stdio"}).to_string()).unwrap();
    let proxy = Proxy::with_attached(&config, fake.clone(), Duration::from_secs(20)).unwrap();
    let fixture = Fixture::around(proxy.clone()).await;
    let reporter = Reporter::within(&config, user.client(), test.name());
    let recording = user.record();
    let reporting = tokio::spawn(async move { reporter.run(&proxy, None).await });
    eventually("the condition", async || {
        live(&test, "files").await["conditions"][0]["reason"] == "Initialized"
    })
    .await;
    // Each announcement leads to another look at the server and at the object.
    for looks in 3..5 {
        fake.send(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
        eventually("another look", async || recording.count("get", "mcpservers", "").await >= looks).await;
    }
    // That it is initializing; what it offers, which is rejected; and the condition alone. The last look may still go on, the one
    // before has ended.
    assert_eq!(recording.count("patch", "mcpservers", "status").await, 3);
    reporting.abort();
    fixture.end().await;
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
async fn a_proxy_cannot_report_for_others_and_reports_as_soon_as_it_may() {
    let test = skep_testkit::namespace().await;
    let user = reporting(&test).await;
    test.create_object(&MCPServer::test("other")).await;
    let server = Server::start(script).await;
    let config = config(&server, "other");
    let recording = user.record();
    let proxy = Proxy::new(&config).unwrap();
    let reporter = Reporter::within(&config, user.client(), test.name());
    let reporting = tokio::spawn(async move { reporter.run(&proxy, None).await });
    let denied = async || recording.requests().await.iter().any(|request| request.code == 403);
    eventually("a denial", denied).await;
    assert_eq!(live(&test, "other").await["server"], Value::Null);
    // Someone restores the Role that the operator has created.
    let rule = |resource: &str, verb: &str| json!({"apiGroups": ["toolhive.stacklok.dev"], "resources": [resource], "verbs": [verb]});
    let rules = json!([rule("mcpservers", "get"), rule("mcpservers/status", "patch")]);
    test.object::<Role>(user.name()).patch(&json!({"rules": rules})).await;
    eventually("the report", async || live(&test, "other").await["server"]["toolCount"] == 2).await;
    reporting.abort();
}

#[tokio::test]
async fn a_proxy_that_is_replaced_does_not_overwrite_the_report_of_the_newer_one() {
    let test = skep_testkit::namespace().await;
    let user = reporting(&test).await;
    let created = test.create_object(&MCPServer::test("files")).await;
    let changed = json!({"spec": {"image": "registry.example/mcp:2"}});
    test.api::<MCPServer>().patch("files", &PatchParams::default(), &Patch::Merge(changed)).await.unwrap();
    let reports = |server: &Server, generation: i64| {
        let config = RunConfig { mcpserver_generation: generation, ..config(server, "files") };
        let proxy = Proxy::new(&config).unwrap();
        let reporter = Reporter::within(&config, user.client(), test.name());
        let running = proxy.clone();
        (proxy, tokio::spawn(async move { reporter.run(&running, None).await }))
    };
    let initialized = async || {
        let condition = live(&test, "files").await["conditions"][0].clone();
        (condition["reason"].clone(), condition["observedGeneration"].clone())
    };
    let old = created.metadata.generation.unwrap();

    // The old one reports what it finds until the new one does.
    let other_transport = Server::start(|_| status(404)).await;
    let (leaving, old_reports) = reports(&other_transport, old);
    eventually("the old one", async || initialized().await == (json!("NotMCP"), json!(old))).await;
    let server = Server::start(script).await;
    let (_, new_reports) = reports(&server, old + 1);
    eventually("the new one", async || initialized().await == (json!("Initialized"), json!(old + 1))).await;
    // What it has found follows, and nothing more.
    eventually("all of it", async || live(&test, "files").await["server"]["toolCount"] == 2).await;
    let seen = other_transport.requests().len();
    let recording = user.record();
    eventually("the old one looks again, and reads the object", async || {
        other_transport.requests().len() > seen && recording.count("get", "mcpservers", "").await > 0
    })
    .await;
    assert_eq!(recording.count("patch", "mcpservers", "status").await, 0);
    assert_eq!(initialized().await, (json!("Initialized"), json!(old + 1)));

    leaving.drain();
    old_reports.await.unwrap();
    new_reports.abort();
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
    let fixture = Fixture::around(proxy.clone()).await;
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
    let proxy = Proxy::new(&config).unwrap();
    let fixture = Fixture::around(proxy.clone()).await;
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
