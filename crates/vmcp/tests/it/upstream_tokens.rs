//! Backends that get the caller's token of an identity provider. The authorization server is a fake.

use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde_json::{Map, Value, json};
use skep_auth::{AuthenticationError, OwnTokens};
use skep_vmcp::{AuthorizationServer, ConnectionSource, Connections, ProviderTokenError, Settings};
use tokio::{net::TcpStream, sync::watch};

use crate::{Server, backend::Backend, client::text, with_authorization_server};

/// The key of the input that connects an account.
const CONNECT: &str = "skep/connect-account";
const ISSUER: &str = "https://as.example";
const AUDIENCE: &str = "https://as.example/mcp";

type Tokens = HashMap<&'static str, Result<&'static str, ProviderTokenError>>;

/// A fake: it knows the tokens `valid` of ann and `other` of bob, and has what the test says of each provider.
/// A provider without an entry responds once it has one.
pub(crate) struct FakeServer {
    tokens: watch::Sender<Tokens>,
    /// How often a token was missing.
    missing: AtomicUsize,
}

impl FakeServer {
    pub(crate) fn new() -> Arc<Self> {
        let tokens = HashMap::from([("corp", Ok("corp-token")), ("hub", Ok("hub-token"))]);
        Arc::new(Self { tokens: watch::Sender::new(tokens), missing: AtomicUsize::new(0) })
    }

    pub(crate) fn set(&self, provider: &'static str, token: Result<&'static str, ProviderTokenError>) {
        self.tokens.send_modify(|tokens| {
            tokens.insert(provider, token);
        });
    }

    pub(crate) fn hang(&self, provider: &'static str) {
        self.tokens.send_modify(|tokens| {
            tokens.remove(provider);
        });
    }

    /// The token of a session. That of bob has his name.
    async fn token(&self, session: &str, provider: &str) -> Result<String, ProviderTokenError> {
        let mut tokens = self.tokens.subscribe();
        let token = tokens.wait_for(|tokens| tokens.contains_key(provider)).await.unwrap()[provider];
        if token.is_err() {
            self.missing.fetch_add(1, Ordering::SeqCst);
        }
        match session {
            "s" => token.map(str::to_owned),
            "s2" => token.map(|token| format!("{token}-of-bob")),
            _ => panic!("the session {session} is unknown"),
        }
    }
}

impl OwnTokens for FakeServer {
    fn issuer(&self) -> &str {
        ISSUER
    }

    fn claims<'a>(
        &'a self,
        token: &'a str,
    ) -> BoxFuture<'a, Result<Map<String, Value>, AuthenticationError>> {
        let known = match token {
            "valid" => Some(("ann", "s")),
            "other" => Some(("bob", "s2")),
            _ => None,
        };
        let known = known.map(|(name, session)| {
            let claims =
                json!({"iss": ISSUER, "aud": [AUDIENCE], "sub": name, "exp": 9_999_999_999_u64, "tsid": session});
            claims.as_object().cloned().unwrap()
        });
        async { known.ok_or(AuthenticationError::Token("unknown")) }.boxed()
    }
}

impl ConnectionSource for FakeServer {
    fn connections(&self, _: usize) -> BoxFuture<'_, Result<Connections, ProviderTokenError>> {
        async { Err(ProviderTokenError::Unavailable) }.boxed()
    }
}

impl AuthorizationServer for FakeServer {
    fn serves(&self, path: &str) -> bool {
        path == "/oauth/token"
    }

    fn respond(&self, _: Request<Incoming>, _: IpAddr) -> BoxFuture<'_, Response<Bytes>> {
        async { Response::new(Bytes::from_static(b"of the authorization server")) }.boxed()
    }

    fn audiences(&self) -> &[String] {
        static AUDIENCES: std::sync::LazyLock<Vec<String>> =
            std::sync::LazyLock::new(|| vec![AUDIENCE.to_owned()]);
        &AUDIENCES
    }

    fn providers(&self) -> Vec<&str> {
        vec!["corp", "hub"]
    }

    fn injects_tokens(&self) -> bool {
        true
    }

    fn connections_url(&self, session: &str) -> String {
        format!("{ISSUER}/connections/{session}")
    }

    fn provider_token<'a>(
        &'a self,
        session: &'a str,
        provider: &'a str,
    ) -> BoxFuture<'a, Result<String, ProviderTokenError>> {
        self.token(session, provider).boxed()
    }

    fn provider_id_token<'a>(
        &'a self,
        session: &'a str,
        provider: &'a str,
    ) -> BoxFuture<'a, Result<String, ProviderTokenError>> {
        async move { Ok(format!("id-{}", self.token(session, provider).await?)) }.boxed()
    }

    fn provider_claims<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Option<Map<String, Value>>, ProviderTokenError>> {
        async { Ok(None) }.boxed()
    }
}

