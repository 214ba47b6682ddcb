//! Credentials of AWS for callers' tokens, from a fake of its service.

use std::collections::HashMap;

use skep_auth::aws::{Sts, StsError};
use skep_testkit::FakeSts;

const ROLE: &str = "arn:aws:iam::123456789012:role/reader";

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
async fn requests_that_need_the_same_credentials_wait_for_one() {
    let fake = FakeSts::start().await;
    let sts = Sts::at(&fake.address, 3600).unwrap();
    fake.respond_with_credentials("ASIA1");
    let all = futures::future::join_all((0..8).map(|_| sts.credentials(ROLE, "alice", "a.token"))).await;
    assert!(all.iter().all(Result::is_ok));
    assert_eq!(fake.requests().len(), 1);
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
