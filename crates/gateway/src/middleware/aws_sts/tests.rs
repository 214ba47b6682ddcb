//! Signing for AWS, with a fake of its security token service.

use std::{
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use http::Request;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::{Map, Value, json};
use skep_auth::{AuthenticationError, Delegation, OwnTokens, aws::Signer};
use skep_config::run_config::Transport;
use skep_mcp::CONNECT_INPUT;
use skep_testkit::FakeSts;

use super::*;
use crate::{
    AuthorizationServer, ConnectionSource, Connections, ProviderTokenError,
    body::Budget,
    identity::Identity,
    message::ParsedMessage,
    middleware::Extras,
    sessions::{Session, Sessions},
};

fn middleware(endpoint: &str, changes: Value) -> AwsSts {
    let mut config = json!({
        "region": "eu-west-1",
        "role_mappings": [{"claim": "dev", "role_arn": "arn:aws:iam::123456789012:role/dev"}],
    });
    config.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    let signer = RoleSigner::at(&serde_json::from_value(config).unwrap(), endpoint).unwrap();
    let target = Target::remote("https://mcp.aws.example/v1/mcp?a=1", Transport::StreamableHttp).unwrap();
    AwsSts { provider: None, place: Arc::new(Place { signer, target }) }
}

fn identity(claims: Value) -> Identity {
    let claims = claims.as_object().unwrap().clone();
    Identity {
        subject: "alice".into(),
        claims,
        delegation: Delegation::default(),
        is_local: false,
        session: None,
    }
}

fn token() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer a.token"));
    headers.insert("x-amz-target", HeaderValue::from_static("forged"));
    headers
}

/// A request of this caller.
fn exchange(identity: Option<Identity>, headers: HeaderMap) -> Exchange {
    let (head, ()) = Request::post("/mcp?b=2").body(()).unwrap().into_parts();
    let mut exchange = Exchange::new(head, (Ipv4Addr::LOCALHOST, 1).into(), &Budget::new(1 << 20));
    exchange.headers = headers;
    exchange.body = Bytes::from_static(b"{}");
    exchange.caller.identity = identity.map(Arc::new);
    exchange
}

/// The headers of a request that was signed, or the status and the text of its response.
async fn sign(
    middleware: &AwsSts,
    identity: Option<Identity>,
    headers: HeaderMap,
) -> Result<HeaderMap, (u16, String)> {
    let mut exchange = exchange(identity, headers);
    match middleware.request(&mut exchange).await {
        Ok(()) => Ok(exchange.headers),
        Err(response) => Err(described(response).await),
    }
}

async fn described(response: ErrorResponse) -> (u16, String) {
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

fn failure(status: u16, error: SigningError) -> Result<HeaderMap, (u16, String)> {
    Err((status, format!("{error}\n")))
}

#[tokio::test]
async fn a_request_is_signed_as_it_is_sent_and_its_token_is_removed() {
    let fake = FakeSts::start().await;
    fake.respond_with_credentials("ASIA1");
    let middleware = middleware(&fake.address, json!({"session_duration": 900}));
    for _ in 0..2 {
        let caller = identity(json!({"sub": "alice@example", "groups": ["dev"]}));
        let headers = sign(&middleware, Some(caller), token()).await.unwrap();
        let time = headers["x-amz-date"].to_str().unwrap().to_owned();
        let mut expected = HeaderMap::new();
        let credentials = Credentials {
            access_key_id: "ASIA1".into(),
            secret_access_key: "secret&ASIA1".into(),
            session_token: "session/ASIA1==".into(),
        };
        let uri = "https://mcp.aws.example/v1/mcp?a=1&b=2".parse().unwrap();
        Signer::new("eu-west-1", "aws-mcp")
            .sign(&credentials, &time, (&Method::POST, &uri), &mut expected, b"{}")
            .unwrap();
        assert_eq!(headers, expected);
        assert_eq!(headers["x-amz-security-token"], "session/ASIA1==");
    }
    let requests = fake.requests();
    assert_eq!(requests.len(), 1, "credentials are cached");
    let form = ["RoleArn", "RoleSessionName", "WebIdentityToken", "DurationSeconds"]
        .map(|name| requests[0][name].as_str());
    assert_eq!(form, ["arn:aws:iam::123456789012:role/dev", "alice@example", "a.token", "900"]);
}

#[tokio::test]
async fn a_request_that_cannot_be_signed_is_rejected_with_a_reason_and_not_sent_to_aws() {
    let fake = FakeSts::start().await;
    fake.respond_with_credentials("ASIA1");
    let middleware = middleware(&fake.address, json!({"session_name_claim": "email"}));
    let good = identity(json!({"email": "a@b", "groups": ["dev"]}));
    let no_token = failure(401, SigningError::NoToken);
    assert_eq!(sign(&middleware, Some(good), HeaderMap::new()).await, no_token);
    for (claims, expected) in [
        (json!({"email": "a@b", "groups": ["other"]}), failure(403, SigningError::NoRole)),
        (json!({"groups": ["dev"]}), failure(401, SigningError::NoSessionName)),
        (json!({"groups": ["dev"], "email": "a"}), failure(401, SigningError::NoSessionName)),
        (json!({"groups": ["dev"], "email": "a b"}), failure(401, SigningError::NoSessionName)),
        (json!({"groups": ["dev"], "email": "a".repeat(65)}), failure(401, SigningError::NoSessionName)),
    ] {
        assert_eq!(sign(&middleware, Some(identity(claims.clone())), token()).await, expected, "{claims}");
    }
    assert_eq!(sign(&middleware, None, token()).await, no_token);
    assert!(fake.requests().is_empty());
}

#[tokio::test]
async fn a_token_that_aws_rejects_differs_from_an_unavailable_aws() {
    let claims = json!({"sub": "alice", "groups": ["dev"]});
    for (status, expected) in
        [(403, failure(401, SigningError::Rejected)), (500, failure(503, SigningError::Unavailable))]
    {
        let fake = FakeSts::start().await;
        fake.respond(status, "");
        let caller = Some(identity(claims.clone()));
        assert_eq!(sign(&middleware(&fake.address, json!({})), caller, token()).await, expected);
    }
}

/// A fake authorization server: `ann` is a session with a token of `corp`, and others have what their names say.
struct FakeServer;

impl OwnTokens for FakeServer {
    fn issuer(&self) -> &str {
        "https://as.example"
    }

    fn claims<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Map<String, Value>, AuthenticationError>> {
        async { Err(AuthenticationError::Unavailable) }.boxed()
    }
}

impl ConnectionSource for FakeServer {
    fn connections(&self, _: usize) -> BoxFuture<'_, Result<Connections, ProviderTokenError>> {
        async { Err(ProviderTokenError::Unavailable) }.boxed()
    }
}