fn config(one: &Backend, two: &Backend) -> String {
    config_with(
        one,
        two,
        "{type: upstream_inject, upstreamInject: {providerName: corp}}",
        "{type: upstream_inject, upstreamInject: {providerName: hub}}",
    )
}

/// The configuration with these strategies.
pub(crate) fn config_with(one: &Backend, two: &Backend, first: &str, second: &str) -> String {
    let backend = |name: &str, backend: &Backend| {
        format!("  - {{name: {name}, url: \"{}\", transport: streamable-http}}\n", backend.url())
    };
    format!(
        "name: test\ngroupRef: test\nincomingAuth:\n  type: oidc\n  oidc: {{issuer: \"{ISSUER}\", audience: \"{AUDIENCE}\"}}\n\
         outgoingAuth:\n  source: inline\n  backends:\n\
         \x20   one: {first}\n\
         \x20   two: {second}\n\
         aggregation:\n  conflictResolution: prefix\n  conflictResolutionConfig: {{prefixFormat: \"{{workload}}_\"}}\n\
         backends:\n{}{}",
        backend("one", one),
        backend("two", two),
    )
}

/// A client with a token.
pub(crate) struct Caller {
    address: SocketAddr,
    session: String,
    token: &'static str,
}

impl Caller {
    async fn send(&self, path: &str, body: &Value) -> Response<Bytes> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::post(path)
            .header("host", "localhost")
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .header("authorization", format!("Bearer {}", self.token));
        if !self.session.is_empty() {
            request = request.header("mcp-session-id", &self.session);
        }
        if body["params"]["_meta"].is_object() {
            let name = body["params"]["name"].as_str().unwrap().to_owned();
            request = request
                .header("mcp-protocol-version", "2026-07-28")
                .header("mcp-method", body["method"].as_str().unwrap())
                .header("mcp-name", name);
        }
        let request = request.body(Full::new(Bytes::from(body.to_string()))).unwrap();
        let (head, body) = sender.send_request(request).await.unwrap().into_parts();
        Response::from_parts(head, body.collect().await.unwrap().to_bytes())
    }

    async fn initialize(&mut self) -> StatusCode {
        self.initialize_with(json!({})).await
    }

    async fn initialize_with(&mut self, capabilities: Value) -> StatusCode {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {"name": "test", "version": "1"},
        });
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let response = self.send("/mcp", &body).await;
        if let Some(session) = response.headers().get("mcp-session-id") {
            self.session = session.to_str().unwrap().to_owned();
        }
        response.status()
    }

    pub(crate) async fn call(&self, tool: &str) -> Value {
        self.request("tools/call", json!({"name": tool, "arguments": {"n": 1}})).await
    }

    /// A call of a client of 2026-07-28 that opens addresses, with what its user has answered.
    async fn modern_call(&self, tool: &str, action: Option<&str>) -> Value {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"url": {}}},
        });
        let mut params = json!({"name": tool, "arguments": {"n": 1}, "_meta": meta});
        if let Some(action) = action {
            params["inputResponses"] = json!({CONNECT: {"action": action}});
        }
        self.request("tools/call", params).await
    }

    pub(crate) async fn request(&self, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let response = self.send("/mcp", &body).await;
        let whole = String::from_utf8(response.body().to_vec()).unwrap();
        let last = whole.lines().filter_map(|line| line.strip_prefix("data: ")).next_back();
        serde_json::from_str(last.unwrap_or(&whole)).unwrap_or_else(|_| panic!("{whole}"))
    }
}

async fn caller(server: &Server) -> Caller {
    caller_with(server, "valid").await
}

