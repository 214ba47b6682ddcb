//! No token, secret or body is in a log, a trace or a metric, whatever is requested and however it is rejected.

use std::{
    fs,
    io::{self, Write},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use http::Method;
use serde_json::{Value, json};
use skep_testkit::{IdentityProvider, free_port};
use tracing_subscriber::{
    EnvFilter,
    fmt::{MakeWriter, format::Writer, time::FormatTime},
};

use super::{Collector, telemetry};
use crate::fixture::{Fixture, Server, call, json_response, result, status};

/// Part of everything that is secret.
const MARK: &str = "s3cr3t-mark";
/// Part of what only the audit log contains unchanged: an investigation needs all of it.
const NAMED: &str = "n4m3d-mark";

/// In place of the time, the request that a line is about.
struct Request;

impl FormatTime for Request {
    fn format_time(&self, writer: &mut Writer<'_>) -> std::fmt::Result {
        let about = skep_proxy::request_context();
        let fields: Vec<_> = about.iter().flat_map(|about| about.fields()).collect();
        let fields: Vec<_> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
        write!(writer, "{}", fields.join(" "))
    }
}

/// A log that can be read again.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    fn lines(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Captures all that is logged in this thread, which is that of all tasks of a test.
    fn capture(&self, level: &str) -> tracing::subscriber::DefaultGuard {
        let logs = tracing_subscriber::fmt().json().with_timer(Request).with_writer(self.clone());
        tracing::subscriber::set_default(logs.with_env_filter(EnvFilter::new(level)).finish())
    }
}

fn chain(collector: &Collector, provider: &IdentityProvider, audit: &str) -> Value {
    let oidc = provider.oidc(json!({}));
    let policies = ["permit(principal, action, resource) unless { resource == Tool::\"forbidden\" };"];
    let document =
        json!({"version": "1.0", "type": "cedarv1", "cedar": {"policies": policies, "entities_json": "[]"}});
    let changes = json!({
        "enablePrometheusMetricsPath": true, "useLegacyAttributes": true, "headers": {"x-key": "for-the-collector"},
        "prometheusPort": free_port(),
    });
    json!([
        {"type": "audit", "parameters": {"config_data": {"logFile": audit}}},
        {"type": "auth", "parameters": {"oidc_config": oidc}},
        {"type": "tool-filter", "parameters": {"filter_tools": ["read", "forbidden", "crash", "broken"]}},
        {"type": "tool-call-filter", "parameters": {"filter_tools": ["read", "forbidden", "crash", "broken"]}},
        telemetry(collector, changes),
        {"type": "authorization", "parameters": {"config_data": document}},
        {"type": "header-forward", "parameters": {"add_headers": {"x-forwarded-key": MARK}}},
    ])
}

#[tokio::test]
async fn marked_secrets_are_nowhere() {
    let log = Log::default();
    let guard = log.capture("trace");
    let (collector, provider) = (Collector::start().await, IdentityProvider::start().await);
    let server = Server::start(|request| match request.json()["params"]["name"].as_str() {
        Some("crash") => status(500).map(|_| MARK.into()),
        Some("broken") => {
            let error = json!({"code": -32000, "message": MARK, "data": {"why": MARK}});
            json_response(json!({"jsonrpc": "2.0", "id": 7, "error": error}))
        }
        _ => result(request, json!({"content": [{"type": "text", "text": MARK}]})),
    })
    .await;
    let audit = std::env::temp_dir().join(format!("skep-secrets-{}.log", std::process::id()));
    let fixture = Fixture::new(&server, chain(&collector, &provider, audit.to_str().unwrap())).await;

    let good = format!("Bearer {}", provider.token(json!({"sub": "subject-1", "note": MARK})));
    let foreign = IdentityProvider::start().await;
    let bad = [
        format!("Bearer {MARK}"),
        format!("Bearer {MARK}.{MARK}.{MARK}"),
        format!("Basic {MARK}"),
        MARK.to_owned(),
        format!("Bearer {}", foreign.token(json!({"sub": MARK}))),
        format!("Bearer {}", provider.token(json!({"aud": MARK, "sub": MARK}))),
    ];
    let call_of = |name: &str| {
        let arguments = json!({"password": MARK, "path": MARK});
        call("tools/call", json!({"name": name, "arguments": arguments, "_meta": {"note": MARK}}))
    };
    let bodies = [
        call_of("read"),
        call_of("forbidden"),
        call_of("hidden"),
        call_of("crash"),
        call_of("broken"),
        call("initialize", json!({"clientInfo": {"name": "c"}, "capabilities": {"x": MARK}})),
        call("tools/list", json!({"cursor": NAMED})),
        call("resources/read", json!({"uri": format!("db://u:{NAMED}@host/t?key={NAMED}")})),
        format!("[{{\"{MARK}\": 1}}]"),
        format!("{{\"jsonrpc\": \"2.0\", \"{MARK}\""),
        MARK.to_owned(),
    ];
    let mut sent = 0;
    for authorization in std::iter::once(&good).chain(&bad) {
        for body in &bodies {
            let headers = [
                ("authorization", authorization.as_str()),
                ("cookie", MARK),
                ("proxy-authorization", MARK),
                ("x-api-key", MARK),
                ("mcp-session-id", &format!("{MARK:-^64}")),
                ("x-request-id", &format!("{MARK} {MARK}")),
                ("content-type", "application/json"),
            ];
            // A session that is not known ends a request early: half of them have none.
            let headers = if sent % 2 == 0 { &headers[..] } else { &headers[..4] };
            fixture.send(Method::POST, &format!("/mcp?key={MARK}"), headers, body.as_bytes()).await;
            sent += 1;
        }
        let headers = [("authorization", authorization.as_str()), ("accept", "text/event-stream")];
        fixture.send(Method::GET, &format!("/mcp?key={MARK}"), &headers, b"").await;
        sent += 1;
    }
    let page = fixture.send(Method::GET, "/metrics", &[], b"").await;
    fixture.end().await;
    drop(guard);

    let page = String::from_utf8(page.body.to_vec()).unwrap();
    let (log_text, audit_text) = (log.text(), fs::read_to_string(&audit).unwrap());
    fs::remove_file(&audit).unwrap();
    for (what, text) in
        [("log", &log_text), ("audit", &audit_text), ("metrics", &page), ("collector", &collector.text())]
    {
        let line = text.lines().find(|line| line.contains(MARK));
        assert!(line.is_none(), "{what}: {line:?}");
        assert!(what == "audit" || !text.contains(NAMED), "{what}");
        for token in good.split(' ').skip(1).chain(bad.iter().filter_map(|bad| bad.split(' ').nth(1))) {
            assert!(!text.contains(token), "{what}: {token}");
        }
    }
    assert!(!log_text.contains("for-the-collector"));
    // It was really looked at: each request has its line, and some went all the way.
    let lines = log.lines();
    let ended = lines.iter().filter(|line| line["fields"]["message"] == "request completed").count();
    assert!(ended > sent, "{ended} of {sent}");
    assert!(server.requests().iter().any(|request| request.header("x-forwarded-key") == Some(MARK)));
    assert!(!collector.spans().is_empty() && page.contains("toolhive_mcp_requests_total"));
    assert!(audit_text.lines().count() > 30, "{audit_text}");
}

