//! Session ids that carry an `initialize`, written by clients themselves.

use std::sync::Mutex;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    audit::{Log, middleware as audited},
    fixture::{
        Fixture, Server, call, initialize, initialize_response, json_response, result, session_id, status,
    },
};

/// An id that carries this message.
fn forged(message: &str) -> String {
    format!("forged~{}", URL_SAFE_NO_PAD.encode(message))
}

fn initialize_as(client: &str) -> String {
    let client = json!({"name": client, "version": "1"});
    call("initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}))
}

/// A server that knows the sessions that it started.
async fn server() -> Server {
    let known = Mutex::new(Vec::new());
    Server::start(move |request| {
        let mut known = known.lock().unwrap();
        let id = request.header("mcp-session-id").unwrap_or_default().to_owned();
        match request.json()["method"].as_str() {
            Some("initialize") => {
                let id = format!("s-{}", known.len());
                known.push(id.clone());
                initialize_response(request, &id)
            }
            _ if !known.contains(&id) => status(404),
            _ => result(request, json!({})),
        }
    })
    .await
}

fn starts(server: &Server) -> usize {
    server.requests().iter().filter(|request| request.json()["method"] == "initialize").count()
}

/// A webhook that allows every client but one.
async fn webhook() -> (Server, Value) {
    let hook = Server::start(|request| {
        let client = &request.json()["mcp_request"]["params"]["clientInfo"]["name"];
        json_response(json!({"allowed": client != "evil"}))
    })
    .await;
    let config = json!({
        "name": "hook", "url": format!("http://{}/", hook.address), "failure_policy": "fail",
        "timeout": 30_000_000_000_u64, "tls_config": {"insecure_skip_verify": true},
    });
    let parameters = json!({"webhooks": [config], "server_name": "files", "transport": "streamable-http"});
    (hook, parameters)
}

#[tokio::test]
async fn a_carried_initialize_cannot_pass_a_webhook_that_denies_it() {
    let (hook, parameters) = webhook().await;
    for kind in ["validating-webhook", "mutating-webhook"] {
        let server = server().await;
        let chain = json!([{"type": "auth"}, {"type": kind, "parameters": parameters}]);
        let fixture = Fixture::new(&server, chain).await;
        assert_eq!(fixture.post(&[], &initialize_as("evil")).await.status, StatusCode::FORBIDDEN);
        let list = call("tools/list", json!({}));
        let id = forged(&initialize_as("evil"));
        let answer = fixture.post(&[("mcp-session-id", &id)], &list).await;
        assert_eq!((answer.status.as_u16(), &answer.json()["error"]["code"]), (404, &json!(-32001)));
        assert_eq!(starts(&server), 0, "{kind}");

        let before = hook.requests().len();
        let id = forged(&initialize_as("good"));
        assert_eq!(fixture.post(&[("mcp-session-id", &id)], &list).await.status, StatusCode::OK);
        assert_eq!((hook.requests().len(), starts(&server)), (before + 2, 1), "it reviewed both: {kind}");
    }
}

#[tokio::test]
async fn a_webhook_changes_a_carried_initialize_like_a_received_one() {
    let hook = Server::start(|request| {
        let patch =
            json!([{"op": "replace", "path": "/mcp_request/params/clientInfo/name", "value": "safe"}]);
        let starts = request.json()["mcp_request"]["method"] == "initialize";
        let patch = if starts { patch } else { json!([]) };
        json_response(json!({"allowed": true, "patch_type": "json_patch", "patch": patch}))
    })
    .await;
    let config = json!({
        "name": "hook", "url": format!("http://{}/", hook.address), "failure_policy": "fail",
        "timeout": 30_000_000_000_u64, "tls_config": {"insecure_skip_verify": true},
    });
    let parameters = json!({"webhooks": [config], "server_name": "files", "transport": "streamable-http"});
    let server = server().await;
    let chain = json!([{"type": "auth"}, {"type": "mutating-webhook", "parameters": parameters}]);
    let fixture = Fixture::new(&server, chain).await;
    let id = session_id(&fixture.post(&[], &initialize_as("one")).await);
    assert_eq!(id, "s-0", "a client does not see the changes of the webhook");
    let id = forged(&initialize_as("two"));
    let answer = fixture.post(&[("mcp-session-id", &id)], &call("tools/list", json!({}))).await;
    assert_eq!(answer.status, StatusCode::OK);
    let names = server.requests().into_iter().filter(|request| request.json()["method"] == "initialize");
    let names: Vec<_> = names.map(|request| request.json()["params"]["clientInfo"]["name"].clone()).collect();
    assert_eq!(names, ["safe", "safe"]);
}

#[tokio::test]
async fn a_carried_initialize_is_in_the_audit_log() {
    let log = Log::new("restored");
    let server = server().await;
    let fixture = Fixture::new(&server, audited(&log, json!({"includeRequestData": true}))).await;
    let id = forged(&initialize_as("client-1"));
    assert_eq!(
        fixture.post(&[("mcp-session-id", &id)], &call("tools/list", json!({}))).await.status,
        StatusCode::OK
    );
    let entries = log.entries(2).await;
    let types: Vec<_> = entries.iter().map(|entry| entry["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["mcp_initialize", "mcp_tools_list"]);
    assert_eq!(entries[0]["outcome"], "success");
    assert_eq!(entries[0]["data"]["request"]["params"]["clientInfo"]["name"], "client-1");
}

#[tokio::test]
async fn an_id_carries_an_initialize_and_nothing_else() {
    let server = server().await;
    let fixture = Fixture::new(&server, json!([])).await;
    let twice = initialize().replacen('{', r#"{"method":"tools/call","#, 1);
    let notification = json!({"jsonrpc": "2.0", "method": "initialize", "params": {}}).to_string();
    let batch = format!("[{}]", initialize());
    for message in
        [&call("tools/call", json!({"name": "pay"})), &twice, &notification, &batch, "", "{}", "null"]
    {
        for id in [forged(message), format!("{}=", forged(message))] {
            let answer = fixture.post(&[("mcp-session-id", &id)], &call("tools/list", json!({}))).await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{message}");
        }
    }
    let methods: Vec<_> = server.requests().iter().map(|request| request.json()["method"].clone()).collect();
    // A ping shows that the server does not know the session.
    assert!(methods.iter().all(|method| method == "tools/list" || method == "ping"), "{methods:?}");
}

#[tokio::test]
async fn ending_a_session_that_was_never_started_starts_none() {
    let server = server().await;
    let fixture = Fixture::new(&server, json!([])).await;
    let id = forged(&initialize());
    let within = [("mcp-session-id", &*id)];
    assert_eq!(fixture.send(Method::DELETE, "/mcp", &within, b"").await.status, StatusCode::NOT_FOUND);
    let list = call("tools/list", json!({}));
    assert_eq!(fixture.post(&within, &list).await.status, StatusCode::NOT_FOUND, "it has ended");
    assert_eq!(starts(&server), 0);
}

/// A session of an authenticated caller is known only to the proxy that started it.
#[tokio::test]
async fn an_id_of_an_authenticated_caller_carries_nothing() {
    let provider = skep_testkit::IdentityProvider::start().await;
    let server = server().await;
    let auth = json!([{"type": "auth", "parameters": {"oidc_config": provider.oidc(json!({}))}}]);
    let fixture = Fixture::new(&server, auth).await;
    let bearer = format!("Bearer {}", provider.token(json!({"sub": "alice"})));
    let bearer = ("authorization", bearer.as_str());
    assert_eq!(session_id(&fixture.post(&[bearer], &initialize()).await), "s-0");
    let before = server.requests().len();
    for id in [forged(&initialize()), format!("s-0{}", &forged(&initialize())["forged".len()..])] {
        let answer = fixture.post(&[bearer, ("mcp-session-id", &id)], &call("tools/list", json!({}))).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND);
    }
    assert_eq!(server.requests().len(), before);
}