/// A client with this token, and a session.
pub(crate) async fn caller_with(server: &Server, token: &'static str) -> Caller {
    let mut caller = Caller { address: server.address, session: String::new(), token };
    assert_eq!(caller.initialize().await, StatusCode::OK);
    caller
}

async fn server(fake: Arc<FakeServer>, one: &Backend, two: &Backend) -> Server {
    let settings = Settings::parse(&config(one, two)).unwrap_or_else(|errors| panic!("{errors:?}"));
    Server::run(with_authorization_server(settings, fake).unwrap(), None, None).await
}

#[tokio::test]
async fn a_backend_gets_the_callers_token_of_its_provider() {
    let (one, two) = (Backend::start().await, Backend::start().await);
    let server = server(FakeServer::new(), &one, &two).await;
    let caller = caller(&server).await;
    for (tool, backend, token) in
        [("one_echo", &one, "Bearer corp-token"), ("two_echo", &two, "Bearer hub-token")]
    {
        assert!(!text(&caller.call(tool).await).1);
        assert_eq!(backend.last_header("authorization").as_deref(), Some(token));
    }
    let page = caller.send("/oauth/token", &json!({})).await;
    assert_eq!(page.body().as_ref(), b"of the authorization server");
}

#[tokio::test]
async fn a_provider_that_fails_makes_only_its_own_backends_fail() {
    let (one, two) = (Backend::start().await, Backend::start().await);
    let fake = FakeServer::new();
    let server = server(fake.clone(), &one, &two).await;
    let caller = caller(&server).await;
    for error in
        [ProviderTokenError::Expired, ProviderTokenError::Unavailable, ProviderTokenError::NotConnected]
    {
        fake.set("hub", Err(error));
        assert!(!text(&caller.call("one_echo").await).1, "{error:?}");
        let failed = caller.call("two_echo").await;
        assert!(failed.to_string().contains("hub"), "{failed}");
    }
}

#[tokio::test]
async fn a_provider_that_hangs_delays_no_call_to_backends_of_another() {
    let (one, two) = (Backend::start().await, Backend::start().await);
    let fake = FakeServer::new();
    let server = server(fake.clone(), &one, &two).await;
    let caller = caller(&server).await;
    for (hanging, token, tool) in [("corp", "corp-token", "two_echo"), ("hub", "hub-token", "one_echo")] {
        fake.hang(hanging);
        let answer = tokio::time::timeout(Duration::from_secs(10), caller.call(tool)).await;
        assert!(!text(&answer.expect("it waits for the other provider")).1, "{hanging}");
        fake.set(hanging, Ok(token));
    }
}

#[tokio::test]
async fn a_caller_with_an_expired_token_does_not_log_in_again_while_another_provider_is_unavailable() {
    let (one, two) = (Backend::start().await, Backend::start().await);
    let fake = FakeServer::new();
    let server = server(fake.clone(), &one, &two).await;
    for [first, second] in [["corp", "hub"], ["hub", "corp"]] {
        fake.set(first, Err(ProviderTokenError::Expired));
        fake.set(second, Err(ProviderTokenError::Unavailable));
        let mut caller = Caller { address: server.address, session: String::new(), token: "valid" };
        assert_eq!(caller.initialize().await, StatusCode::SERVICE_UNAVAILABLE);
    }
}

#[tokio::test]
async fn a_call_that_needs_another_login_names_where_to_go() {
    let (one, two) = (Backend::start().await, Backend::start().await);
    let fake = FakeServer::new();
    let server = server(fake.clone(), &one, &two).await;
    for error in [ProviderTokenError::Expired, ProviderTokenError::NotConnected] {
        fake.set("hub", Err(error));
        assert_names_where_to_go(&server, "two_echo").await;
    }
}

/// A call of this tool leads clients that open addresses to the page about connections, and names it to others.
pub(crate) async fn assert_names_where_to_go(server: &Server, tool: &str) {
    let page = format!("{ISSUER}/connections/s");
    for (capabilities, opens_urls) in [
        (json!({"elicitation": {"form": {}, "url": {}}}), true),
        (json!({"elicitation": {"form": {}}}), false),
        (json!({"elicitation": {}}), false),
        (json!({}), false),
    ] {
        let mut caller = Caller { address: server.address, session: String::new(), token: "valid" };
        assert_eq!(caller.initialize_with(capabilities).await, StatusCode::OK);
        let answer = caller.call(tool).await;
        if !opens_urls {
            let (message, is_error) = text(&answer);
            assert!(is_error && message.contains(&page), "{answer}");
            continue;
        }
        let elicitation = &answer["error"]["data"]["elicitations"][0];
        assert_eq!(answer["error"]["code"], -32042, "{answer}");
        assert_eq!((&elicitation["mode"], &elicitation["url"]), (&json!("url"), &json!(page)));
        assert!(elicitation["elicitationId"].is_string() && elicitation["message"].is_string());
    }
}

