//! Attacks on the endpoints for administrators, and what an administrator gets.

use std::{fs, sync::Mutex};

use futures::FutureExt;
use http_body_util::BodyExt;
use skep_testkit::IdentityProvider;

use super::*;

const ADMINISTRATOR: &str = "system:serviceaccount:n:admin";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/namespaces/n/localsubjectaccessreviews";
const OBJECT: (&str, &str, &str) = ("MCPServer", "n", "a");

/// Records what it is asked for.
#[derive(Default)]
struct FakeServer {
    requests: Mutex<Vec<Request>>,
    is_down: bool,
}

impl Administration for FakeServer {
    fn administer<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Value, AdministrationError>> {
        self.requests.lock().unwrap().push(request.clone());
        let answer = if self.is_down { Err(AdministrationError) } else { Ok(json!({"sessions": []})) };
        futures::future::ready(answer).boxed()
    }
}

/// The endpoints of an object. The API server is a fake, which publishes keys and reviews rights.
struct Fixture {
    api_server: IdentityProvider,
    server: Arc<FakeServer>,
    page: AdministrationPage,
}

impl Fixture {
    async fn new(is_down: bool) -> Self {
        let api_server = IdentityProvider::start().await;
        let token = std::env::temp_dir().join(format!("skep-token-{}", uuid::Uuid::new_v4()));
        fs::write(&token, "own-token\n").unwrap();
        let oidc = Oidc {
            audience: audience(OBJECT.0, OBJECT.1, OBJECT.2),
            jwks_url: format!("{}/keys", api_server.issuer),
            auth_token_file: token.display().to_string(),
            insecure_allow_http: true,
            allow_private_ip: true,
            ..Oidc::default()
        };
        let server = Arc::new(FakeServer { is_down, ..FakeServer::default() });
        let page = AdministrationPage::of_object(OBJECT, &oidc, &api_server.issuer, server.clone()).unwrap();
        let fixture = Self { api_server, server, page };
        fixture.decide(&json!({"allowed": true}));
        fixture
    }

    /// What the API server decides from now on.
    fn decide(&self, status: &Value) {
        self.api_server.answer(REVIEWS, json!({"status": 201, "body": {"status": status}}));
    }

    fn token(&self, subject: &str, (kind, namespace, name): (&str, &str, &str)) -> String {
        self.api_server.token(json!({"sub": subject, "aud": [audience(kind, namespace, name)]}))
    }

    async fn send(&self, method: Method, path: &str, token: &str) -> (StatusCode, String) {
        let value = HeaderValue::from_str(&format!("Bearer {token}")).unwrap();
        let headers = HeaderMap::from_iter([(header::AUTHORIZATION, value)]);
        let response = self.page.respond(&method, &path.parse().unwrap(), &headers).await;
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    /// The reviews that the API server has got.
    fn reviews(&self) -> Vec<Value> {
        let requests = self.api_server.requests(REVIEWS).into_iter();
        let reviews = requests.map(|request| {
            assert_eq!(request.headers[header::AUTHORIZATION], "Bearer own-token");
            // A fake that takes bodies for forms has the whole text as a name.
            serde_json::from_str(request.form.keys().next().unwrap()).unwrap()
        });
        reviews.collect()
    }

    fn requests(&self) -> Vec<Request> {
        self.server.requests.lock().unwrap().clone()
    }
}

#[tokio::test]
async fn nobody_without_a_token_for_this_object_is_listened_to() {
    let fixture = Fixture::new(false).await;
    let foreign = IdentityProvider::start().await;
    let claims = json!({"sub": ADMINISTRATOR, "aud": [audience("MCPServer", "n", "a")]});
    let expired = json!({"sub": ADMINISTRATOR, "aud": [audience("MCPServer", "n", "a")], "exp": 1});
    let calls = skep_config::calls::audience("MCPServer", "n", "a");
    for token in [
        String::new(),
        "x".into(),
        foreign.token(claims),
        fixture.api_server.token(expired),
        fixture.api_server.token(json!({"sub": ADMINISTRATOR, "aud": "https://kubernetes.default.svc"})),
        fixture.api_server.token(json!({"sub": ADMINISTRATOR, "aud": calls})),
        fixture.token(ADMINISTRATOR, ("MCPServer", "n", "b")),
        fixture.token(ADMINISTRATOR, ("MCPServer", "m", "a")),
        fixture.token(ADMINISTRATOR, ("MCPRemoteProxy", "n", "a")),
    ] {
        for path in [SESSIONS, CLIENTS, "/skep/sessions?user=ann"] {
            for method in [Method::GET, Method::DELETE] {
                assert_eq!(fixture.send(method, path, &token).await.0, StatusCode::UNAUTHORIZED, "{token}");
            }
        }
    }
    let none = fixture.page.respond(&Method::GET, &SESSIONS.parse().unwrap(), &HeaderMap::new()).await;
    assert_eq!(none.status(), StatusCode::UNAUTHORIZED);
    assert!(fixture.requests().is_empty() && fixture.reviews().is_empty());
}

#[tokio::test]
async fn an_account_without_the_right_is_denied_whatever_it_requests() {
    let fixture = Fixture::new(false).await;
    let token = fixture.token(ADMINISTRATOR, OBJECT);
    for denied in [json!({"allowed": false}), json!({}), json!({"allowed": true, "denied": true})] {
        fixture.decide(&denied);
        for (method, path) in [
            (Method::GET, SESSIONS),
            (Method::GET, "/skep/sessions?nonsense=1"),
            (Method::DELETE, "/skep/sessions?user=ann"),
            (Method::DELETE, "/skep/clients?client=c"),
        ] {
            assert_eq!(fixture.send(method, path, &token).await.0, StatusCode::FORBIDDEN, "{path}");
        }
    }
    // A subject that is no ServiceAccount, whatever the API server would say about a user of that name.
    fixture.decide(&json!({"allowed": true}));
    let reviews = fixture.reviews().len();
    for subject in ["ann", "system:serviceaccount:n", "system:masters"] {
        let token = fixture.token(subject, OBJECT);
        assert_eq!(fixture.send(Method::GET, SESSIONS, &token).await.0, StatusCode::FORBIDDEN);
    }
    assert_eq!((fixture.reviews().len(), fixture.requests().len()), (reviews, 0));
}

#[tokio::test]
async fn what_cannot_be_decided_is_not_allowed() {
    let fixture = Fixture::new(false).await;
    let token = fixture.token(ADMINISTRATOR, OBJECT);
    for answer in [
        json!({"status": 500, "body": {"status": {"allowed": true}}}),
        json!({"status": 403, "body": {"status": {"allowed": true}}}),
        json!({"status": 200, "body": {"status": {"allowed": true}}}),
    ] {
        fixture.api_server.answer(REVIEWS, answer);
        let (status, body) = fixture.send(Method::GET, SESSIONS, &token).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{body}");
    }
    fixture.api_server.down();
    assert_eq!(fixture.send(Method::GET, SESSIONS, &token).await.0, StatusCode::SERVICE_UNAVAILABLE);
    assert!(fixture.requests().is_empty());
}

#[tokio::test]
async fn the_api_server_decides_about_the_verb_on_the_subresource_of_the_object() {
    let fixture = Fixture::new(false).await;
    // Of another namespace: its rights here are its own.
    let token = fixture.token("system:serviceaccount:elsewhere:admin", OBJECT);
    assert_eq!(fixture.send(Method::GET, SESSIONS, &token).await.0, StatusCode::OK);
    assert_eq!(fixture.send(Method::DELETE, "/skep/sessions?client=c", &token).await.0, StatusCode::OK);
    let review = |verb: &str| {
        json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "LocalSubjectAccessReview",
            "metadata": {"namespace": "n"},
            "spec": {
                "user": "system:serviceaccount:elsewhere:admin",
                "groups": ["system:serviceaccounts", "system:serviceaccounts:elsewhere", "system:authenticated"],
                "resourceAttributes": {
                    "namespace": "n", "verb": verb, "group": "toolhive.stacklok.dev", "resource": "mcpservers",
                    "subresource": "sessions", "name": "a",
                },
            },
        })
    };
    assert_eq!(fixture.reviews(), [review("get"), review("delete")]);
}

