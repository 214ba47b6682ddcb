//! Signing for AWS, with a service that stands in for the one that gives credentials.

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

/// Stands in for AWS: gives every caller the same credentials, or answers with a status.
async fn fake_sts(status: u16) -> (String, Arc<Mutex<Vec<Form>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    let got: Arc<Mutex<Vec<Form>>> = Arc::default();
    let memory = got.clone();
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
    (address, got)
}

fn middleware(endpoint: &str, changes: Value) -> AwsSts {
    let mut config = json!({
        "region": "eu-west-1",
        "role_mappings": [{"claim": "dev", "role_arn": "arn:aws:iam::123456789012:role/dev"}],
    });
    config.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    let parameters = json!({"aws_sts_config": config, "target_url": "https://mcp.aws.example/v1/mcp?a=1"});
    let parameters: AwsStsParameters = serde_json::from_value(parameters).unwrap();
    AwsSts::asking(&parameters, Transport::StreamableHttp, |seconds| Sts::at(endpoint, seconds)).unwrap()
}

fn identity(claims: Value) -> Identity {
    let claims = claims.as_object().unwrap().clone();
    Identity { subject: "alice".into(), claims, delegation: Delegation::default(), is_local: false }
}

fn token() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer a.token"));
    headers.insert("x-amz-target", HeaderValue::from_static("forged"));
    headers
}

async fn signed(middleware: &AwsSts, claims: Value, headers: &mut HeaderMap) -> Result<(), Unsigned> {
    let path = PathAndQuery::from_static("/mcp?b=2");
    middleware.signed(Some(&identity(claims)), (&Method::POST, &path), headers, b"{}").await
}

#[tokio::test]
async fn the_request_is_signed_as_it_is_sent_and_the_token_stays_here() {
    let (endpoint, got) = fake_sts(200).await;
    let middleware = middleware(&endpoint, json!({"session_duration": 900}));
    for _ in 0..2 {
        let mut headers = token();
        signed(&middleware, json!({"sub": "alice@example", "groups": ["dev"]}), &mut headers).await.unwrap();
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
    let got = got.lock().unwrap();
    assert_eq!(got.len(), 1, "credentials are used again");
    let asked = ["RoleArn", "RoleSessionName", "WebIdentityToken", "DurationSeconds"]
        .map(|name| got[0][name].as_str());
    assert_eq!(asked, ["arn:aws:iam::123456789012:role/dev", "alice@example", "a.token", "900"]);
}

#[tokio::test]
async fn whoever_cannot_be_signed_for_is_told_why_and_aws_is_not_asked() {
    let (endpoint, got) = fake_sts(200).await;
    let middleware = middleware(&endpoint, json!({"session_name_claim": "email"}));
    let good = json!({"email": "a@b", "groups": ["dev"]});
    let mut none = HeaderMap::new();
    assert_eq!(signed(&middleware, good, &mut none).await, Err(Unsigned::NoToken));
    for (claims, expected) in [
        (json!({"email": "a@b", "groups": ["other"]}), Unsigned::NoRole),
        (json!({"groups": ["dev"]}), Unsigned::NoSessionName),
        (json!({"groups": ["dev"], "email": "a"}), Unsigned::NoSessionName),
        (json!({"groups": ["dev"], "email": "a b"}), Unsigned::NoSessionName),
        (json!({"groups": ["dev"], "email": "a".repeat(65)}), Unsigned::NoSessionName),
    ] {
        assert_eq!(signed(&middleware, claims.clone(), &mut token()).await, Err(expected), "{claims}");
    }
    let path = PathAndQuery::from_static("/");
    let nobody = middleware.signed(None, (&Method::GET, &path), &mut token(), b"").await;
    assert_eq!(nobody, Err(Unsigned::NoToken));
    assert!(got.lock().unwrap().is_empty());
}

#[tokio::test]
async fn aws_that_says_no_is_told_from_aws_that_is_down() {
    let claims = json!({"sub": "alice", "groups": ["dev"]});
    for (status, expected, code) in [(403, Unsigned::Refused, 401), (500, Unsigned::Unavailable, 503)] {
        let (endpoint, _) = fake_sts(status).await;
        let unsigned = signed(&middleware(&endpoint, json!({})), claims.clone(), &mut token()).await;
        assert_eq!(unsigned, Err(expected));
        assert_eq!(refused(expected).status(), code);
    }
}