/// A client of 2026-07-28 without a session.
fn modern(server: &Server) -> Caller {
    Caller { address: server.address, session: String::new(), token: "valid" }
}

/// The response leads the user to the page.
fn assert_needs_account(response: &Value) {
    let result = &response["result"];
    assert_eq!(result["resultType"], "input_required", "{response}");
    let request = &result["inputRequests"][CONNECT];
    assert_eq!(request["method"], "elicitation/create", "{response}");
    let params = request["params"].as_object().unwrap();
    assert_eq!((&params["mode"], &params["url"]), (&json!("url"), &json!(format!("{ISSUER}/connections/s"))));
    assert!(params["message"].is_string() && params.len() == 3, "{response}");
}

#[tokio::test]
async fn a_client_of_2026_gets_a_result_that_needs_the_user_to_connect_the_account() {
    let (one, two) = (Backend::start().await, Backend::start().await);
    let fake = FakeServer::new();
    let server = server(fake.clone(), &one, &two).await;
    let caller = modern(&server);
    assert!(caller.modern_call("two_echo", None).await["result"]["content"].is_array());
    for error in [ProviderTokenError::Expired, ProviderTokenError::NotConnected] {
        fake.set("hub", Err(error));
        assert_needs_account(&caller.modern_call("two_echo", None).await);
        // Users who do not want to are not led there again.
        for action in ["decline", "cancel"] {
            let refused = caller.modern_call("two_echo", Some(action)).await;
            let message = refused["error"]["message"].as_str().unwrap_or_default();
            assert!(message.contains("hub") && message.contains("/connections/s"), "{refused}");
        }
        // The call waits for the user who is connecting the account.
        let before = fake.missing.load(Ordering::SeqCst);
        let connected = async {
            crate::until(|| fake.missing.load(Ordering::SeqCst) > before + 1).await;
            fake.set("hub", Ok("hub-token"));
        };
        let (response, ()) = tokio::join!(caller.modern_call("two_echo", Some("accept")), connected);
        assert!(response["result"]["content"].is_array(), "{response}");
    }
}

/// Each of them would hold a request and look into the store again and again.
#[tokio::test]
async fn a_caller_has_few_calls_that_wait_for_an_account() {
    let (one, two) = (Backend::start().await, Backend::start().await);
    let fake = FakeServer::new();
    let server = server(fake.clone(), &one, &two).await;
    let caller = modern(&server);
    assert!(!text(&caller.modern_call("two_echo", None).await).1);
    fake.set("hub", Err(ProviderTokenError::NotConnected));
    let mut calls: FuturesUnordered<_> =
        (0..10).map(|_| caller.modern_call("two_echo", Some("accept"))).collect();
    for _ in 0..2 {
        assert_needs_account(&calls.next().await.unwrap());
    }
    fake.set("hub", Ok("hub-token"));
    let others: Vec<Value> = calls.collect().await;
    assert_eq!(others.len(), 8);
    for response in &others {
        assert!(response["result"]["content"].is_array(), "{response}");
    }
    // Their places are free again.
    fake.set("hub", Err(ProviderTokenError::NotConnected));
    let before = fake.missing.load(Ordering::SeqCst);
    let connected = async {
        crate::until(|| fake.missing.load(Ordering::SeqCst) > before + 1).await;
        fake.set("hub", Ok("hub-token"));
    };
    let (response, ()) = tokio::join!(caller.modern_call("two_echo", Some("accept")), connected);
    assert!(response["result"]["content"].is_array(), "{response}");
}

