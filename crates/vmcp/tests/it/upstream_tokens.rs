//! Backends that get the caller's token of an identity provider. The authorization server is a fake.

use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde_json::{Map, Value, json};
use skep_auth::{AuthenticationError, OwnTokens};
use skep_vmcp::{AuthorizationServer, ConnectionSource, Connections, ProviderTokenError, Settings};
use tokio::net::TcpStream;

use crate::{Server, backend::Backend, client::text};

const ISSUER: &str = "https://as.example";
const AUDIENCE: &str = "https://as.example/mcp";

/// A fake: it knows the tokens `valid` of ann and `other` of bob, and has what the test says of each provider.
pub(crate) struct FakeServer(Mutex<HashMap<&'static str, Result<&'static str, ProviderTokenError>>>);

impl FakeServer {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(HashMap::from([("corp", Ok("corp-token")), ("hub", Ok("hub-token"))]))))
    }

    pub(crate) fn set(&self, provider: &'static str, token: Result<&'static str, ProviderTokenError>) {
        self.0.lock().unwrap().insert(provider, token);
    }

    /// The token of a session. That of bob has his name.
    fn token(&self, session: &str, provider: &str) -> Result<String, ProviderTokenError> {
        let token = self.0.lock().unwrap()[provider]?;
        match session {
            "s" => Ok(token.to_owned()),
            "s2" => Ok(format!("{token}-of-bob")),
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
        let token = self.token(session, provider);
        async { token }.boxed()
    }

    fn provider_id_token<'a>(
        &'a self,
        session: &'a str,
        provider: &'a str,
    ) -> BoxFuture<'a, Result<String, ProviderTokenError>> {
        let token = self.token(session, provider).map(|token| format!("id-{token}"));
        async { token }.boxed()
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
    Server::run(settings.with_authorization_server(fake).unwrap(), None, None).await
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
            settings.with_authorization_server(FakeServer::new()).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
}
