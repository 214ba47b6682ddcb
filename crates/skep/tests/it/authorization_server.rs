//! A proxy with an authorization server, as a process: users log in at an identity provider, and the server behind the
//! proxy gets their token of it.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener},
    sync::{Arc, Mutex},
    thread,
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use skep_testkit::{IdentityProvider, Redis, free_port};

use crate::{
    login::{Browser, Page, ann_logs_in, fake_provider, hidden_fields, request, tokens},
    proxy::Proxy,
};

/// A fake MCP server at an address of this machine, which starts a session. Returns the heads of its requests.
pub(crate) fn server(host: IpAddr) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind((host, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let heads: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = heads.clone();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap() == 0 || line == "\r\n" {
                    break;
                }
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                head.push_str(&line);
            }
            let mut sent = vec![0; length];
            reader.read_exact(&mut sent).unwrap();
            let starts = String::from_utf8_lossy(&sent).contains("\"initialize\"");
            let session = if starts { "mcp-session-id: of-the-server\r\n" } else { "" };
            seen.lock().unwrap().push(head);
            let body = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;
            let length = body.len();
            write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n{session}content-length: {length}\r\n\r\n{body}").unwrap();
        }
    });
    (address, heads)
}

/// The RunConfig of a proxy with an authorization server, for a port.
pub(crate) fn config(port: u16, issuer: &str, server: SocketAddr, more: Value) -> Value {
    let origin = format!("http://127.0.0.1:{port}");
    let mut config = json!({
        "port": port, "target_host": "127.0.0.1", "target_port": server.port(), "middleware_configs": [],
        "oidc_config": {
            "Issuer": origin, "Audience": format!("{origin}/mcp"), "ResourceURL": format!("{origin}/mcp"),
        },
        "embedded_auth_server_config": {
            "schema_version": "v0.1.0", "issuer": origin, "allowed_audiences": [format!("{origin}/mcp")],
            "upstreams": [{"name": "corp", "type": "oidc", "oidc_config": {
                "issuer_url": issuer, "client_id": "us",
                // Below the path of the resource, as the operator writes it.
                "redirect_uri": format!("{origin}/mcp/oauth/callback"),
            }}],
        },
    });
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    config
}

pub(crate) fn call(port: u16, token: &str) -> Page {
    let call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo"}}).to_string();
    post(port, token, "cookie: skep-login-browser=b\r\n", &call)
}

fn post(port: u16, token: &str, headers: &str, body: &str) -> Page {
    let headers =
        format!("authorization: Bearer {token}\r\naccept: application/json, text/event-stream\r\n{headers}");
    request("POST", &format!("127.0.0.1:{port}"), "/mcp", &headers, ("application/json", body))
}

/// A proxy with more in its RunConfig, and the token of Ann, whose response of the provider has more as well.
async fn login(
    name: &str,
    more: Value,
    response: Value,
) -> (Proxy, String, IdentityProvider, Arc<Mutex<Vec<String>>>) {
    let provider = fake_provider().await;
    let (server, heads) = server(Ipv4Addr::LOCALHOST.into());
    let port = free_port();
    let proxy = Proxy::with(name, config(port, &provider.issuer, server, more), &[]);
    proxy.expect_log("the authorization server is ready");
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let issued = tokio::task::block_in_place(|| {
        tokens(address, &mut Browser::default(), |_, url| ann_logs_in(&provider, url, &response))
    });
    (proxy, issued["access_token"].as_str().unwrap().to_owned(), provider, heads)
}

fn has(head: &str, line: &str) -> bool {
    head.lines().any(|known| known.eq_ignore_ascii_case(line))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_behind_a_proxy_gets_the_users_token_of_the_identity_provider() {
    let (proxy, token, _provider, heads) = login("swap", json!({}), json!({})).await;
    let stranger = call(proxy.port, "none");
    assert_eq!(stranger.status, 401);
    let metadata = format!("http://127.0.0.1:{}/.well-known/oauth-protected-resource/mcp", proxy.port);
    assert!(stranger.header("www-authenticate").unwrap().contains(&metadata), "{}", stranger.head);
    let host = format!("127.0.0.1:{}", proxy.port);
    for path in ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"] {
        let page = request("GET", &host, path, "", ("text/plain", ""));
        assert_eq!(page.json()["issuer"], format!("http://{host}"), "{}", page.body);
    }
    let answer = call(proxy.port, &token);
    assert_eq!(answer.status, 200, "{}{}", answer.head, answer.body);
    let heads = heads.lock().unwrap();
    assert_eq!(heads.len(), 1, "a request without a valid token reached the server");
    assert!(has(&heads[0], "authorization: Bearer at-of-ann"), "{heads:?}");
    assert!(!heads[0].to_ascii_lowercase().contains("cookie:"), "{heads:?}");
}