/// Tools that call a tool of the second backend and then, whatever comes of it, one of the first.
const MORE: &str = "codeMode: {enabled: true}\ncompositeTools:\n  - name: combo\n    description: d\n    steps:\n\
    \x20     - {id: a, tool: two_echo, onError: {action: retry, retryCount: 3, retryDelay: 1ms}}\n\
    \x20     - {id: b, tool: one_echo, dependsOn: [a]}\n\
    \x20 - name: lenient\n    description: d\n    steps:\n\
    \x20     - {id: a, tool: two_echo, onError: {action: continue}}\n\
    \x20     - {id: b, tool: one_echo, dependsOn: [a]}\n";

#[tokio::test]
async fn a_workflow_or_script_that_needs_an_account_ends_with_where_to_connect_it() {
    let (one, two) = (Backend::start().await, Backend::start().await);
    let fake = FakeServer::new();
    let config = format!("{}{MORE}", config(&one, &two));
    let settings = Settings::parse(&config).unwrap_or_else(|errors| panic!("{errors:?}"));
    let server = Server::run(with_authorization_server(settings, fake.clone()).unwrap(), None, None).await;
    let mut opener = Caller { address: server.address, session: String::new(), token: "valid" };
    assert_eq!(opener.initialize_with(json!({"elicitation": {"url": {}}})).await, StatusCode::OK);
    let script =
        json!({"name": "execute_tool_script", "arguments": {"script": "two_echo()\nreturn one_echo()"}});
    // Its backends are known before the account is missing.
    assert!(!text(&opener.call("combo").await).1);
    assert!(!text(&modern(&server).modern_call("combo", None).await).1);
    one.forget();
    fake.set("hub", Err(ProviderTokenError::NotConnected));
    for tool in ["combo", "lenient"] {
        let before = fake.missing.load(Ordering::SeqCst);
        let answer = opener.call(tool).await;
        assert_eq!(answer["error"]["code"], -32042, "{answer}");
        // The request itself may look, too.
        assert!(fake.missing.load(Ordering::SeqCst) <= before + 2, "the step was tried again");
        assert_needs_account(&modern(&server).modern_call(tool, None).await);
    }
    let answer = opener.request("tools/call", script).await;
    assert_eq!(answer["error"]["data"]["elicitations"][0]["mode"], "url", "{answer}");
    assert_eq!(one.received("tools/call").len(), 0, "another tool was called");
    // Other clients, and users who decline, get the reason.
    let (caller, declining) = (caller(&server).await, modern(&server));
    for answer in [caller.call("combo").await, declining.modern_call("combo", Some("decline")).await] {
        let (message, is_error) = text(&answer);
        assert!(is_error && message.contains("/connections/s"), "{answer}");
    }
    assert!(!text(&caller.call("lenient").await).1);
}

#[tokio::test]
async fn a_caller_without_any_token_of_a_provider_left_must_log_in_again() {
    let (one, two) = (Backend::start().await, Backend::start().await);
    let fake = FakeServer::new();
    let server = server(fake.clone(), &one, &two).await;
    for (error, status) in [
        (ProviderTokenError::Expired, StatusCode::UNAUTHORIZED),
        (ProviderTokenError::Unavailable, StatusCode::SERVICE_UNAVAILABLE),
    ] {
        fake.set("corp", Err(error));
        fake.set("hub", Err(error));
        let mut caller = Caller { address: server.address, session: String::new(), token: "valid" };
        assert_eq!(caller.initialize().await, status, "{error:?}");
    }
}

#[tokio::test]
async fn a_configuration_that_contradicts_the_authorization_server_is_rejected() {
    let (one, two) = (Backend::start().await, Backend::start().await);
    let right = config(&one, &two);
    let incoming = right.find("incomingAuth:").unwrap()..right.find("outgoingAuth:").unwrap();
    let anonymous = right.replacen(&right[incoming], "incomingAuth: {type: anonymous}\n", 1);
    for (wrong, name) in [
        (right.replace(&format!("issuer: \"{ISSUER}\""), "issuer: \"https://other.example\""), "issuer"),
        (right.replace(&format!("audience: \"{AUDIENCE}\""), "audience: other"), "audience"),
        (anonymous, "incomingAuth"),
    ] {
        let settings = Settings::parse(&wrong).unwrap_or_else(|errors| panic!("{errors:?}"));
        let error =
            with_authorization_server(settings, FakeServer::new()).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
}