#[tokio::test]
async fn every_line_about_a_request_has_its_id_and_so_have_the_server_and_the_client() {
    let log = Log::default();
    let guard = log.capture("skep_gateway=debug,skep_proxy=debug");
    let server = Server::start(|request| result(request, json!({}))).await;
    let policies = ["permit(principal, action, resource) unless { resource == Tool::\"forbidden\" };"];
    let document =
        json!({"version": "1.0", "type": "cedarv1", "cedar": {"policies": policies, "entities_json": "[]"}});
    let chain = json!([
        {"type": "auth", "parameters": {}},
        {"type": "authorization", "parameters": {"config_data": document}},
    ]);
    let fixture = Fixture::new(&server, chain).await;
    let tool = |name: &str| call("tools/call", json!({"name": name}));
    let given = fixture.post(&[("x-request-id", "from-the-client")], &tool("read")).await;
    let made = fixture.post(&[("x-request-id", "not a valid id")], &tool("read")).await;
    let denied = fixture.post(&[("x-request-id", "to-be-denied")], &tool("forbidden")).await;
    fixture.end().await;
    drop(guard);

    let id = |answer: &crate::fixture::Answer| answer.headers["x-request-id"].to_str().unwrap().to_owned();
    assert_eq!(id(&given), "from-the-client");
    assert!(regex::Regex::new("^[0-9a-f]{16}-[0-9a-f]+$").unwrap().is_match(&id(&made)), "{}", id(&made));
    let forwarded: Vec<_> =
        server.requests().iter().map(|request| request.header("x-request-id").unwrap().to_owned()).collect();
    assert_eq!(forwarded, [id(&given), id(&made)]);

    let lines = log.lines();
    let about = |line: &Value| -> Vec<String> {
        line["timestamp"].as_str().unwrap_or_default().split(' ').map(Into::into).collect()
    };
    let of = |id: &str, message: &str| {
        let line = lines.iter().find(|line| {
            line["fields"]["message"] == message && about(line)[0] == format!("request_id={id}")
        });
        line.unwrap_or_else(|| panic!("no {message:?} of {id} in {lines:#?}")).clone()
    };
    let line = of(&id(&given), "request completed");
    let fields = [&line["fields"]["method"], &line["fields"]["path"], &line["fields"]["status"]];
    assert_eq!(fields, [&json!("POST"), &json!("/mcp"), &json!(200)]);
    assert_eq!(about(&line)[1..], ["mcp_method=tools/call", "tool=read"]);
    assert!(line["fields"]["duration_ms"].is_u64());
    assert_eq!(line["level"], "DEBUG");
    assert_eq!(of(&id(&denied), "request completed")["fields"]["status"], 403);
    assert_eq!(of(&id(&denied), "request denied")["level"], "INFO");
}

#[tokio::test]
async fn a_failing_collector_is_logged_once_and_its_recovery_too() {
    let log = Log::default();
    let guard = log.capture("skep_gateway=info,skep_proxy=info");
    let count = AtomicUsize::new(0);
    let collector = Collector::with_script(move |_| {
        status(if count.fetch_add(1, Ordering::Relaxed) < 2 { 503 } else { 200 })
    });
    let (server, collector) = (super::server().await, collector.await);
    let fixture = Fixture::new(&server, super::middleware(telemetry(&collector, json!({})))).await;
    // More than is sent at once: two requests for traces, and one for metrics.
    for _ in 0..600 {
        fixture.post(&[], &super::tool("read")).await;
    }
    fixture.end().await;
    drop(guard);
    let lines = log.lines();
    let of = |level: &str| -> Vec<_> { lines.iter().filter(|line| line["level"] == level).collect() };
    let (warnings, infos) = (of("WARN"), of("INFO"));
    assert_eq!((warnings.len(), infos.len()), (1, 1), "{lines:#?}");
    assert_eq!(warnings[0]["fields"]["error"], "503 Service Unavailable");
    assert_eq!(infos[0]["fields"]["message"], "the collector is available again");
}