impl AuthorizationServer for FakeServer {
    fn serves(&self, _: &str) -> bool {
        false
    }

    fn respond(&self, _: Request<Incoming>, _: IpAddr) -> BoxFuture<'_, Response<Bytes>> {
        async { Response::default() }.boxed()
    }

    fn audiences(&self) -> &[String] {
        &[]
    }

    fn providers(&self) -> Vec<&str> {
        vec!["corp"]
    }

    fn injects_tokens(&self) -> bool {
        true
    }

    fn connections_url(&self, session: &str) -> String {
        format!("https://as.example/connections/{session}")
    }

    fn provider_token<'a>(
        &'a self,
        session: &'a str,
        _: &'a str,
    ) -> BoxFuture<'a, Result<String, ProviderTokenError>> {
        let token = match session {
            "ann" => Ok("token-of-corp".to_owned()),
            "down" => Err(ProviderTokenError::Unavailable),
            "expired" => Err(ProviderTokenError::Expired),
            _ => Err(ProviderTokenError::NotConnected),
        };
        async { token }.boxed()
    }

    fn provider_id_token<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
    ) -> BoxFuture<'a, Result<String, ProviderTokenError>> {
        async { Err(ProviderTokenError::NoIdToken) }.boxed()
    }

    fn provider_claims<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Option<Map<String, Value>>, ProviderTokenError>> {
        async { Ok(None) }.boxed()
    }
}

fn context(sessions: Option<Sessions>) -> ChainContext<'static> {
    ChainContext {
        server: "s",
        host: "",
        remote_url: "",
        transport: Transport::StreamableHttp,
        trusts_proxy_headers: false,
        is_virtual: false,
        own_tools: &[],
        unauthenticated: Identity::local(),
        extras: Extras { authorization_server: Some(Arc::new(FakeServer)), ..Extras::default() },
        sessions,
    }
}

/// The middleware for the callers' tokens of a provider.
fn of_provider(fake: &FakeSts, sessions: Option<Sessions>) -> AwsSts {
    let field = "awssts: subject_provider_name";
    let provider = ProviderToken::new(field, "corp", None, &context(sessions)).unwrap();
    AwsSts { provider: Some(provider), ..middleware(&fake.address, json!({})) }
}

fn caller(session: Option<&str>) -> Identity {
    let claims = json!({"sub": "alice", "groups": ["dev"]});
    Identity { session: session.map(Into::into), ..identity(claims) }
}

