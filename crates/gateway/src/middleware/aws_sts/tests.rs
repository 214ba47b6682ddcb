//! Signing for AWS, with a fake of its security token service.

use std::net::IpAddr;

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use http::Request;
use hyper::body::Incoming;
use serde_json::{Map, Value, json};
use skep_auth::{AuthenticationError, Delegation, OwnTokens, aws::Signer};
use skep_config::run_config::Transport;
use skep_testkit::FakeSts;

use super::*;
use crate::AuthorizationServer;

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

async fn sign(middleware: &AwsSts, claims: Value, headers: &mut HeaderMap) -> Result<(), SigningError> {
    let path = PathAndQuery::from_static("/mcp?b=2");
    let signing = middleware.signing(Some(&identity(claims)), headers).await?;
    signing.sign((&Method::POST, &path), headers, b"{}")
}

#[tokio::test]
async fn a_request_is_signed_as_it_is_sent_and_its_token_is_removed() {
    let fake = FakeSts::start().await;
    fake.respond_with_credentials("ASIA1");
    let middleware = middleware(&fake.address, json!({"session_duration": 900}));
    for _ in 0..2 {
        let mut headers = token();
        sign(&middleware, json!({"sub": "alice@example", "groups": ["dev"]}), &mut headers).await.unwrap();
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
    let good = json!({"email": "a@b", "groups": ["dev"]});
    let mut none = HeaderMap::new();
    assert_eq!(sign(&middleware, good, &mut none).await, Err(SigningError::NoToken));
    for (claims, expected) in [
        (json!({"email": "a@b", "groups": ["other"]}), SigningError::NoRole),
        (json!({"groups": ["dev"]}), SigningError::NoSessionName),
        (json!({"groups": ["dev"], "email": "a"}), SigningError::NoSessionName),
        (json!({"groups": ["dev"], "email": "a b"}), SigningError::NoSessionName),
        (json!({"groups": ["dev"], "email": "a".repeat(65)}), SigningError::NoSessionName),
    ] {
        assert_eq!(sign(&middleware, claims.clone(), &mut token()).await, Err(expected), "{claims}");
    }
    let anonymous = middleware.signing(None, &token()).await.err();
    assert_eq!(anonymous, Some(SigningError::NoToken));
    assert!(fake.requests().is_empty());
}

#[tokio::test]
async fn a_token_that_aws_rejects_differs_from_an_unavailable_aws() {
    let claims = json!({"sub": "alice", "groups": ["dev"]});
    for (status, expected, code) in
        [(403, SigningError::Rejected, 401), (500, SigningError::Unavailable, 503)]
    {
        let fake = FakeSts::start().await;
        fake.respond(status, "");
        let error = sign(&middleware(&fake.address, json!({})), claims.clone(), &mut token()).await;
        assert_eq!(error, Err(expected));
        assert_eq!(rejected(expected).status(), code);
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

    fn connections_url(&self, _: &str) -> String {
        String::new()
    }

    fn provider_token<'a>(
        &'a self,
        session: &'a str,
        _: &'a str,
    ) -> BoxFuture<'a, Result<String, ProviderTokenError>> {
        let token = match session {
            "ann" => Ok("token-of-corp".to_owned()),
            "down" => Err(ProviderTokenError::Unavailable),
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

#[tokio::test]
async fn the_callers_token_of_a_provider_is_exchanged_where_one_is_named() {
    let fake = FakeSts::start().await;
    fake.respond_with_credentials("ASIA1");
    let context = ChainContext {
        server: "s",
        host: "",
        remote_url: "",
        transport: Transport::StreamableHttp,
        trusts_proxy_headers: false,
        is_virtual: false,
        own_tools: &[],
        unauthenticated: Identity::local(),
        authorization_server: Some(Arc::new(FakeServer)),
        sessions: None,
    };
    let provider = Provider::new("awssts: subject_provider_name", "corp", &context).unwrap();
    let middleware = AwsSts { provider: Some(provider), ..middleware(&fake.address, json!({})) };
    let signed = async |session: Option<&str>| {
        let claims = json!({"sub": "alice", "groups": ["dev"]});
        let caller = Identity { session: session.map(Into::into), ..identity(claims) };
        middleware.signing(Some(&caller), &token()).await.map(|_| ())
    };
    assert!(signed(Some("ann")).await.is_ok());
    assert_eq!(fake.requests()[0]["WebIdentityToken"], "token-of-corp");
    for session in [None, Some("not-connected")] {
        assert!(matches!(signed(session).await, Err(SigningError::NoToken)), "{session:?}");
    }
    assert!(matches!(signed(Some("down")).await, Err(SigningError::Unavailable)));
    assert_eq!(fake.requests().len(), 1, "the caller's own token was exchanged");
    let wrong = Provider::new("awssts: subject_provider_name", "other", &context).err().unwrap().to_string();
    assert!(wrong.starts_with("awssts: subject_provider_name: ") && wrong.contains("other"), "{wrong}");
}
