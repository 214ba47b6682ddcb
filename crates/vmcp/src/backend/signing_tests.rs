//! Requests to backends that AWS authenticates, with a fake of its security token service.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::json;
use skep_auth::{
    Delegation,
    aws::{Credentials, Signer},
};
use skep_gateway::outbound::Client;
use skep_testkit::FakeSts;
use tokio::{net::TcpListener, sync::watch};

use super::credentials::signed_at;
use super::*;

const ROLE: &str = "arn:aws:iam::123456789012:role/dev";

/// A request as a backend got it.
type Received = (Method, Uri, HeaderMap, Bytes);

/// A backend that remembers requests, and redirects those for `/old`.
async fn server() -> (Uri, Arc<Mutex<Vec<Received>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: Uri = format!("http://{}/old?a=1", listener.local_addr().unwrap()).parse().unwrap();
    let received: Arc<Mutex<Vec<Received>>> = Arc::default();
    let memory = received.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let memory = memory.clone();
            let service = service_fn(move |request: Request<Incoming>| {
                let memory = memory.clone();
                async move {
                    let (head, body) = request.into_parts();
                    let is_old = head.uri.path() == "/old";
                    let body = body.collect().await.unwrap().to_bytes();
                    memory.lock().unwrap().push((head.method, head.uri, head.headers, body));
                    let response = Response::builder().status(if is_old { 307 } else { 200 });
                    let response = response.header("location", "/new?b=2");
                    Ok::<_, Infallible>(response.body(Full::new(Bytes::new())).unwrap())
                }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    (address, received)
}

fn backend(uri: Uri, endpoint: &str) -> Backend {
    let blueprint = Blueprint {
        name: "files".into(),
        url: uri.to_string(),
        transport: BackendTransport::StreamableHttp,
        strategy: None,
        auth_config: None,
        headers: Default::default(),
        authorities: Authorities::System,
    };
    let checks = Checks {
        interval: Duration::from_secs(30),
        timeout: Duration::from_secs(10),
        thresholds: Thresholds::new(None),
    };
    let config = json!({"region": "eu-west-1", "roleMappings": [{"claim": "dev", "roleArn": ROLE}]});
    let settings = Settings {
        blueprint,
        uri,
        transport: BackendTransport::StreamableHttp,
        credentials: signed_at(endpoint, config),
        headers: HeaderMap::new(),
        timeout: Duration::from_secs(10),
        checks,
        budget: Budget::new(1 << 20),
    };
    Backend::new(settings, Arc::new(Client::new(false).unwrap()), Arc::new(watch::Sender::new(0)))
}

fn caller(subject: &str, groups: &[&str]) -> Caller {
    let claims = json!({"sub": subject, "groups": groups});
    let identity = Identity {
        subject: subject.into(),
        claims: claims.as_object().unwrap().clone(),
        delegation: Delegation::default(),
        is_local: false,
        session: None,
    };
    let mut headers = HeaderMap::new();
    headers.insert("x-amz-target", HeaderValue::from_static("forged"));
    Caller {
        identity: Some(Arc::new(identity)),
        token: Some(format!("token-of-{subject}").into()),
        headers,
        holder: None,
    }
}

/// The signature that a request must have.
fn expected(address: &Uri, (method, path, headers, body): &Received, key: &str) -> String {
    let credentials = Credentials {
        access_key_id: key.into(),
        secret_access_key: format!("secret&{key}"),
        session_token: format!("session/{key}=="),
    };
    let uri: Uri = format!("http://{}{path}", address.authority().unwrap()).parse().unwrap();
    let mut signed = HeaderMap::new();
    signed.extend(headers.get("content-type").map(|type_| (http::header::CONTENT_TYPE, type_.clone())));
    let time = headers["x-amz-date"].to_str().unwrap();
    let signer = Signer::new("eu-west-1", "aws-mcp");
    signer.sign(&credentials, time, (method, &uri), &mut signed, body).unwrap();
    signed["authorization"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_request_is_signed_by_its_final_bytes_for_each_address_that_it_is_sent_to() {
    let sts = FakeSts::start().await;
    sts.respond_with_credentials("ASIA1");
    let (address, received) = server().await;
    let backend = backend(address.clone(), &sts.address);
    let ann = caller("ann", &["dev"]);
    for body in ["{\"a\":1}", "{\"b\":2}"] {
        let mut headers = backend.headers(&ann);
        headers.insert("mcp-session-id", HeaderValue::from_static("s"));
        backend.post(&ann, headers, body.into()).await.unwrap();
    }
    let received = received.lock().unwrap();
    assert_eq!(received.len(), 4, "each request is redirected once");
    for request in &*received {
        assert_eq!(request.2["authorization"], expected(&address, request, "ASIA1"), "{}", request.1);
        assert_eq!(request.2.get("x-amz-target"), None);
    }
    assert_eq!(sts.requests().len(), 1, "credentials are cached");
    assert_eq!(sts.requests()[0]["WebIdentityToken"], "token-of-ann");
    assert_eq!((&*sts.requests()[0]["RoleArn"], &*sts.requests()[0]["RoleSessionName"]), (ROLE, "ann"));
}

#[tokio::test]
async fn credentials_of_one_caller_never_sign_a_request_of_another() {
    let sts = FakeSts::start().await;
    let (address, received) = server().await;
    let backend = backend(address.clone(), &sts.address);
    for (name, key) in [("ann", "ASIA1"), ("bob", "ASIA2"), ("ann", "ASIA1")] {
        sts.respond_with_credentials(key);
        let caller = caller(name, &["dev"]);
        backend.post(&caller, backend.headers(&caller), "{}".into()).await.unwrap();
        let received = received.lock().unwrap();
        let last = received.last().unwrap();
        assert_eq!(last.2["authorization"], expected(&address, last, key), "{name}");
    }
    assert_eq!(sts.requests().len(), 2);
}

#[tokio::test]
async fn a_caller_without_a_role_or_whose_token_aws_rejects_sends_nothing() {
    let sts = FakeSts::start().await;
    let (address, received) = server().await;
    let backend = backend(address, &sts.address);
    sts.respond(403, "<Error><Code>AccessDenied</Code><Message>token-of-ann</Message></Error>");
    let without_token = Caller { token: None, ..caller("ann", &["dev"]) };
    for (caller, expected) in [
        (caller("ann", &["other"]), "no AWS role is mapped to this caller"),
        (caller("a", &["dev"]), "the token has no valid claim for the name of the AWS session"),
        (caller("ann", &["dev"]), "AWS rejected the token"),
        (without_token, "the caller has no token"),
    ] {
        let error = backend.post(&caller, backend.headers(&caller), "{}".into()).await.err().unwrap();
        assert_eq!(error, BackendError::NoCredentials(expected.into()));
    }
    assert!(received.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_caller_without_credentials_does_not_decide_what_the_backend_speaks() {
    let sts = FakeSts::start().await;
    let (address, _) = server().await;
    let backend = std::sync::Arc::new(backend(address, &sts.address));
    let opened = backend.open(&caller("ann", &[]), &"{}".into(), skep_mcp::Era::Modern).await;
    assert!(matches!(opened, Err(BackendError::NoCredentials(_))));
    assert!(backend.spoken().is_none());
}
