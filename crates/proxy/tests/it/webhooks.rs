//! Webhooks. Each test scripts a fake.

use std::{fs, sync::Mutex};

use bytes::Bytes;
use futures::future::join_all;
use http::{Response, StatusCode};
use serde_json::{Value, json};
use skep_auth::hmac_hex;
use skep_config::RunConfig;
use skep_proxy::{Proxy, limits};
use skep_testkit::IdentityProvider;
use tokio::net::TcpListener;

use crate::{
    fake_https::{Certificates, FakeHttps},
    fixture::{
        Answer, Fixture, ReceivedRequest, Server, call, eventually, json_response, never, result, status,
    },
};

/// The response of a webhook.
type Script = fn() -> Response<Bytes>;

/// A webhook without encryption, as those within a cluster may be.
fn hook(server: &Server, changes: Value) -> Value {
    let mut hook = json!({
        "name": "hook", "url": format!("http://{}/review", server.address), "failure_policy": "fail",
        "timeout": 30_000_000_000_u64, "tls_config": {"insecure_skip_verify": true},
    });
    hook.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    hook
}

fn middleware(kind: &str, hooks: &[Value]) -> Value {
    json!({"type": kind, "parameters": {
        "webhooks": hooks, "server_name": "files", "transport": "streamable-http",
    }})
}

fn validating(hooks: &[Value]) -> Value {
    json!([{"type": "auth"}, middleware("validating-webhook", hooks)])
}

fn mutating(hooks: &[Value]) -> Value {
    json!([{"type": "auth"}, middleware("mutating-webhook", hooks)])
}

async fn backend() -> Server {
    Server::start(|request| result(request, json!({}))).await
}

fn patch(operations: Value) -> Response<Bytes> {
    json_response(json!({
        "version": "v0.1.0", "uid": "u", "allowed": true, "patch_type": "json_patch", "patch": operations,
    }))
}

fn tool() -> String {
    call("tools/call", json!({"name": "read", "arguments": {"path": "/a"}}))
}

fn outcome(answer: &Answer) -> (StatusCode, Value, Value, Value) {
    let json = answer.json();
    (answer.status, json["id"].clone(), json["error"]["code"].clone(), json["error"]["message"].clone())
}

