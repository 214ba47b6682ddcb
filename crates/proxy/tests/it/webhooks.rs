//! Services that have a say about requests. What stands in for them is scripted by each test.

use std::{fs, sync::Mutex};

use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::{Value, json};
use skep_auth::hmac_hex;
use skep_config::RunConfig;
use skep_proxy::Proxy;
use skep_testkit::IdentityProvider;
use tokio::net::TcpListener;

use crate::{
    fake_https::{Certificates, FakeHttps},
    fixture::{Answer, Fixture, Got, Server, answered, call, result, status},
};

/// What a webhook says.
type Script = fn() -> Response<Bytes>;

/// A webhook without encryption, as those within a cluster may be.
fn hook(server: &Server, changes: Value) -> Value {
    let mut hook = json!({
        "name": "hook", "url": format!("http://{}/ask", server.address), "failure_policy": "fail",
        "timeout": 30_000_000_000_u64, "tls_config": {"insecure_skip_verify": true},
    });
    hook.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    hook
}

fn layer(kind: &str, hooks: &[Value]) -> Value {
    json!({"type": kind, "parameters": {
        "webhooks": hooks, "server_name": "files", "transport": "streamable-http",
    }})
}

fn validating(hooks: &[Value]) -> Value {
    json!([{"type": "auth"}, layer("validating-webhook", hooks)])
}

fn mutating(hooks: &[Value]) -> Value {
    json!([{"type": "auth"}, layer("mutating-webhook", hooks)])
}

async fn backend() -> Server {
    Server::start(|got| result(got, json!({}))).await
}