#[tokio::test]
async fn the_callers_token_of_a_provider_is_exchanged_where_one_is_named() {
    let fake = FakeSts::start().await;
    fake.respond_with_credentials("ASIA1");
    let middleware = of_provider(&fake, None);
    let signed = async |session: Option<&str>| sign(&middleware, Some(caller(session)), token()).await;
    assert!(signed(Some("ann")).await.is_ok());
    assert_eq!(fake.requests()[0]["WebIdentityToken"], "token-of-corp");
    for (session, status) in
        [(None, 401), (Some("not-connected"), 401), (Some("expired"), 401), (Some("down"), 503)]
    {
        assert_eq!(signed(session).await.unwrap_err().0, status, "{session:?}");
    }
    assert_eq!(fake.requests().len(), 1, "the caller's own token was exchanged");
    let wrong = ProviderToken::new("awssts: subject_provider_name", "other", None, &context(None));
    let wrong = wrong.err().unwrap().to_string();
    assert!(wrong.starts_with("awssts: subject_provider_name: ") && wrong.contains("other"), "{wrong}");
}

/// A call in a session of a client with these capabilities.
async fn call_in_session(sessions: &Sessions, session: &str, capabilities: &Value) -> Exchange {
    let initialize = json!({"params": {"capabilities": capabilities}}).to_string();
    let mut headers = token();
    headers.insert("mcp-session-id", HeaderValue::from_static("of-the-server"));
    let mut exchange = exchange(Some(caller(Some(session))), headers);
    let started = Session {
        server_id: None,
        pod: None,
        initialize: Some(initialize.into_bytes().into()),
        owner: Some(exchange.owner()),
    };
    sessions.put("of-the-server", started, Ipv4Addr::LOCALHOST.into()).await.unwrap();
    with_message(&mut exchange, json!({"name": "echo"}));
    exchange
}

/// The same since 2026-07-28, where there are no sessions.
fn call_without_session(session: &str, capabilities: &Value) -> Exchange {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    let mut headers = token();
    for (name, value) in
        [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "echo")]
    {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let mut exchange = exchange(Some(caller(Some(session))), headers);
    with_message(&mut exchange, json!({"name": "echo", "_meta": meta}));
    exchange
}

fn with_message(exchange: &mut Exchange, params: Value) {
    let call = json!({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": params});
    exchange.body = call.to_string().into();
    exchange.message = Some(ParsedMessage::of(&exchange.headers, &exchange.body).unwrap());
}

#[tokio::test]
async fn a_caller_who_is_not_connected_to_the_provider_learns_where_to_go() {
    let fake = FakeSts::start().await;
    fake.respond_with_credentials("ASIA1");
    let sessions = Sessions::new(Duration::from_secs(60), None, "s").unwrap();
    let middleware = of_provider(&fake, Some(sessions.clone()));
    for session in ["not-connected", "expired"] {
        let opens_urls = json!({"elicitation": {"form": {}, "url": {}}});
        let calls = [
            call_in_session(&sessions, session, &opens_urls).await,
            call_without_session(session, &opens_urls),
        ];
        for mut call in calls {
            let is_modern = call.headers.get("mcp-protocol-version").is_some();
            let (status, body) = described(middleware.request(&mut call).await.unwrap_err()).await;
            let body: Value = serde_json::from_str(&body).unwrap();
            assert_eq!((status, &body["id"]), (200, &json!("c")), "{body}");
            let elicitation = if is_modern {
                assert_eq!(body["result"]["resultType"], "input_required", "{body}");
                &body["result"]["inputRequests"][CONNECT_INPUT]["params"]
            } else {
                assert_eq!(body["error"]["code"], -32042, "{body}");
                &body["error"]["data"]["elicitations"][0]
            };
            assert_eq!(elicitation["url"], format!("https://as.example/connections/{session}"), "{body}");
        }
        for capabilities in [json!({}), json!({"elicitation": {"form": {}}})] {
            let calls = [
                call_in_session(&sessions, session, &capabilities).await,
                call_without_session(session, &capabilities),
            ];
            for mut call in calls {
                let response = middleware.request(&mut call).await.unwrap_err();
                let challenge = response.headers()[header::WWW_AUTHENTICATE].to_str().unwrap().to_owned();
                assert!(challenge.contains(r#"error="invalid_token""#), "{challenge}");
                let (status, body) = described(response).await;
                assert!(status == 401 && body.contains("authenticate again"), "{body}");
            }
        }
    }
    assert!(fake.requests().is_empty(), "a token was exchanged");
}

/// A caller who listens does so for as long as the session goes on.
#[tokio::test(start_paused = true)]
async fn a_stream_ends_soon_after_its_session_and_not_while_that_cannot_be_checked() {
    use crate::middleware::authentication::session_end;
    let end = |session: &str| session_end(Arc::new(FakeServer), session.into());
    for (session, ends) in [("expired", true), ("ann", false), ("down", false)] {
        let waited = tokio::time::timeout(2 * crate::limits::SESSION_CHECK, end(session)).await;
        assert_eq!(waited.is_ok(), ends, "{session}");
    }
}
