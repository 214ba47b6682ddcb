//! Credentials of AWS for callers' tokens, from a fake of its service.

use std::{
    collections::HashMap,
    convert::Infallible,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use skep_auth::aws::{Sts, StsError};
use tokio::net::TcpListener;

const ROLE: &str = "arn:aws:iam::123456789012:role/reader";

/// A fake of AWS: responds with this status and text, and records the forms that it receives.
struct FakeSts {
    address: String,
    answer: Arc<Mutex<(u16, String)>>,
    requests: Arc<Mutex<Vec<HashMap<String, String>>>>,
}

impl FakeSts {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/", listener.local_addr().unwrap());
        let answer = Arc::new(Mutex::new((200, String::new())));
        let requests: Arc<Mutex<Vec<_>>> = Arc::default();
        let (answers, memory) = (answer.clone(), requests.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answers, memory) = (answers.clone(), memory.clone());
                let service = service_fn(move |request: Request<Incoming>| {
                    let (answers, memory) = (answers.clone(), memory.clone());
                    async move {
                        let body = request.into_body().collect().await.unwrap().to_bytes();
                        memory.lock().unwrap().push(form_urlencoded::parse(&body).into_owned().collect());
                        let (status, text) = answers.lock().unwrap().clone();
                        let response = Response::builder().status(status).header("content-type", "text/xml");
                        Ok::<_, Infallible>(response.body(Full::new(Bytes::from(text))).unwrap())
                    }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { address, answer, requests }
    }

    fn respond(&self, status: u16, text: &str) {
        *self.answer.lock().unwrap() = (status, text.to_owned());
    }

    /// The response of AWS, from its documentation.
    fn respond_with_credentials(&self, key: &str) {
        self.respond(
            200,
            &format!(
                r#"<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
                  <AssumeRoleWithWebIdentityResult>
                    <SubjectFromWebIdentityToken>alice</SubjectFromWebIdentityToken>
                    <Credentials>
                      <SessionToken>session/{key}==</SessionToken>
                      <SecretAccessKey>secret&amp;{key}</SecretAccessKey>
                      <Expiration>2014-10-24T23:00:23Z</Expiration>
                      <AccessKeyId>{key}</AccessKeyId>
                    </Credentials>
                  </AssumeRoleWithWebIdentityResult>
                </AssumeRoleWithWebIdentityResponse>"#
            ),
        );
    }

    fn requests(&self) -> Vec<HashMap<String, String>> {
        self.requests.lock().unwrap().clone()
    }
}

#[tokio::test]
async fn a_token_is_exchanged_for_credentials_once_for_each_role_and_session() {
    let fake = FakeSts::start().await;
    let sts = Sts::at(&fake.address, 3600).unwrap();
    fake.respond_with_credentials("ASIA1");
    for _ in 0..3 {
        let credentials = sts.credentials(ROLE, "alice", "a.token").await.unwrap();
        assert_eq!(
            (&*credentials.access_key_id, &*credentials.secret_access_key, &*credentials.session_token),
            ("ASIA1", "secret&ASIA1", "session/ASIA1==")
        );
    }
    let expected = [
        ("Action", "AssumeRoleWithWebIdentity"),
        ("Version", "2011-06-15"),
        ("RoleArn", ROLE),
        ("RoleSessionName", "alice"),
        ("WebIdentityToken", "a.token"),
        ("DurationSeconds", "3600"),
    ];
    let expected: HashMap<_, _> = expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    assert_eq!(fake.requests(), [expected]);
    fake.respond_with_credentials("ASIA2");
    for (role, session, token) in
        [("arn:aws:iam::1:role/x", "alice", "a.token"), (ROLE, "bob", "a.token"), (ROLE, "alice", "b.token")]
    {
        let credentials = sts.credentials(role, session, token).await.unwrap();
        assert_eq!(credentials.access_key_id, "ASIA2", "{role} {session} {token}");
    }
    assert_eq!(fake.requests().len(), 4);
}

#[tokio::test]
async fn credentials_that_expire_soon_are_used_once() {
    let fake = FakeSts::start().await;
    let sts = Sts::at(&fake.address, 60).unwrap();
    fake.respond_with_credentials("ASIA1");
    for count in 1..3 {
        sts.credentials(ROLE, "alice", "a.token").await.unwrap();
        assert_eq!(fake.requests().len(), count);
    }
}

#[tokio::test]
async fn a_rejected_token_differs_from_an_unavailable_service_and_neither_quotes_the_token() {
    let fake = FakeSts::start().await;
    let sts = Sts::at(&fake.address, 3600).unwrap();
    let error = |code: &str| {
        format!(
            "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>a.token</Message></Error></ErrorResponse>"
        )
    };
    for (status, text, rejected, expected) in [
        (400, error("ExpiredTokenException"), true, "ExpiredTokenException"),
        (403, error("AccessDenied"), true, "AccessDenied"),
        (400, error("a.token"), true, "no reason given"),
        (400, error("IDPCommunicationError"), false, "status 400"),
        (400, error("ThrottlingException"), false, "status 400"),
        (429, String::new(), false, "status 429"),
        (503, String::new(), false, "status 503"),
        (302, String::new(), false, "status 302"),
        (200, "{}".into(), false, "it has no credentials"),
        (200, "<!DOCTYPE x [<!ENTITY y \"z\">]><x>&y;</x>".into(), false, "it has no credentials"),
        (200, "<Credentials><AccessKeyId>k</AccessKeyId></Credentials>".into(), false, "no credentials"),
        (200, "x".repeat(65 << 10), false, "too large"),
    ] {
        fake.respond(status, &text);
        let error = sts.credentials(ROLE, "alice", "a.token").await.unwrap_err();
        assert_eq!(matches!(error, StsError::Rejected(_)), rejected, "{status} {text:.80}");
        let message = error.to_string();
        assert!(message.contains(expected) && !message.contains("a.token"), "{message}");
    }
}