#[tokio::test]
async fn the_payload_has_the_caller_the_context_and_the_message_byte_for_byte() {
    let provider = IdentityProvider::start().await;
    let webhook = Server::start(|_| json_response(json!({"allowed": true}))).await;
    let server = backend().await;
    let chain = json!([
        {"type": "auth", "parameters": {"oidc_config": provider.oidc(json!({}))}},
        middleware("validating-webhook", &[hook(&webhook, json!({})), hook(&webhook, json!({"name": "second"}))]),
    ]);
    let fixture = Fixture::new(&server, chain).await;
    let claims =
        json!({"name": "Alice", "email": "a@b", "act": {"sub": "agent", "client_id": "c"}, "tsid": "t"});
    let token = format!("Bearer {}", provider.token(claims.clone()));
    let odd = r#"{ "params":{"name":"re\u0061d","arguments":{"n":1.50}},"id":"\u0061","jsonrpc":"2.0" ,"method":"tools/call"}"#;
    assert_eq!(fixture.post(&[("authorization", &token)], odd).await.status, StatusCode::OK);
    assert_eq!(&*server.requests()[0].body, odd.as_bytes());
    let requests = webhook.requests();
    assert_eq!(requests.len(), 2);
    let text = String::from_utf8(requests[0].body.to_vec()).unwrap();
    assert!(text.contains(&format!("\"mcp_request\":{odd},")), "{text}");
    assert!(!text.contains(&token["Bearer ".len()..]) && !text.contains("tsid"), "{text}");
    let payload = requests[0].json();
    assert_eq!(
        (requests[0].path.as_str(), requests[0].header("content-type")),
        ("/review", Some("application/json"))
    );
    assert_eq!(requests[0].header("x-toolhive-signature"), None);
    assert_eq!(payload["version"], "v0.1.0");
    assert!(payload["timestamp"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok());
    let principal = &payload["principal"];
    assert_eq!((&principal["sub"], &principal["name"]), (&json!("alice"), &json!("Alice")));
    assert_eq!(principal["claims"]["email"], "a@b");
    assert_eq!(principal["delegation"], json!([{"sub": "agent", "client_id": "c"}]));
    assert_eq!(payload["context"]["server_name"], "files");
    assert_eq!(payload["context"]["transport"], "streamable-http");
    assert!(payload["context"]["source_ip"].as_str().unwrap().starts_with("127.0.0.1:"));
    assert_eq!(payload["uid"], requests[1].json()["uid"], "all receive the same payload");
}

#[tokio::test]
async fn a_request_that_a_validating_webhook_does_not_allow_is_denied() {
    let server = backend().await;
    let verdicts: [(Script, &str, bool); 11] = [
        (|| json_response(json!({"allowed": true, "patch": [], "new": 1})), "fail", true),
        (|| json_response(json!({"allowed": false, "code": 418, "message": "no"})), "fail", false),
        (|| json_response(json!({"allowed": false})), "ignore", false),
        (|| json_response(json!({})), "ignore", false),
        (|| status(422), "ignore", false),
        (|| status(500), "fail", false),
        (|| status(500), "ignore", true),
        (|| status(204), "fail", false),
        (|| json_response(json!({"allowed": "yes"})), "fail", false),
        (|| json_response(json!({"allowed": true, "message": "x".repeat(1 << 20)})), "fail", false),
        (|| json_response(json!([])), "ignore", true),
    ];
    let mut passed = 0;
    for (number, (script, policy, passes)) in verdicts.into_iter().enumerate() {
        let webhook = Server::start(move |_| script()).await;
        let fixture =
            Fixture::new(&server, validating(&[hook(&webhook, json!({"failure_policy": policy}))])).await;
        let answer = fixture.post(&[], &tool()).await;
        if passes {
            passed += 1;
            assert_eq!(answer.status, StatusCode::OK, "{number}");
        } else {
            let denied = (StatusCode::FORBIDDEN, json!(7), json!(403), json!("Request denied by policy"));
            assert_eq!(outcome(&answer), denied, "{number}");
        }
        assert_eq!(server.requests().len(), passed, "{number}");
    }
}

#[tokio::test]
async fn the_failure_policy_applies_to_an_unavailable_webhook() {
    let server = backend().await;
    let stopped = Server::stopped();
    // It accepts connections and never responds.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = format!("http://{}/", silent.local_addr().unwrap());
    for url in [format!("http://{}/", stopped.address), silent] {
        for (policy, validating_status, mutating_status) in [("fail", 403, 500), ("ignore", 200, 200)] {
            let one = || hook(&stopped, json!({"url": url, "failure_policy": policy, "timeout": "1s"}));
            let fixture = Fixture::new(&server, validating(&[one()])).await;
            assert_eq!(fixture.post(&[], &tool()).await.status, validating_status, "{url} {policy}");
            let fixture = Fixture::new(&server, mutating(&[one()])).await;
            let answer = fixture.post(&[], &tool()).await;
            assert_eq!(answer.status, mutating_status, "{url} {policy}");
            if mutating_status == 500 {
                assert_eq!(answer.json()["error"]["code"], -32603);
            }
        }
    }
}

/// The attack: a caller makes a webhook fail whose failures are ignored, by as many requests as it takes.
#[tokio::test]
async fn a_caller_cannot_have_a_webhook_skipped_by_a_flood() {
    for chain in [validating, mutating] {
        let webhook =
            Server::start(|request| match request.json()["mcp_request"]["params"]["name"].as_str() {
                Some("slow") => never(),
                _ => json_response(json!({"allowed": false})),
            })
            .await;
        let server = backend().await;
        let ignored = hook(&webhook, json!({"failure_policy": "ignore", "timeout": "2s"}));
        let fixture = Fixture::new(&server, chain(&[ignored])).await;
        let named = |name: &str| call("tools/call", json!({"name": name}));
        let slow = named("slow");
        let flood = join_all((0..2 * limits::SERVICE_REQUESTS).map(|_| fixture.post(&[], &slow)));
        let evil = async {
            let has_places = || webhook.requests().len() >= limits::SERVICE_REQUESTS_OF_A_CALLER;
            eventually("the flood has its places", async || has_places()).await;
            fixture.post(&[], &named("evil")).await.status
        };
        let (_, status) = tokio::join!(flood, evil);
        // It waits for a place in vain, or is reviewed.
        assert!([StatusCode::SERVICE_UNAVAILABLE, StatusCode::FORBIDDEN].contains(&status), "{status}");
        let seen = server.requests();
        assert!(seen.iter().all(|request| request.json()["params"]["name"] == "slow"));
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Server::start(|_| json_response(json!({"allowed": true}))).await;
    let location = format!("http://{}/", elsewhere.address);
    let webhook = Server::start(move |_| {
        Response::builder().status(307).header("location", &location).body(Bytes::new()).unwrap()
    })
    .await;
    let server = backend().await;
    let fixture = Fixture::new(&server, validating(&[hook(&webhook, json!({}))])).await;
    assert_eq!(fixture.post(&[], &tool()).await.status, StatusCode::FORBIDDEN);
    assert!(elsewhere.requests().is_empty());
}

#[tokio::test]
async fn each_mutating_webhook_receives_the_changes_of_those_before_it() {
    let first = Server::start(|_| {
        patch(json!([
            {"op": "add", "path": "/mcp_request/params/arguments/user", "value": "alice"},
            {"op": "replace", "path": "/mcp_request/params/arguments/path", "value": "/safe"},
        ]))
    })
    .await;
    let second = Server::start(|request| {
        let user = &request.json()["mcp_request"]["params"]["arguments"]["user"];
        patch(json!([{"op": "add", "path": "/mcp_request/params/arguments/seen", "value": user}]))
    })
    .await;
    let server = backend().await;
    let chain = mutating(&[hook(&first, json!({})), hook(&second, json!({"name": "second"}))]);
    let fixture = Fixture::new(&server, chain).await;
    let odd = r#"{ "id":"\u0061", "method":"tools/call","jsonrpc":"2.0","params":{"name":"read","arguments":{"path":"/a","big":12345678901234567890123}}}"#;
    let answer = fixture.post(&[], odd).await;
    assert_eq!((answer.status, &answer.json()["id"]), (StatusCode::OK, &json!("a")));
    let sent = r#"{"id":"\u0061","method":"tools/call","jsonrpc":"2.0","params":{"name":"read","arguments":{"path":"/safe","big":12345678901234567890123,"user":"alice","seen":"alice"}}}"#;
    let request = &server.requests()[0];
    assert_eq!(String::from_utf8_lossy(&request.body), sent);
    assert_eq!(request.header("content-length"), Some(sent.len().to_string().as_str()));
    assert_ne!(first.requests()[0].json()["uid"], second.requests()[0].json()["uid"]);
}

#[tokio::test]
async fn headers_that_mirror_arguments_go_if_a_webhook_changes_these() {
    let webhook = Server::start(|request| {
        let is_secret = request.json()["mcp_request"]["params"]["arguments"]["path"] == "/secret";
        let safe = json!([{"op": "replace", "path": "/mcp_request/params/arguments/path", "value": "/a"}]);
        let other = json!([{"op": "add", "path": "/mcp_request/params/_meta", "value": {"seen": true}}]);
        patch(if is_secret { safe } else { other })
    })
    .await;
    let server = backend().await;
    let fixture = Fixture::new(&server, mutating(&[hook(&webhook, json!({}))])).await;
    for path in ["/a", "/secret"] {
        let sent = call("tools/call", json!({"name": "read", "arguments": {"path": path}}));
        let answer = fixture.post(&[("mcp-param-path", path)], &sent).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.json());
    }
    let seen: Vec<_> =
        server.requests().iter().map(|request| request.header("mcp-param-path").map(str::to_owned)).collect();
    assert_eq!(seen, [Some("/a".to_owned()), None]);
}

#[tokio::test]
async fn inner_middlewares_decide_about_the_changed_request() {
    let webhook = Server::start(|request| {
        let name = &request.json()["mcp_request"]["params"]["arguments"]["call"];
        patch(json!([{"op": "replace", "path": "/mcp_request/params/name", "value": name}]))
    })
    .await;
    let server = backend().await;
    let policies = [r#"permit(principal, action, resource == Tool::"read");"#];
    let document =
        json!({"version": "1.0", "type": "cedarv1", "cedar": {"policies": policies, "entities_json": "[]"}});
    let mut chain = mutating(&[hook(&webhook, json!({}))]);
    chain
        .as_array_mut()
        .unwrap()
        .push(json!({"type": "authorization", "parameters": {"config_data": document}}));
    let fixture = Fixture::new(&server, chain).await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    });
    for (from, to, expected) in [("write", "read", 200), ("read", "write", 403)] {
        let body = call("tools/call", json!({"name": from, "arguments": {"call": to}, "_meta": meta}));
        let headers =
            [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", from)];
        assert_eq!(fixture.post(&headers, &body).await.status, expected, "{from} to {to}");
    }
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(
        (requests[0].header("mcp-name"), &requests[0].json()["params"]["name"]),
        (Some("read"), &json!("read"))
    );
}

#[tokio::test]
async fn the_failure_policy_applies_to_an_invalid_patch() {
    let server = backend().await;
    let replace = |path: &str, value: Value| json!({"patch_type": "json_patch", "patch": [{"op": "replace", "path": path, "value": value}]});
    let answers = [
        replace("/mcp_request/id", json!(8)),
        replace("/mcp_request/method", json!("tools/list")),
        replace("/mcp_request/jsonrpc", json!("1.0")),
        replace("/mcp_request", json!({})),
        replace("/principal/sub", json!("root")),
        replace("/mcp_request/params/none", json!(1)),
        replace("/mcp_request/params/name", json!(7)),
        replace("/mcp_request/params/_meta", json!([])),
        json!({"patch_type": "merge", "patch": [{"op": "remove", "path": "/mcp_request/params"}]}),
        json!({"patch": [{"op": "remove", "path": "/mcp_request/params"}]}),
        json!({"patch_type": "json_patch", "patch": "remove"}),
    ];
    for (number, answer) in answers.into_iter().enumerate() {
        for policy in ["fail", "ignore"] {
            let mut answer = answer.clone();
            answer["allowed"] = json!(true);
            let webhook = Server::start(move |_| json_response(answer.clone())).await;
            let chain = mutating(&[hook(&webhook, json!({"failure_policy": policy}))]);
            let before = server.requests().len();
            let answer = Fixture::new(&server, chain).await.post(&[], &tool()).await;
            if policy == "fail" {
                let failed =
                    (StatusCode::INTERNAL_SERVER_ERROR, json!(7), json!(-32603), json!("internal error"));
                assert_eq!((outcome(&answer), server.requests().len()), (failed, before), "{number}");
            } else {
                assert_eq!(answer.status, StatusCode::OK, "{number}");
                assert_eq!(server.requests()[before].body, tool().as_bytes(), "{number}");
            }
        }
    }
}

#[tokio::test]
async fn a_mutating_webhook_may_deny_a_request() {
    let server = backend().await;
    let verdicts: [(Script, StatusCode); 2] = [
        (|| json_response(json!({"allowed": false, "patch_type": "json_patch"})), StatusCode::FORBIDDEN),
        (|| status(422), StatusCode::UNPROCESSABLE_ENTITY),
    ];
    for (script, code) in verdicts {
        let webhook = Server::start(move |_| script()).await;
        let fixture =
            Fixture::new(&server, mutating(&[hook(&webhook, json!({"failure_policy": "ignore"}))])).await;
        let answer = fixture.post(&[], &tool()).await;
        assert_eq!(outcome(&answer), (code, json!(7), json!(403), json!("Request denied by webhook policy")));
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn ambiguous_and_too_large_messages_are_rejected() {
    let webhook = Server::start(|_| json_response(json!({"allowed": true}))).await;
    let server = backend().await;
    for chain in [validating(&[hook(&webhook, json!({}))]), mutating(&[hook(&webhook, json!({}))])] {
        let fixture = Fixture::new(&server, chain).await;
        let twice = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","arguments":{"p":1,"p":2}}}"#;
        assert_eq!(fixture.post(&[], twice).await.status, StatusCode::BAD_REQUEST);
        let large = call("tools/call", json!({"name": "a", "arguments": {"text": "x".repeat(1 << 20)}}));
        let answer = fixture.post(&[], &large).await;
        assert_eq!(
            (answer.status, &answer.json()["error"]["code"]),
            (StatusCode::PAYLOAD_TOO_LARGE, &json!(-32600))
        );
        // A response requests nothing, so there is nothing to review.
        let response = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        assert_eq!(fixture.post(&[], response).await.status, StatusCode::OK);
    }
    assert!(webhook.requests().is_empty());
    assert_eq!(server.requests().len(), 2);
}

/// The signature that a webhook would compute.
fn signature(request: &ReceivedRequest, secret: &[u8]) -> String {
    let time = request.header("x-toolhive-timestamp").unwrap();
    time.parse::<i64>().unwrap();
    format!("sha256={}", hmac_hex(secret, &[time.as_bytes(), b".", &request.body]).unwrap())
}

#[tokio::test]
async fn a_payload_is_signed_with_the_current_secret() {
    let webhook = Server::start(|_| json_response(json!({"allowed": true}))).await;
    let server = backend().await;
    let certificates = Certificates::new();
    let path = certificates.path("hmac");
    fs::write(&path, "old\n").unwrap();
    let fixture =
        Fixture::new(&server, validating(&[hook(&webhook, json!({"hmac_secret_ref": path}))])).await;
    assert_eq!(fixture.post(&[], &tool()).await.status, StatusCode::OK);
    fs::write(&path, b"new\xff").unwrap();
    assert_eq!(fixture.post(&[], &tool()).await.status, StatusCode::OK);
    let requests = webhook.requests();
    assert_eq!(requests[0].header("x-toolhive-signature"), Some(signature(&requests[0], b"old\n").as_str()));
    assert_eq!(
        requests[1].header("x-toolhive-signature"),
        Some(signature(&requests[1], b"new\xff").as_str())
    );
    // No payload is sent unsigned.
    fs::write(&path, "").unwrap();
    assert_eq!(fixture.post(&[], &tool()).await.status, StatusCode::FORBIDDEN);
    assert_eq!(webhook.requests().len(), 2);
}

#[tokio::test]
async fn tls_verifies_the_webhook_and_presents_a_client_certificate() {
    let (certificates, others) = (Certificates::new(), Certificates::new());
    let server = backend().await;
    let allows = |_: &ReceivedRequest| json_response(json!({"allowed": true}));
    let open = FakeHttps::start(&certificates, false, allows).await;
    let strict = FakeHttps::start(&certificates, true, allows).await;
    let both = |of: &Certificates| {
        json!({
            "ca_bundle_path": certificates.path("ca.crt"),
            "client_cert_path": of.path("tls.crt"), "client_key_path": of.path("tls.key"),
        })
    };
    for (what, webhook, tls, expected) in [
        ("its authority", &open, json!({"ca_bundle_path": certificates.path("ca.crt")}), 200),
        ("another authority", &open, json!({"ca_bundle_path": others.path("ca.crt")}), 403),
        ("the system's authorities", &open, json!({}), 403),
        ("no verification", &open, json!({"insecure_skip_verify": true}), 200),
        ("a client certificate", &strict, both(&certificates), 200),
        ("a certificate of another authority", &strict, both(&others), 403),
        ("no certificate", &strict, json!({"ca_bundle_path": certificates.path("ca.crt")}), 403),
    ] {
        let hook = json!({"name": "hook", "url": webhook.url("/review"), "tls_config": tls});
        let fixture = Fixture::new(&server, validating(&[hook])).await;
        assert_eq!(fixture.post(&[], &tool()).await.status, expected, "{what}");
    }
}

#[tokio::test]
async fn connections_are_reused() {
    let certificates = Certificates::new();
    let webhook = FakeHttps::start(&certificates, false, |_| json_response(json!({"allowed": true}))).await;
    let server = backend().await;
    let tls = json!({"ca_bundle_path": certificates.path("ca.crt")});
    let hook = json!({"name": "hook", "url": webhook.url("/review"), "tls_config": tls});
    let fixture = Fixture::new(&server, validating(&[hook])).await;
    for _ in 0..5 {
        assert_eq!(fixture.post(&[], &tool()).await.status, StatusCode::OK);
    }
    assert_eq!((webhook.requests().len(), webhook.connections()), (5, 1));
}

#[tokio::test]
async fn an_invalid_webhook_is_an_error_that_names_its_position() {
    let certificates = Certificates::new();
    let empty = certificates.path("empty");
    fs::write(&empty, "").unwrap();
    let base = json!({"name": "a", "url": "https://h.example"});
    for (changes, message) in [
        (json!({"name": ""}), "name: give the webhook a name"),
        (json!({"url": "h.example"}), "url: \"h.example\" is not a URL"),
        (json!({"url": "http://h.example"}), "url: \"http://h.example\" is not encrypted: use https"),
        (json!({"timeout": "31s"}), "timeout: it must be from 1s to 30s"),
        (json!({"timeout": "999ms"}), "timeout: it must be from 1s to 30s"),
        (json!({"tls_config": {"ca_bundle_path": "/none"}}), "tls_config: ca_bundle_path: /none: "),
        (
            json!({"tls_config": {"ca_bundle_path": certificates.path("tls.key")}}),
            "tls_config: ca_bundle_path: ",
        ),
        (
            json!({"tls_config": {"client_cert_path": certificates.path("tls.crt")}}),
            "tls_config: client_cert_path and client_key_path: ",
        ),
        (
            json!({"tls_config": {
                "client_cert_path": certificates.path("tls.crt"), "client_key_path": certificates.path("tls.crt"),
            }}),
            "tls_config: client_key_path: ",
        ),
        (json!({"hmac_secret_ref": "/none"}), "hmac_secret_ref: /none cannot be read, or is empty"),
        (json!({"hmac_secret_ref": empty}), "hmac_secret_ref: "),
        (
            json!({"hmac_secret_ref": "not-there"}),
            "hmac_secret_ref: the environment variable TOOLHIVE_SECRET_not-there is missing",
        ),
    ] {
        let mut hook = base.clone();
        hook.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        for kind in ["validating-webhook", "mutating-webhook"] {
            let config = json!({
                "name": "files", "transport": "streamable-http", "target_port": 1,
                "middleware_configs": [middleware(kind, &[base.clone(), hook.clone()])],
            });
            let config = RunConfig::parse(&config.to_string()).unwrap();
            let error = Proxy::new(&config).err().unwrap().to_string();
            let name = hook["name"].as_str().unwrap();
            assert!(error.starts_with(&format!("{kind}: webhooks[1] ({name:?}): {message}")), "{error}");
        }
    }
}

#[tokio::test]
async fn a_webhook_that_fails_is_called_again_for_the_next_request() {
    static FAILURES: Mutex<usize> = Mutex::new(0);
    let webhook = Server::start(|_| {
        let mut failures = FAILURES.lock().unwrap();
        *failures += 1;
        if *failures % 2 == 1 { status(503) } else { json_response(json!({"allowed": true})) }
    })
    .await;
    let server = backend().await;
    let fixture = Fixture::new(&server, validating(&[hook(&webhook, json!({}))])).await;
    for expected in [403, 200, 403, 200] {
        assert_eq!(fixture.post(&[], &tool()).await.status, expected);
    }
}
