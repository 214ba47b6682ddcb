//! The server's process: it starts, crashes, restarts and ends.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use http::{Method, StatusCode};
use serde_json::{Value, json};
use skep_config::RunConfig;
use skep_proxy::Proxy;

use super::{
    client::Client,
    fake::{Act, Fake, ReceivedMessage},
};
use crate::fixture::{Fixture, call};

async fn health(fixture: &Fixture) -> (StatusCode, Value) {
    let answer = fixture.send(Method::GET, "/health", &[], b"").await;
    (answer.status, answer.json())
}

#[tokio::test]
async fn a_crashed_server_fails_requests_in_flight_and_is_initialized_again() {
    let fake = Fake::new(|received| match received.method() {
        "die" => vec![Act::Die],
        "wait" => Vec::new(),
        _ if received.json.get("id").is_some() => vec![received.result(json!({"run": received.run}))],
        _ => Vec::new(),
    });
    let fixture = fake.configured(json!({}), Duration::from_secs(20)).await;
    let client = Client::new(&fixture).await;
    client.call("resources/subscribe", json!({"uri": "file:///a"})).await;
    client.call("logging/setLevel", json!({"level": "warning"})).await;
    let mut waiting = client.stream(&call("wait", json!({}))).await;
    fake.received_method("wait").await;
    let start = Instant::now();
    let dead = client.post(&call("die", json!({}))).await;
    assert_eq!((dead.status, dead.json()["id"].clone()), (StatusCode::BAD_GATEWAY, json!(7)));
    assert_eq!(waiting.next().await.unwrap()["error"]["code"], -32603);
    assert!(start.elapsed() < Duration::from_secs(5), "at once");

    let answer = client.call("tools/list", json!({})).await;
    assert_eq!(answer["result"]["run"], 1, "the session continues with the new process");
    let received: Vec<_> = fake.received().into_iter().filter(|received| received.run == 1).collect();
    let methods: Vec<_> = received.iter().map(|received| received.method()).collect();
    let expected =
        ["initialize", "notifications/initialized", "resources/subscribe", "logging/setLevel", "tools/list"];
    assert_eq!(methods, expected);
    let first = &fake.received()[0].json;
    assert_eq!(received[0].json["params"], first["params"], "it is initialized like the first");
    assert_eq!(received[2].json["params"], json!({"uri": "file:///a"}));
    assert_eq!(received[3].json["params"], json!({"level": "warning"}));
}