/// An issuer is the same with and without a slash, so a session that has ended is known as such with both.
#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_session_is_refused_however_its_issuer_is_written() {
    let provider = fake_provider().await;
    for slash in ["", "/"] {
        let (port, (server, heads)) = (free_port(), server(Ipv4Addr::LOCALHOST.into()));
        let mut config = config(port, &provider.issuer, server, json!({}));
        let issuer = format!("http://127.0.0.1:{port}{slash}");
        config["oidc_config"]["Issuer"] = json!(issuer);
        let proxy = Proxy::with(&format!("revoked{}", slash.len()), config, &[]);
        proxy.expect_log("the authorization server is ready");
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        tokio::task::block_in_place(|| {
            let issued =
                tokens(address, &mut Browser::default(), |_, url| ann_logs_in(&provider, url, &json!({})));
            let token = issued["access_token"].as_str().unwrap();
            assert_eq!(call(port, token).status, 200, "{issuer}");
            let claims = issued["access_token"].as_str().unwrap().split('.').nth(1).unwrap();
            let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
            let client = claims["client_id"].as_str().unwrap();
            let form = format!("client_id={client}&token={token}");
            let type_ = "application/x-www-form-urlencoded";
            let revoked = request("POST", &address.to_string(), "/oauth/revoke", "", (type_, &form));
            assert_eq!(revoked.status, 200, "{}", revoked.body);
            assert_eq!(call(port, token).status, 401, "{issuer}");
            assert_eq!(heads.lock().unwrap().len(), 1, "{issuer}");
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_that_would_accept_tokens_of_another_issuer_than_its_own_does_not_start() {
    for issuer in ["https://other.example", ""] {
        let (port, (server, _)) = (free_port(), server(Ipv4Addr::LOCALHOST.into()));
        let mut config = config(port, "http://127.0.0.1:1", server, json!({}));
        config["oidc_config"]["Issuer"] = json!(issuer);
        let error = Proxy::refused("other-issuer", config, &[]);
        assert!(error.contains("oidc_config: Issuer must be that of the authorization server"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_of_the_provider_may_have_another_header() {
    let swap =
        json!({"upstream_swap_config": {"header_strategy": "custom", "custom_header_name": "X-Upstream"}});
    let (proxy, token, _provider, heads) = login("custom", swap, json!({})).await;
    assert_eq!(call(proxy.port, &token).status, 200);
    let heads = heads.lock().unwrap();
    assert!(has(&heads[0], "x-upstream: Bearer at-of-ann"), "{heads:?}");
    assert!(!heads[0].to_ascii_lowercase().contains("authorization:"), "{heads:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_of_a_proxy_are_about_the_claims_of_the_providers_token() {
    let policy = r#"permit(principal, action, resource) when { principal has claim_team && principal.claim_team == "red" };"#;
    let authz =
        json!({"authz_config": {"version": "1.0", "type": "cedarv1", "cedar": {"policies": [policy]}}});
    let signer = IdentityProvider::start().await;
    for (name, team, status) in [("red", "red", 200), ("blue", "blue", 403)] {
        let upstream = signer.token(json!({"sub": "ann", "team": team}));
        let (proxy, token, ..) = login(name, authz.clone(), json!({"access_token": upstream})).await;
        assert_eq!(call(proxy.port, &token).status, status, "{team}");
    }
    // A token that is no JWT has no claims: the caller's own are those of the policies.
    let named = r#"permit(principal, action, resource) when { principal has claim_client_id };"#;
    let authz =
        json!({"authz_config": {"version": "1.0", "type": "cedarv1", "cedar": {"policies": [named]}}});
    let (proxy, token, ..) = login("opaque", authz, json!({})).await;
    assert_eq!(call(proxy.port, &token).status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_the_provider_that_cannot_be_refreshed_is_a_challenge_to_log_in_again() {
    let (proxy, token, provider, _) = login("expired", json!({}), json!({"expires_in": 1})).await;
    provider.answer("/token", json!({"status": 400, "body": {"error": "invalid_grant"}}));
    let answer =
        std::iter::repeat_with(|| call(proxy.port, &token)).find(|answer| answer.status != 200).unwrap();
    assert_eq!(answer.status, 401, "{}", answer.body);
    let challenge = answer.header("www-authenticate").unwrap();
    assert!(
        challenge.contains(r#"error="invalid_token""#) && challenge.contains("resource_metadata="),
        "{challenge}"
    );
    assert!(
        answer.json()["error_description"].as_str().unwrap().contains("authenticate again"),
        "{}",
        answer.body
    );
    provider.down();
    assert_eq!(call(proxy.port, &token).status, 503);
}

/// A call of a client with these capabilities, in a session of its own.
fn call_in_session(port: u16, token: &str, capabilities: &Value) -> Page {
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {"name": "test", "version": "1"},
    });
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string();
    let started = post(port, token, "", &initialize);
    assert_eq!(started.status, 200, "{}", started.body);
    let session = started.header("mcp-session-id").unwrap();
    let call =
        json!({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": {"name": "echo"}}).to_string();
    post(port, token, &format!("mcp-session-id: {session}\r\nmcp-protocol-version: 2025-11-25\r\n"), &call)
}

/// The same since 2026-07-28, where there are no sessions.
fn call_without_session(port: u16, token: &str, capabilities: &Value) -> Page {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    let params = json!({"name": "echo", "_meta": meta});
    let call = json!({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": params}).to_string();
    let headers = "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: echo\r\n";
    post(port, token, headers, &call)
}

/// Logs Ann in for the page about connections, and presses "Connect".
fn connect(browser: &mut Browser, provider: &IdentityProvider, url: &str) {
    let sent = browser.open(url);
    let signed_in = browser.open(&ann_logs_in(provider, sent.header("location").unwrap(), &json!({})));
    let page = browser.open(signed_in.header("location").unwrap());
    let mut form = hidden_fields(&page.body);
    form.push(("action".into(), "connect".into()));
    let sent = browser.submit(url.split('?').next().unwrap(), &form);
    let back = browser.open(&ann_logs_in(provider, sent.header("location").unwrap(), &json!({})));
    assert_eq!(back.header("location"), Some(url), "{}{}", back.head, back.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_needs_a_provider_which_is_not_connected_names_where_to_go() {
    let (proxy, token, provider, heads) = login("connect", json!({}), json!({})).await;
    tokio::task::block_in_place(|| {
        let opens_urls = json!({"elicitation": {"form": {}, "url": {}}});
        // Each client has a session before the account is disconnected: without the account there is no new one.
        type Call = fn(u16, &str, &Value) -> Page;
        let calls: [Call; 2] = [call_in_session, call_without_session];
        for call in calls {
            assert_eq!(call(proxy.port, &token, &opens_urls).status, 200);
        }
        let (host, headers) =
            (format!("127.0.0.1:{}", proxy.port), format!("authorization: Bearer {token}\r\n"));
        let disconnect = "/oauth/connections?provider=corp";
        assert_eq!(request("DELETE", &host, disconnect, &headers, ("text/plain", "")).status, 204);
        heads.lock().unwrap().clear();
        let session = "mcp-session-id: of-the-server\r\nmcp-protocol-version: 2025-11-25\r\n";
        let again = json!({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": {"name": "echo"}})
            .to_string();
        let answers = [
            post(proxy.port, &token, session, &again),
            call_without_session(proxy.port, &token, &opens_urls),
        ];
        let mut page = String::new();
        for (answer, is_modern) in answers.into_iter().zip([false, true]) {
            let body = answer.json();
            assert_eq!((answer.status, &body["id"]), (200, &json!("c")), "{body}");
            let elicitation = if is_modern {
                assert_eq!(body["result"]["resultType"], "input_required", "{body}");
                &body["result"]["inputRequests"]["skep/connect-account"]["params"]
            } else {
                assert_eq!(body["error"]["code"], -32042, "{body}");
                &body["error"]["data"]["elicitations"][0]
            };
            assert_eq!(elicitation["mode"], "url", "{body}");
            assert!(elicitation["elicitationId"].is_string() != is_modern, "{body}");
            assert!(elicitation["message"].is_string(), "{body}");
            page = elicitation["url"].as_str().unwrap().to_owned();
        }
        // Other clients log in again, and so does a new session.
        for capabilities in [json!({}), json!({"elicitation": {}}), json!({"elicitation": {"form": {}}})] {
            assert_eq!(call_without_session(proxy.port, &token, &capabilities).status, 401, "{capabilities}");
        }
        assert!(
            heads.lock().unwrap().is_empty(),
            "a call without the token of the provider reached the server"
        );
        connect(&mut Browser::default(), &provider, &page);
        assert_eq!(post(proxy.port, &token, session, &again).status, 200);
    });
}

/// How many of these registrations are refused, each with what a client has in the header.
fn refused_registrations(port: u16, forwarded: impl Iterator<Item = String>) -> usize {
    let metadata = json!({"redirect_uris": ["http://127.0.0.1:7777/cb"]}).to_string();
    let statuses = forwarded.map(|forwarded| {
        let headers = format!("x-forwarded-for: {forwarded}\r\n");
        let sent = ("application/json", &*metadata);
        request("POST", &format!("127.0.0.1:{port}"), "/oauth/register", &headers, sent).status
    });
    statuses
        .inspect(|status| assert!([201, 429].contains(status), "{status}"))
        .filter(|status| *status == 429)
        .count()
}

/// All users of an ingress have its address, unless it is trusted to name theirs.
#[tokio::test(flavor = "multi_thread")]
async fn limits_are_for_the_address_that_a_trusted_proxy_names_and_no_header_of_a_stranger_evades_them() {
    let provider = fake_provider().await;
    for is_trusted in [true, false] {
        let (port, (server, _)) = (free_port(), server(Ipv4Addr::LOCALHOST.into()));
        let more = json!({"trust_proxy_headers": is_trusted});
        let config = config(port, &provider.issuer, server, more);
        let proxy = Proxy::with(&format!("forwarded-{is_trusted}"), config, &[]);
        proxy.expect_log("the authorization server is ready");
        tokio::task::block_in_place(|| {
            // What a stranger writes comes before what the proxy appends.
            let flood = (0..40).map(|number| format!("10.0.0.{number}, 198.51.100.7"));
            assert!(refused_registrations(port, flood) > 0, "{is_trusted}");
            let others = (0..40).map(|number| format!("198.51.100.7, 203.0.113.{number}"));
            assert_eq!(refused_registrations(port, others) == 0, is_trusted);
        });
    }
}

/// How often each command of a Redis was executed since.
fn since(before: &BTreeMap<String, u64>, mut after: BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    after.retain(|name, count| {
        *count -= before.get(name).copied().unwrap_or_default();
        *count > 0
    });
    after
}

/// One that checks the session, whatever the number of providers, and one for the token that the server gets.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_takes_two_commands_of_redis_with_two_providers() {
    let (provider, redis) = (fake_provider().await, Redis::with_password("correct-horse").await);
    let (port, (server, heads)) = (free_port(), server(Ipv4Addr::LOCALHOST.into()));
    let mut config = config(port, &provider.issuer, server, json!({}));
    let embedded = &mut config["embedded_auth_server_config"];
    let mut second = embedded["upstreams"][0].clone();
    second["name"] = "hub".into();
    embedded["upstreams"].as_array_mut().unwrap().push(second);
    embedded["storage"] = json!({"type": "redis", "redis_config": {
        "addr": redis.address(), "key_prefix": "thv:auth:{ns:kit}:", "auth_type": "aclUser",
        "acl_user_config": {"password_env_var": "REDIS_PASSWORD"},
    }});
    let proxy = Proxy::with("commands", config, &[("REDIS_PASSWORD", "correct-horse")]);
    proxy.expect_log("the authorization server is ready");
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let token = tokio::task::block_in_place(|| {
        let issued =
            tokens(address, &mut Browser::default(), |_, url| ann_logs_in(&provider, url, &json!({})));
        issued["access_token"].as_str().unwrap().to_owned()
    });
    let before = redis.commands().await;
    let answer = tokio::task::block_in_place(|| call(port, &token));
    assert_eq!(answer.status, 200, "{}{}", answer.head, answer.body);
    let expected = BTreeMap::from([("get".to_owned(), 1), ("mget".to_owned(), 1)]);
    assert_eq!(since(&before, redis.commands().await), expected);
    assert!(has(&heads.lock().unwrap()[0], "authorization: Bearer at-of-ann"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_is_in_the_audit_log_and_in_the_metrics() {
    let log = std::env::temp_dir().join(format!("skep-oauth-audit-{}", std::process::id()));
    let more = json!({
        "audit_config": {"logFile": log},
        "telemetry_config": {
            "serviceName": "events", "enablePrometheusMetricsPath": true, "prometheusPort": free_port(),
        },
    });
    let (proxy, token, _provider, _) = login("events", more, json!({})).await;
    let host = format!("127.0.0.1:{}", proxy.port);
    let page = tokio::task::block_in_place(|| request("GET", &host, "/metrics", "", ("text/plain", "")));
    for event in ["oauth_registration", "oauth_consent", "oauth_login"] {
        let line = format!("skep_oauth_events_total{{event=\"{event}\",outcome=\"success\"}} 1");
        assert!(page.body.contains(&line), "{line}: {}", page.body);
    }
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    let entries = async || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let entries = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        entries.filter(|entry| entry["type"] == "oauth_login").collect::<Vec<_>>()
    };
    skep_testkit::until("the entry is written", async || !entries().await.is_empty()).await;
    let [entry] = <[Value; 1]>::try_from(entries().await).unwrap();
    assert_eq!(
        (
            &entry["outcome"],
            &entry["subjects"]["user_id"],
            &entry["target"]["name"],
            &entry["source"]["value"]
        ),
        (&json!("success"), &claims["sub"], &claims["client_id"], &json!("127.0.0.1"))
    );
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(!text.contains(&token) && !text.contains("at-of-ann") && !text.contains("code="), "{text}");
    std::fs::remove_file(log).ok();
}
