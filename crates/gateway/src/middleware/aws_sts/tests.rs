//! Signing for AWS, with a fake of its security token service.

use serde_json::{Value, json};
use skep_auth::{Delegation, aws::Signer};
use skep_config::run_config::Transport;
use skep_testkit::FakeSts;

use super::*;

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