/// More than wait for a server at once.
#[tokio::test]
async fn a_restarted_server_gets_every_subscription_and_the_log_level_back() {
    let fake = Fake::new(|received| match received.method() {
        "die" => vec![Act::Die],
        _ if received.json.get("id").is_some() => vec![received.result("{}")],
        _ => Vec::new(),
    });
    let fixture = fake.proxy().await;
    let client = Client::new(&fixture).await;
    let uris: BTreeSet<_> = (0..300).map(|number| format!("file:///{number}")).collect();
    for uri in &uris {
        client.call("resources/subscribe", json!({"uri": uri})).await;
    }
    client.call("logging/setLevel", json!({"level": "warning"})).await;
    client.post(&call("die", json!({}))).await;
    client.call("tools/list", json!({})).await;
    let received: Vec<_> = fake.received().into_iter().filter(|received| received.run == 1).collect();
    let subscribed: BTreeSet<_> = received
        .iter()
        .filter(|received| received.method() == "resources/subscribe")
        .map(|received| received.json["params"]["uri"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(subscribed, uris);
    let level = received.iter().find(|received| received.method() == "logging/setLevel").unwrap();
    assert_eq!(level.json["params"], json!({"level": "warning"}));
    assert_eq!(received.last().unwrap().method(), "tools/list", "clients come after");

    let session = [("mcp-session-id", client.session.as_str())];
    fixture.send(Method::DELETE, "/mcp", &session, b"").await;
    for uri in &uris {
        let is_end = |received: &ReceivedMessage| {
            received.method() == "resources/unsubscribe" && received.json["params"]["uri"] == **uri
        };
        fake.received_where(is_end).await;
    }
}

#[tokio::test]
async fn health_reports_the_state_of_the_server_without_a_request_to_it() {
    let fake = Fake::echo();
    let fixture = fake.proxy().await;
    Client::new(&fixture).await;
    let before = fake.received().len();
    let (status, report) = health(&fixture).await;
    assert_eq!(
        (status, &report["status"], &report["transport"], &report["mcp"]["available"]),
        (StatusCode::OK, &json!("healthy"), &json!("streamable-http"), &json!(true))
    );
    assert_eq!(fake.received().len(), before);

    let fixture = local(&["/does/not/exist"]).await;
    for _ in 0..500 {
        if health(&fixture).await.1["mcp"]["error"] == "the server cannot be started" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let (status, report) = health(&fixture).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "it has never been available");
    assert_eq!((&report["status"], &report["mcp"]["available"]), (&json!("starting"), &json!(false)));
    let answer = fixture.post(&[], &call("ping", json!({}))).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(answer.json()["error"]["message"], "the MCP server is unavailable");
}

async fn local(command: &[&str]) -> Fixture {
    let config =
        json!({"name": "files", "transport": "stdio", "cmd_args": command, "env_vars": {"OWN": "1"}});
    Fixture::of(&RunConfig::parse(&config.to_string()).unwrap()).await
}

/// Responds to each line with what `$body` prints.
fn script(body: &str) -> String {
    format!(
        r#"while read -r line; do
             id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p'); {body}
           done"#
    )
}

#[tokio::test]
async fn a_process_has_the_environment_of_the_run_config_and_none_of_the_proxys_secrets() {
    // Cargo sets this for tests; it represents the proxy's own variables.
    assert!(std::env::var("CARGO_MANIFEST_DIR").is_ok());
    let answer = r#"echo "standard error is logged" >&2
        printf '{"jsonrpc":"2.0","id":%s,"result":{"own":"%s","transport":"%s","other":"%s","path":"%s"}}\n' \
            "$id" "$OWN" "$MCP_TRANSPORT" "$CARGO_MANIFEST_DIR" "$PATH""#;
    let fixture = local(&["sh", "-c", &script(answer)]).await;
    let result = fixture.post(&[], &call("ping", json!({}))).await.json()["result"].clone();
    let path = std::env::var("PATH").unwrap();
    assert_eq!(result, json!({"own": "1", "transport": "stdio", "other": "", "path": path}));
}

#[tokio::test]
async fn a_process_that_ignores_signals_is_killed_with_its_children() {
    let stubborn = format!(
        "trap '' TERM; sleep 1000 & child=$!; {}\nwhile :; do sleep 1; done",
        script(r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"pids":[%s,%s]}}\n' "$id" $$ $child"#)
    );
    let fixture = local(&["sh", "-c", &stubborn]).await;
    let result = fixture.post(&[], &call("ping", json!({}))).await.json()["result"].clone();
    let pids: Vec<u64> = result["pids"].as_array().unwrap().iter().map(|pid| pid.as_u64().unwrap()).collect();
    assert!(pids.iter().all(|pid| is_running(*pid)));
    drop(fixture);
    for _ in 0..2_000 {
        if !pids.iter().any(|pid| is_running(*pid)) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{pids:?} are left");
}

fn is_running(pid: u64) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => !stat.rsplit(") ").next().unwrap().starts_with('Z'),
        Err(_) => false,
    }
}

#[tokio::test]
async fn a_process_that_ends_is_restarted() {
    let once = script(r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"pid":%s}}\n' "$id" $$; exit 0"#);
    let fixture = local(&["sh", "-c", &once]).await;
    let mut pids = std::collections::BTreeSet::new();
    while pids.len() < 3 {
        let answer = fixture.post(&[], &call("ping", json!({}))).await;
        if answer.status == StatusCode::OK {
            pids.insert(answer.json()["result"]["pid"].as_u64().unwrap());
        } else {
            // It was sent to one that was about to end.
            assert_eq!(answer.status, StatusCode::BAD_GATEWAY);
        }
    }
}

#[test]
fn a_stdio_server_needs_a_command_line_or_a_cluster() {
    let error = |config: Value| {
        let config = RunConfig::parse(&config.to_string()).unwrap();
        Proxy::new(&config).err().unwrap().to_string()
    };
    let message = error(json!({"name": "a", "transport": "stdio"}));
    assert!(message.starts_with("cmd_args: "), "{message}");
    let message = error(json!({"name": "a", "transport": "stdio", "image": "i", "cmd_args": ["x"]}));
    assert!(message.starts_with("image: "), "{message}");
    let message = error(json!({"name": "a", "transport": "stdio", "cmd_args": ["x"], "stateless": true}));
    assert!(message.starts_with("stateless: "), "{message}");
}
