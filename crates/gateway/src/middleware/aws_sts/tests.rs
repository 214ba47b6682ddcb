//! Signing for AWS, with a fake of its security token service.

use std::{
    collections::HashMap,
    convert::Infallible,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::json;
use skep_auth::{Delegation, aws::Credentials};
use tokio::net::TcpListener;

use super::*;

type Form = HashMap<String, String>;

/// A fake of AWS: returns the same credentials to every caller, or responds with a status.
async fn fake_sts(status: u16) -> (String, Arc<Mutex<Vec<Form>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    let requests: Arc<Mutex<Vec<Form>>> = Arc::default();
    let memory = requests.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let memory = memory.clone();
            let service = service_fn(move |request: Request<Incoming>| {
                let memory = memory.clone();
                async move {
                    let body = request.into_body().collect().await.unwrap().to_bytes();
                    memory.lock().unwrap().push(form_urlencoded::parse(&body).into_owned().collect());
                    let given = "<R><Credentials><AccessKeyId>ASIA1</AccessKeyId><SecretAccessKey>s</SecretAccessKey>\
                                 <SessionToken>t</SessionToken></Credentials></R>";
                    let response = Response::builder().status(status);
                    Ok::<_, Infallible>(
                        response.body(Full::new(Bytes::from_static(given.as_bytes()))).unwrap(),
                    )
                }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    (address, requests)
}

fn middleware(endpoint: &str, changes: Value) -> AwsSts {
    let mut config = json!({
        "region": "eu-west-1",
        "role_mappings": [{"claim": "dev", "role_arn": "arn:aws:iam::123456789012:role/dev"}],
    });
    config.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    let parameters = json!({"aws_sts_config": config, "target_url": "https://mcp.aws.example/v1/mcp?a=1"});
    let parameters: AwsStsParameters = serde_json::from_value(parameters).unwrap();
    AwsSts::with_sts(&parameters, Transport::StreamableHttp, |seconds| Sts::at(endpoint, seconds)).unwrap()
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
    let (endpoint, requests) = fake_sts(200).await;
    let middleware = middleware(&endpoint, json!({"session_duration": 900}));
    for _ in 0..2 {
        let mut headers = token();
        sign(&middleware, json!({"sub": "alice@example", "groups": ["dev"]}), &mut headers).await.unwrap();
        let time = headers["x-amz-date"].to_str().unwrap().to_owned();
        let mut expected = HeaderMap::new();
        let credentials = Credentials {
            access_key_id: "ASIA1".into(),
            secret_access_key: "s".into(),
            session_token: "t".into(),
        };
        let uri = "https://mcp.aws.example/v1/mcp?a=1&b=2".parse().unwrap();
        Signer::new("eu-west-1", "aws-mcp")
            .sign(&credentials, &time, (&Method::POST, &uri), &mut expected, b"{}")
            .unwrap();
        assert_eq!(headers, expected);
        assert_eq!(headers["x-amz-security-token"], "t");
    }
    let requests = requests.lock().unwrap();
    assert_eq!(requests.len(), 1, "credentials are cached");
    let form = ["RoleArn", "RoleSessionName", "WebIdentityToken", "DurationSeconds"]
        .map(|name| requests[0][name].as_str());
    assert_eq!(form, ["arn:aws:iam::123456789012:role/dev", "alice@example", "a.token", "900"]);
}

#[tokio::test]
async fn a_request_that_cannot_be_signed_is_rejected_with_a_reason_and_not_sent_to_aws() {
    let (endpoint, requests) = fake_sts(200).await;
    let middleware = middleware(&endpoint, json!({"session_name_claim": "email"}));
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
    assert!(requests.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_token_that_aws_rejects_differs_from_an_unavailable_aws() {
    let claims = json!({"sub": "alice", "groups": ["dev"]});
    for (status, expected, code) in
        [(403, SigningError::Rejected, 401), (500, SigningError::Unavailable, 503)]
    {
        let (endpoint, _) = fake_sts(status).await;
        let error = sign(&middleware(&endpoint, json!({})), claims.clone(), &mut token()).await;
        assert_eq!(error, Err(expected));
        assert_eq!(rejected(expected).status(), code);
    }
}