#[tokio::test]
async fn a_request_says_exactly_what_is_meant() {
    let fixture = Fixture::new(false).await;
    let token = fixture.token(ADMINISTRATOR, OBJECT);
    let client = || Some("https://app.example/c".to_owned());
    let which = Which { user: Some("ann@example.test".into()), client: client(), session: None };
    let query = "user=ann%40example.test&client=https%3A%2F%2Fapp.example%2Fc&from=7+x";
    let from = || "7 x".to_owned();
    for (method, path, request) in [
        (
            Method::GET,
            format!("{SESSIONS}?{query}"),
            Request::Sessions { which: which.clone(), from: from() },
        ),
        (Method::DELETE, format!("{SESSIONS}?{query}"), Request::EndSessions { which, from: from() }),
        (Method::GET, format!("{CLIENTS}?from=7+x"), Request::Clients { from: from() }),
        (
            Method::DELETE,
            format!("{CLIENTS}?client=https%3A%2F%2Fapp.example%2Fc"),
            Request::ForgetClient { client: client().unwrap() },
        ),
    ] {
        let (status, body) = fixture.send(method, &path, &token).await;
        assert_eq!((status, body.as_str()), (StatusCode::OK, r#"{"sessions":[]}"#));
        assert_eq!(fixture.requests().pop(), Some(request));
    }
    let count = fixture.requests().len();
    for path in [
        // All sessions do not end because a parameter is missing, misspelt or empty.
        "/skep/sessions",
        "/skep/sessions?from=7",
        "/skep/sessions?user=",
        "/skep/sessions?usr=ann&client=c",
        "/skep/sessions?user=ann&user=bob",
        "/skep/clients",
        "/skep/clients?client=c&user=ann",
        &format!("/skep/sessions?user={}", "x".repeat(limits::ADMINISTRATION_PARAMETER + 1)),
    ] {
        assert_eq!(fixture.send(Method::DELETE, path, &token).await.0, StatusCode::BAD_REQUEST, "{path}");
    }
    assert_eq!(fixture.send(Method::POST, SESSIONS, &token).await.0, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(fixture.requests().len(), count);
}

#[tokio::test]
async fn an_outage_of_the_storage_is_said() {
    let fixture = Fixture::new(true).await;
    let token = fixture.token(ADMINISTRATOR, OBJECT);
    let (status, body) = fixture.send(Method::GET, SESSIONS, &token).await;
    assert_eq!(
        (status, body.as_str()),
        (StatusCode::SERVICE_UNAVAILABLE, "the storage does not respond, try again\n")
    );
}
