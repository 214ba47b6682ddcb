//! The dashboard and the alerts query only metrics that the programs export, as shown by running them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use regex::Regex;
use serde_json::{Value, json};
use skep_api::kinds::MCPGroup;
use skep_operator::permissions;
use skep_testkit::free_port;

use super::root;

/// The timeout of waiting.
const PATIENCE: Duration = Duration::from_secs(60);
/// Labels that Prometheus adds, and that of histogram buckets.
const ADDED: [&str; 2] = ["le", "namespace"];

/// A program that ends with the test.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn start(command: &mut Command) -> Program {
    Program(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

fn response_to(port: u16, request: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream.write_all(request.as_bytes()).ok()?;
    let mut response = String::new();
    stream.read_to_string(&mut response).ok()?;
    Some(response)
}

/// The metrics page, once one of its lines starts with this.
fn scraped(port: u16, until: &str) -> String {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        let page = response_to(port, "GET /metrics HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n");
        if let Some(page) = page.filter(|page| page.lines().any(|line| line.starts_with(until))) {
            // Without it, Prometheus rejects the page.
            assert!(page.to_lowercase().contains("content-type: application/openmetrics-text"), "{page}");
            return page;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("there is never {until} on port {port}");
}

/// The names in a page, each with its labels.
fn exported(page: &str) -> BTreeMap<String, BTreeSet<String>> {
    let sample = Regex::new(r"^([a-z_]+)(?:\{(.*)\})? \S+$").unwrap();
    let label = Regex::new(r#"([a-z_]+)=""#).unwrap();
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for sample in page.lines().filter_map(|line| sample.captures(line)) {
        let labels = sample.get(2).map(|labels| labels.as_str()).unwrap_or_default();
        let labels = label.captures_iter(labels).map(|label| label[1].to_owned());
        all.entry(sample[1].to_owned()).or_default().extend(labels);
    }
    all
}

/// The metrics and labels that an expression queries.
fn metrics_and_labels(expression: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let grouping = Regex::new(r"\b(?:by|on|without|ignoring|group_left)\s*\(([^)]*)\)").unwrap();
    let selection = Regex::new(r"\{([^}]*)\}").unwrap();
    let matcher = Regex::new(r"(\w+)\s*(?:=|!)").unwrap();
    let mut labels = BTreeSet::new();
    for group in grouping.captures_iter(expression) {
        labels.extend(
            group[1].split(',').map(|label| label.trim().to_owned()).filter(|label| !label.is_empty()),
        );
    }
    for selected in selection.captures_iter(expression) {
        labels.extend(matcher.captures_iter(&selected[1]).map(|label| label[1].to_owned()));
    }
    let rest = grouping.replace_all(expression, "");
    let rest = selection.replace_all(&rest, "");
    let rest = Regex::new(r"\[[^\]]*\]").unwrap().replace_all(&rest, "").into_owned();
    // A name that is followed by a parenthesis is a function.
    let name = Regex::new(r"([a-zA-Z_]\w*)\s*(\(?)").unwrap();
    let names = name.captures_iter(&rest).filter(|name| name[2].is_empty());
    (names.map(|name| name[1].to_owned()).collect(), labels)
}

/// Every expression in a file, with the queries of dashboard variables.
fn expressions(value: &Value, all: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value.as_str() {
                    Some(text) if key == "expr" => all.push(text.into()),
                    Some(text) if key == "query" && text.starts_with("label_values(") => {
                        let (metric, label) =
                            text["label_values(".len()..].trim_end_matches(')').split_once(", ").unwrap();
                        all.push(format!("sum by ({label}) ({metric})"));
                    }
                    _ => expressions(value, all),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| expressions(item, all)),
        _ => {}
    }
}

/// The metrics of an operator that has reconciled an object.
async fn operator() -> BTreeMap<String, BTreeSet<String>> {
    let test = skep_testkit::namespace().await;
    let user = test.user("operator");
    test.grant(&user, permissions::rules()).await;
    test.create_object(&MCPGroup::new("team", Default::default())).await;
    let (port, health) = (free_port(), free_port());
    let _operator = start(
        Command::new(env!("CARGO_BIN_EXE_skep"))
            .args(["operator", "--namespaces", test.name()])
            .args(["--metrics-bind-address", &format!("127.0.0.1:{port}")])
            .args(["--health-probe-bind-address", &format!("127.0.0.1:{health}")])
            .env("KUBECONFIG", user.kubeconfig_file()),
    );
    exported(&scraped(port, "skep_operator_reconciles_total{"))
}

/// The metrics of a proxy that has forwarded a call.
fn proxy() -> BTreeMap<String, BTreeSet<String>> {
    let port = free_port();
    let manifests = [
        json!({
            "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPTelemetryConfig", "metadata": {"name": "page"},
            "spec": {"prometheus": {"enabled": true}},
        }),
        json!({
            "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer",
            "metadata": {"name": "demo", "annotations": {"skep.dev/local-command": "skep demo-server"}},
            "spec": {
                "image": "i", "transport": "stdio", "proxyPort": port, "telemetryConfigRef": {"name": "page"},
            },
        }),
    ];
    let file = Manifests::new(&manifests.map(|manifest| manifest.to_string()).join("\n---\n"));
    let _proxy = start(Command::new(env!("CARGO_BIN_EXE_skep")).args(["run", "-f"]).arg(&file.0));
    scraped(port, "# EOF");
    let post = |session: &str, body: Value| {
        let body = body.to_string();
        let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
                    accept: application/json, text/event-stream\r\n";
        let length = body.len();
        response_to(port, &format!("{head}{session}content-length: {length}\r\n\r\n{body}")).unwrap()
    };
    let greeting = post(
        "",
        json!({
            "jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
            },
        }),
    );
    let id = Regex::new(r"(?i)mcp-session-id: (\S+)").unwrap().captures(&greeting).expect("a session")[1]
        .to_owned();
    let session = format!("mcp-session-id: {id}\r\nmcp-protocol-version: 2025-11-25\r\n");
    post(&session, json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    post(
        &session,
        json!({
            "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "echo", "arguments": {"message": "m"}},
        }),
    );
    exported(&scraped(port, "toolhive_mcp_tool_calls_total{"))
}

/// A file of manifests that is removed with the test.
struct Manifests(PathBuf);

impl Manifests {
    fn new(text: &str) -> Self {
        let file = std::env::temp_dir().join(format!("skep-metrics-{}.yaml", std::process::id()));
        fs::write(&file, text).unwrap();
        Self(file)
    }
}

impl Drop for Manifests {
    fn drop(&mut self) {
        fs::remove_file(&self.0).ok();
    }
}

#[tokio::test]
async fn dashboard_and_alerts_query_metrics_that_the_programs_export() {
    let folder = root().join("docs/monitoring");
    let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap();
    let mut queries = Vec::new();
    expressions(&serde_json::from_str(&read("grafana-dashboard.json")).unwrap(), &mut queries);
    expressions(&serde_saphyr::from_str(&read("alerts.yaml")).unwrap(), &mut queries);
    assert!(queries.len() > 15, "{queries:?}");

    let operator = operator().await;
    let proxy = tokio::task::spawn_blocking(proxy).await.unwrap();
    for expression in queries {
        let (names, labels) = metrics_and_labels(&expression);
        assert!(!names.is_empty(), "{expression}");
        for name in names {
            let has = operator.get(&name).or_else(|| proxy.get(&name));
            let has = has.unwrap_or_else(|| panic!("{name} is not exported, for {expression}"));
            for label in labels.iter().filter(|label| !ADDED.contains(&label.as_str())) {
                assert!(has.contains(label), "{name} has no label {label}, for {expression}");
            }
        }
    }
    let page = fs::read_to_string(root().join("docs/operations.md")).unwrap();
    for name in operator.keys() {
        let name =
            ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        assert!(page.contains(&format!("| `{name}` |")), "docs/operations.md does not have {name}");
    }
}