fn patch(operations: Value) -> Response<Bytes> {
    answered(json!({
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
async fn a_webhook_is_told_who_asks_for_what_and_the_message_byte_for_byte() {
    let provider = IdentityProvider::start().await;
    let webhook = Server::start(|_| answered(json!({"allowed": true}))).await;
    let server = backend().await;
    let chain = json!([
        {"type": "auth", "parameters": {"oidc_config": provider.oidc(json!({}))}},
        layer("validating-webhook", &[hook(&webhook, json!({})), hook(&webhook, json!({"name": "second"}))]),
    ]);
    let fixture = Fixture::new(&server, chain).await;
    let claims =
        json!({"name": "Alice", "email": "a@b", "act": {"sub": "agent", "client_id": "c"}, "tsid": "t"});
    let token = format!("Bearer {}", provider.token(claims.clone()));
    let odd = r#"{ "params":{"name":"re\u0061d","arguments":{"n":1.50}},"id":"\u0061","jsonrpc":"2.0" ,"method":"tools/call"}"#;
    assert_eq!(fixture.post(&[("authorization", &token)], odd).await.status, StatusCode::OK);
    assert_eq!(&*server.got()[0].body, odd.as_bytes());
    let got = webhook.got();
    assert_eq!(got.len(), 2);
    let text = String::from_utf8(got[0].body.to_vec()).unwrap();
    assert!(text.contains(&format!("\"mcp_request\":{odd},")), "{text}");
    assert!(!text.contains(&token["Bearer ".len()..]) && !text.contains("tsid"), "{text}");
    let told = got[0].json();
    assert_eq!((got[0].path.as_str(), got[0].header("content-type")), ("/ask", Some("application/json")));
    assert_eq!(got[0].header("x-toolhive-signature"), None);
    assert_eq!(told["version"], "v0.1.0");
    assert!(told["timestamp"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok());
    let principal = &told["principal"];
    assert_eq!((&principal["sub"], &principal["name"]), (&json!("alice"), &json!("Alice")));
    assert_eq!(principal["claims"]["email"], "a@b");
    assert_eq!(principal["delegation"], json!([{"sub": "agent", "client_id": "c"}]));
    assert_eq!(told["context"]["server_name"], "files");
    assert_eq!(told["context"]["transport"], "streamable-http");
    assert!(told["context"]["source_ip"].as_str().unwrap().starts_with("127.0.0.1:"));
    assert_eq!(told["uid"], got[1].json()["uid"], "all are asked the same question");
}

#[tokio::test]
async fn what_a_validating_webhook_does_not_allow_goes_no_further() {
    let server = backend().await;
    let verdicts: [(Script, &str, bool); 11] = [
        (|| answered(json!({"allowed": true, "patch": [], "new": 1})), "fail", true),
        (|| answered(json!({"allowed": false, "code": 418, "message": "no"})), "fail", false),
        (|| answered(json!({"allowed": false})), "ignore", false),
        (|| answered(json!({})), "ignore", false),
        (|| status(422), "ignore", false),
        (|| status(500), "fail", false),
        (|| status(500), "ignore", true),
        (|| status(204), "fail", false),
        (|| answered(json!({"allowed": "yes"})), "fail", false),
        (|| answered(json!({"allowed": true, "message": "x".repeat(1 << 20)})), "fail", false),
        (|| answered(json!([])), "ignore", true),
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
        assert_eq!(server.got().len(), passed, "{number}");
    }
}

#[tokio::test]
async fn a_webhook_that_cannot_be_reached_or_does_not_answer_counts_by_its_policy() {
    let server = backend().await;
    let gone = Server::gone();
    // It takes connections and never says a word.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = format!("http://{}/", silent.local_addr().unwrap());
    for url in [format!("http://{}/", gone.address), silent] {
        for (policy, refused, broken) in [("fail", 403, 500), ("ignore", 200, 200)] {
            let one = || hook(&gone, json!({"url": url, "failure_policy": policy, "timeout": "1s"}));
            let fixture = Fixture::new(&server, validating(&[one()])).await;
            assert_eq!(fixture.post(&[], &tool()).await.status, refused, "{url} {policy}");
            let fixture = Fixture::new(&server, mutating(&[one()])).await;
            let answer = fixture.post(&[], &tool()).await;
            assert_eq!(answer.status, broken, "{url} {policy}");
            if broken == 500 {
                assert_eq!(answer.json()["error"]["code"], -32603);
            }
        }
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Server::start(|_| answered(json!({"allowed": true}))).await;
    let location = format!("http://{}/", elsewhere.address);
    let webhook = Server::start(move |_| {
        Response::builder().status(307).header("location", &location).body(Bytes::new()).unwrap()
    })
    .await;
    let server = backend().await;
    let fixture = Fixture::new(&server, validating(&[hook(&webhook, json!({}))])).await;
    assert_eq!(fixture.post(&[], &tool()).await.status, StatusCode::FORBIDDEN);
    assert!(elsewhere.got().is_empty());
}

#[tokio::test]
async fn each_mutating_webhook_sees_what_those_before_it_made_and_everything_else_stays() {
    let first = Server::start(|_| {
        patch(json!([
            {"op": "add", "path": "/mcp_request/params/arguments/user", "value": "alice"},
            {"op": "replace", "path": "/mcp_request/params/arguments/path", "value": "/safe"},
        ]))
    })
    .await;
    let second = Server::start(|got| {
        let user = &got.json()["mcp_request"]["params"]["arguments"]["user"];
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
    let got = &server.got()[0];
    assert_eq!(String::from_utf8_lossy(&got.body), sent);
    assert_eq!(got.header("content-length"), Some(sent.len().to_string().as_str()));
    assert_ne!(first.got()[0].json()["uid"], second.got()[0].json()["uid"]);
}

#[tokio::test]
async fn what_a_webhook_made_of_a_request_is_judged_by_those_further_in() {
    let webhook = Server::start(|got| {
        let name = &got.json()["mcp_request"]["params"]["arguments"]["call"];
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
    let got = server.got();
    assert_eq!(got.len(), 1);
    assert_eq!((got[0].header("mcp-name"), &got[0].json()["params"]["name"]), (Some("read"), &json!("read")));
}

#[tokio::test]
async fn a_patch_that_is_none_or_changes_what_is_the_callers_counts_by_its_policy() {
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
            let webhook = Server::start(move |_| answered(answer.clone())).await;
            let chain = mutating(&[hook(&webhook, json!({"failure_policy": policy}))]);
            let before = server.got().len();
            let answer = Fixture::new(&server, chain).await.post(&[], &tool()).await;
            if policy == "fail" {
                let failed =
                    (StatusCode::INTERNAL_SERVER_ERROR, json!(7), json!(-32603), json!("internal error"));
                assert_eq!((outcome(&answer), server.got().len()), (failed, before), "{number}");
            } else {
                assert_eq!(answer.status, StatusCode::OK, "{number}");
                assert_eq!(server.got()[before].body, tool().as_bytes(), "{number}");
            }
        }
    }
}

#[tokio::test]
async fn a_mutating_webhook_may_refuse_too() {
    let server = backend().await;
    let verdicts: [(Script, StatusCode); 2] = [
        (|| answered(json!({"allowed": false, "patch_type": "json_patch"})), StatusCode::FORBIDDEN),
        (|| status(422), StatusCode::UNPROCESSABLE_ENTITY),
    ];
    for (script, code) in verdicts {
        let webhook = Server::start(move |_| script()).await;
        let fixture =
            Fixture::new(&server, mutating(&[hook(&webhook, json!({"failure_policy": "ignore"}))])).await;
        let answer = fixture.post(&[], &tool()).await;
        assert_eq!(outcome(&answer), (code, json!(7), json!(403), json!("Request denied by webhook policy")));
    }
    assert!(server.got().is_empty());
}

#[tokio::test]
async fn what_a_webhook_could_read_otherwise_than_the_server_and_what_is_too_large_is_refused() {
    let webhook = Server::start(|_| answered(json!({"allowed": true}))).await;
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
        // What asks for nothing is nothing to ask about.
        let response = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        assert_eq!(fixture.post(&[], response).await.status, StatusCode::OK);
    }
    assert!(webhook.got().is_empty());
    assert_eq!(server.got().len(), 2);
}

/// The signature that a webhook would compute.
fn signature(got: &Got, secret: &[u8]) -> String {
    let time = got.header("x-toolhive-timestamp").unwrap();
    time.parse::<i64>().unwrap();
    format!("sha256={}", hmac_hex(secret, &[time.as_bytes(), b".", &got.body]).unwrap())
}

#[tokio::test]
async fn a_question_is_signed_with_the_secret_as_it_is_at_that_moment() {
    let webhook = Server::start(|_| answered(json!({"allowed": true}))).await;
    let server = backend().await;
    let certificates = Certificates::new();
    let path = certificates.path("hmac");
    fs::write(&path, "old\n").unwrap();
    let fixture =
        Fixture::new(&server, validating(&[hook(&webhook, json!({"hmac_secret_ref": path}))])).await;
    assert_eq!(fixture.post(&[], &tool()).await.status, StatusCode::OK);
    fs::write(&path, b"new\xff").unwrap();
    assert_eq!(fixture.post(&[], &tool()).await.status, StatusCode::OK);
    let got = webhook.got();
    assert_eq!(got[0].header("x-toolhive-signature"), Some(signature(&got[0], b"old\n").as_str()));
    assert_eq!(got[1].header("x-toolhive-signature"), Some(signature(&got[1], b"new\xff").as_str()));
    // Nothing goes out unsigned.
    fs::write(&path, "").unwrap();
    assert_eq!(fixture.post(&[], &tool()).await.status, StatusCode::FORBIDDEN);
    assert_eq!(webhook.got().len(), 2);
}

#[tokio::test]
async fn a_webhook_is_known_by_its_authority_and_we_to_it_by_our_certificate() {
    let (certificates, others) = (Certificates::new(), Certificates::new());
    let server = backend().await;
    let allows = |_: &Got| answered(json!({"allowed": true}));
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
        ("nobody's word", &open, json!({"insecure_skip_verify": true}), 200),
        ("our certificate", &strict, both(&certificates), 200),
        ("somebody else's", &strict, both(&others), 403),
        ("no certificate", &strict, json!({"ca_bundle_path": certificates.path("ca.crt")}), 403),
    ] {
        let hook = json!({"name": "hook", "url": webhook.url("/ask"), "tls_config": tls});
        let fixture = Fixture::new(&server, validating(&[hook])).await;
        assert_eq!(fixture.post(&[], &tool()).await.status, expected, "{what}");
    }
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let certificates = Certificates::new();
    let webhook = FakeHttps::start(&certificates, false, |_| answered(json!({"allowed": true}))).await;
    let server = backend().await;
    let tls = json!({"ca_bundle_path": certificates.path("ca.crt")});
    let hook = json!({"name": "hook", "url": webhook.url("/ask"), "tls_config": tls});
    let fixture = Fixture::new(&server, validating(&[hook])).await;
    for _ in 0..5 {
        assert_eq!(fixture.post(&[], &tool()).await.status, StatusCode::OK);
    }
    assert_eq!((webhook.got().len(), webhook.connections()), (5, 1));
}

#[tokio::test]
async fn what_cannot_be_a_webhook_ends_the_proxy_with_its_place() {
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
                "middleware_configs": [layer(kind, &[base.clone(), hook.clone()])],
            });
            let config = RunConfig::parse(&config.to_string()).unwrap();
            let error = Proxy::new(&config).err().unwrap().to_string();
            let name = hook["name"].as_str().unwrap();
            assert!(error.starts_with(&format!("{kind}: webhooks[1] ({name:?}): {message}")), "{error}");
        }
    }
}

#[tokio::test]
async fn a_webhook_that_fails_now_and_then_is_asked_each_time_anew() {
    static FAILURES: Mutex<usize> = Mutex::new(0);
    let webhook = Server::start(|_| {
        let mut failures = FAILURES.lock().unwrap();
        *failures += 1;
        if *failures % 2 == 1 { status(503) } else { answered(json!({"allowed": true})) }
    })
    .await;
    let server = backend().await;
    let fixture = Fixture::new(&server, validating(&[hook(&webhook, json!({}))])).await;
    for expected in [403, 200, 403, 200] {
        assert_eq!(fixture.post(&[], &tool()).await.status, expected);
    }
}
