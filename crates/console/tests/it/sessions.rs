//! The sessions of users at authorization servers: personal data, for those who have the right, and theirs to end.

use std::{collections::BTreeSet, sync::Mutex};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use futures::{FutureExt, future::BoxFuture};
use hyper::{server::conn::http1, service::service_fn};
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use skep_api::kinds::MCPExternalAuthConfig;
use skep_config::{administration, run_config::Oidc};
use skep_console::{Account, session_rules};
use skep_gateway::{Administration, AdministrationError, AdministrationPage, AdministrationRequest};

use super::{calls::own_address, *};

/// A fake authorization server with one session, which records what it is requested to do.
#[derive(Default)]
struct FakeServer {
    requests: Mutex<Vec<AdministrationRequest>>,
    /// The tokens that have arrived at its pod.
    tokens: Mutex<BTreeSet<String>>,
}

impl Administration for FakeServer {
    fn administer<'a>(
        &'a self,
        request: &'a AdministrationRequest,
    ) -> BoxFuture<'a, Result<Value, AdministrationError>> {
        self.requests.lock().unwrap().push(request.clone());
        let session = json!({
            "id": "s-1", "user": "u-1", "email": "ann@example.test", "accounts": [], "client": "c-1",
            "client_name": "Notes", "since": "2030-01-01T00:00:00Z",
        });
        let answer = match request {
            AdministrationRequest::Sessions { .. } => json!({"sessions": [session], "shared": true}),
            AdministrationRequest::EndSessions { .. } => json!({"ended": [session]}),
            AdministrationRequest::Clients { .. } => {
                let client =
                    json!({"id": "c-1", "name": "Notes", "redirect_uris": ["http://app/"], "public": true});
                json!({"clients": [client]})
            }
            AdministrationRequest::ForgetClient { .. } => json!({"registered": true}),
        };
        std::future::ready(Ok(answer)).boxed()
    }
}

/// The server `one` with an authorization server behind a Service of its own, and a console that may administer it.
struct Fixture {
    test: Namespace,
    address: SocketAddr,
    server: Arc<FakeServer>,
    page_of_pod: Arc<AdministrationPage>,
}

impl Fixture {
    async fn new() -> Self {
        let test = skep_testkit::namespace().await;
        server(&test, "one").await;
        server(&test, "without").await;
        let config: MCPExternalAuthConfig = serde_json::from_value(json!({
            "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPExternalAuthConfig", "metadata": {"name": "login"},
            "spec": {"type": "embeddedAuthServer", "embeddedAuthServer": {
                "issuer": "https://login.example",
                "upstreamProviders": [{"name": "corp", "type": "oidc", "oidcConfig": {
                    "issuerUrl": "https://corp.example", "clientId": "skep",
                }}],
            }},
        }))
        .unwrap();
        test.create_object(&config).await;
        let reference =
            json!({"spec": {"authServerRef": {"kind": "MCPExternalAuthConfig", "name": "login"}}});
        let servers = test.api::<MCPServer>();
        servers.patch("one", &PatchParams::default(), &Patch::Merge(reference)).await.unwrap();

        let server = Arc::new(FakeServer::default());
        let page = Arc::new(page_of_pod(&test, "one", server.clone()).await);
        serve_pod(&test, listen(page.clone(), server.clone()).await).await;

        let account: ServiceAccount =
            serde_json::from_value(json!({"metadata": {"name": "console"}})).unwrap();
        test.create_object(&account).await;
        let user = test.user("console");
        test.grant_everywhere(&user, rules()).await;
        grant_to_account(&test, "console", session_rules()).await;
        let tokens = PolicyRule {
            resource_names: Some(vec!["console".into()]),
            ..may("create", "", "serviceaccounts/token")
        };
        test.grant(&user, vec![tokens]).await;
        let objects = Arc::new(Objects::default());
        tokio::spawn(follow(user.client(), Vec::new(), objects.clone()));
        let access = Access::Cluster(Box::new(ClusterAccess::new(&user.config())));
        let account = Account { namespace: test.name().into(), name: "console".into() };
        let console = Console::new(objects, Arc::default(), access).unwrap();
        let console = Arc::new(console.with_administration(user.client(), account).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve(listener, console, Workers::default(), std::future::pending()));
        Self { test, address, server, page_of_pod: page }
    }

    /// The page of a user who may do this.
    async fn page(&self, name: &str, rights: Vec<PolicyRule>) -> Page {
        Page::signed_in(self.address, &token(&self.test, name, rights).await).await
    }

    fn path(&self, endpoint: &str) -> String {
        format!("{endpoint}/MCPServer/{}/one", self.test.name())
    }

    fn requests(&self) -> Vec<AdministrationRequest> {
        std::mem::take(&mut self.server.requests.lock().unwrap())
    }
}

/// The endpoints for administrators of a pod, which verifies tokens and reviews rights at the API server.
async fn page_of_pod(test: &Namespace, object: &str, server: Arc<FakeServer>) -> AdministrationPage {
    let own = test.folder().join(format!("{}-{object}-administration", test.name()));
    let reviews = may("create", "authorization.k8s.io", "localsubjectaccessreviews");
    std::fs::write(&own, token(test, &format!("{object}-runner"), vec![reviews]).await).unwrap();
    let api_server = test.admin("keys").config().cluster_url.to_string();
    let oidc = Oidc {
        audience: administration::audience("MCPServer", test.name(), object),
        jwks_url: format!("{api_server}openid/v1/jwks"),
        ca_cert_path: test.folder().join("ca.crt").display().to_string(),
        auth_token_file: own.display().to_string(),
        allow_private_ip: true,
        ..Oidc::default()
    };
    AdministrationPage::of_object(("MCPServer", test.name(), object), &oidc, &api_server, server).unwrap()
}

/// Listens as the pod, at the address that this returns.
async fn listen(page: Arc<AdministrationPage>, server: Arc<FakeServer>) -> SocketAddr {
    let listener = TcpListener::bind((own_address(), 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (page, server) = (page.clone(), server.clone());
            let service = service_fn(move |request: Request<Incoming>| {
                let (page, server) = (page.clone(), server.clone());
                async move {
                    let token = request.headers()[header::AUTHORIZATION].to_str().unwrap();
                    let token = token.strip_prefix("Bearer ").unwrap().to_owned();
                    server.tokens.lock().unwrap().insert(token);
                    let headers = request.headers();
                    let responded = page.respond(request.method(), request.uri(), headers).await;
                    Ok::<_, std::convert::Infallible>(responded)
                }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    address
}

/// Leads the Service of `one` to this address, as the operator and the cluster would.
async fn serve_pod(test: &Namespace, address: SocketAddr) {
    let one = test.api::<MCPServer>().get("one").await.unwrap();
    let service: Service = serde_json::from_value(json!({
        "metadata": {
            "name": "mcp-one-proxy", "labels": {"toolhive": "true"},
            "ownerReferences": [{
                "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer", "name": "one", "uid": one.uid(),
                "controller": true,
            }],
        },
        "spec": {"selector": {"app": "one"}, "ports": [{"name": "http", "port": 8080}]},
    }))
    .unwrap();
    let created = test.api::<Service>().create(&PostParams::default(), &service).await.unwrap();
    let slice: EndpointSlice = serde_json::from_value(json!({
        "metadata": {
            "name": "mcp-one-proxy-1",
            "labels": {
                "kubernetes.io/service-name": "mcp-one-proxy", "toolhive": "true",
                "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
            },
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "Service", "name": "mcp-one-proxy", "uid": created.uid(), "controller": true,
            }],
        },
        "addressType": "IPv4", "ports": [{"name": "http", "port": address.port()}],
        "endpoints": [{"addresses": [address.ip()], "conditions": {"ready": true}}],
    }))
    .unwrap();
    test.create_object(&slice).await;
    let url = format!("http://mcp-one-proxy.{}.svc.cluster.local:8080/mcp", test.name());
    let status = Patch::Merge(json!({"status": {"phase": "Ready", "url": url}}));
    test.api::<MCPServer>().patch_status("one", &PatchParams::default(), &status).await.unwrap();
}

/// Lets a ServiceAccount that there is do this in the namespace.
async fn grant_to_account(test: &Namespace, account: &str, rules: Vec<PolicyRule>) {
    let role: k8s_openapi::api::rbac::v1::Role =
        serde_json::from_value(json!({"metadata": {"name": account}, "rules": rules})).unwrap();
    test.create_object(&role).await;
    let binding: k8s_openapi::api::rbac::v1::RoleBinding = serde_json::from_value(json!({
        "metadata": {"name": account},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": account},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": test.name()}],
    }))
    .unwrap();
    test.create_object(&binding).await;
}

/// The right to do this with sessions.
fn may_sessions(verb: &str) -> PolicyRule {
    may(verb, administration::GROUP, "mcpservers/sessions")
}

async fn body(response: Response<Incoming>) -> (StatusCode, String) {
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn users_see_and_end_sessions_as_far_as_their_rights_reach() {
    let fixture = Fixture::new().await;
    let see = || may_get(&["mcpservers"], &[]);
    let administrator =
        fixture.page("administrator", vec![see(), may_sessions("get"), may_sessions("delete")]).await;
    let reader = fixture.page("reader", vec![see(), may_sessions("get")]).await;
    // Rights on the object itself, on its calls, or on the sessions of another one, are none.
    let viewer = fixture
        .page(
            "viewer",
            vec![
                may_get(&["mcpservers", "mcpservers/calls"], &[]),
                may("delete", administration::GROUP, "mcpservers"),
                may_get(&["mcpservers/sessions"], &["without"]),
            ],
        )
        .await;
    // The sessions, but not the server.
    let blind = fixture.page("blind", vec![may_sessions("get"), may_sessions("delete")]).await;
    let other = skep_testkit::namespace().await;
    let rights = vec![see(), may_sessions("get"), may_sessions("delete")];
    let outsider = Page::signed_in(fixture.address, &token(&other, "outsider", rights).await).await;
    let stranger = Page::new(fixture.address);

    let entry = |may_list: bool, may_end: bool| {
        json!([{
            "kind": "MCPServer", "namespace": fixture.test.name(), "name": "one", "mayList": may_list, "mayEnd": may_end,
        }])
    };
    let servers = async |page: &Page| -> Value {
        serde_json::from_str::<Value>(&page.get("sessions").await.1).unwrap_or_default()["servers"].take()
    };
    until("the console knows the server", async || servers(&administrator).await == entry(true, true)).await;
    assert_eq!(servers(&reader).await, entry(true, false));
    assert_eq!(servers(&viewer).await, entry(false, false));
    assert_eq!((servers(&blind).await, servers(&outsider).await), (json!([]), json!([])));

    let (sessions, clients) = (fixture.path("sessions"), fixture.path("clients"));
    for page in [&administrator, &reader] {
        let (status, listed) = page.get(&format!("{sessions}?user=ann%40example.test")).await;
        assert!(status == StatusCode::OK && listed.contains("ann@example.test"), "{status} {listed}");
        let (status, listed) = page.get(&clients).await;
        assert!(status == StatusCode::OK && listed.contains("http://app/"), "{status} {listed}");
    }
    assert_eq!(fixture.requests().len(), 4);
    for (page, listed, ended) in [
        (&reader, StatusCode::OK, StatusCode::FORBIDDEN),
        (&viewer, StatusCode::FORBIDDEN, StatusCode::FORBIDDEN),
        (&blind, StatusCode::NOT_FOUND, StatusCode::NOT_FOUND),
        (&outsider, StatusCode::NOT_FOUND, StatusCode::NOT_FOUND),
    ] {
        for (path, query) in [(&sessions, "user=ann%40example.test"), (&clients, "client=c-1")] {
            let (status, text) = body(page.send(Method::DELETE, &format!("{path}?{query}"), "").await).await;
            assert_eq!(status, ended, "{text}");
            let (status, text) = page.get(path).await;
            assert!(
                status == listed && (status == StatusCode::OK || !text.contains("ann")),
                "{status} {text}"
            );
        }
    }
    for method in [Method::GET, Method::DELETE] {
        for path in [&sessions, &clients] {
            let mut forger = Page { address: stranger.address, headers: stranger.headers.clone() };
            forger.headers.insert("x-skep-console", HeaderValue::from_static("1"));
            assert_eq!(forger.send(method.clone(), path, "").await.status(), StatusCode::UNAUTHORIZED);
        }
    }
    let is_list = |request: &AdministrationRequest| {
        matches!(request, AdministrationRequest::Sessions { .. } | AdministrationRequest::Clients { .. })
    };
    let requests = fixture.requests();
    assert!(requests.len() == 2 && requests.iter().all(is_list), "of the reader alone: {requests:?}");

    let end = async |path: String| body(administrator.send(Method::DELETE, &path, "").await).await;
    assert_eq!(end(format!("{sessions}?session=s-1")).await, (StatusCode::OK, r#"{"ended":1}"#.to_owned()));
    assert_eq!(end(format!("{clients}?client=c-1")).await, (StatusCode::OK, r#"{"ended":1}"#.to_owned()));
    let requests = fixture.requests();
    // The registration is removed first, so that the client gets no new session meanwhile.
    assert!(
        matches!(
            &requests[..],
            [
                AdministrationRequest::EndSessions { .. },
                AdministrationRequest::ForgetClient { .. },
                AdministrationRequest::EndSessions { .. },
            ]
        ),
        "{requests:?}"
    );
    for path in
        [sessions.clone(), clients.clone(), format!("{sessions}?usr=ann"), format!("{clients}?user=ann")]
    {
        assert_eq!(end(path).await.0, StatusCode::BAD_REQUEST);
    }
    let without = format!("sessions/MCPServer/{}/without", fixture.test.name());
    assert_eq!(administrator.get(&without).await.0, StatusCode::CONFLICT, "it has no pod");
    assert!(fixture.requests().is_empty());
}

#[tokio::test]
async fn other_sites_end_no_sessions() {
    let fixture = Fixture::new().await;
    let rights = vec![may_get(&["mcpservers"], &[]), may_sessions("get"), may_sessions("delete")];
    let page = fixture.page("administrator", rights).await;
    let sessions = format!("{}?user=ann", fixture.path("sessions"));
    until("it is known", async || page.get(&sessions).await.0 == StatusCode::OK).await;
    fixture.requests();
    let foreign: [(&'static str, &'static str); 4] = [
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "same-site"),
        ("sec-fetch-mode", "navigate"),
    ];
    for path in [sessions.clone(), format!("{}?client=c-1", fixture.path("clients"))] {
        for (name, value) in foreign {
            let mut forged = Page { address: page.address, headers: page.headers.clone() };
            forged.headers.insert(name, HeaderValue::from_static(value));
            for method in [Method::GET, Method::DELETE] {
                assert_eq!(forged.send(method, &path, "").await.status(), StatusCode::FORBIDDEN, "{name}");
            }
        }
        let mut unmarked = Page { address: page.address, headers: page.headers.clone() };
        unmarked.headers.remove("x-skep-console");
        assert_eq!(unmarked.send(Method::DELETE, &path, "").await.status(), StatusCode::FORBIDDEN);
        for method in [Method::POST, Method::PUT, Method::PATCH] {
            assert_eq!(page.send(method, &path, "{}").await.status(), StatusCode::METHOD_NOT_ALLOWED);
        }
    }
    assert!(fixture.requests().is_empty());
}

#[tokio::test]
async fn a_pod_gets_a_token_for_its_own_sessions_and_nothing_else() {
    let fixture = Fixture::new().await;
    let users =
        token(&fixture.test, "administrator", vec![may_get(&["mcpservers"], &[]), may_sessions("get")]).await;
    let page = Page::signed_in(fixture.address, &users).await;
    let path = fixture.path("sessions");
    until("it is known", async || page.get(&path).await.0 == StatusCode::OK).await;
    let tokens = fixture.server.tokens.lock().unwrap().clone();
    assert!(!tokens.contains(&users));
    let other = page_of_pod(&fixture.test, "other", fixture.server.clone()).await;
    for token in tokens {
        let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap();
        let claims: Value = serde_json::from_slice(&claims).unwrap();
        assert_eq!(claims["aud"], json!([administration::audience("MCPServer", fixture.test.name(), "one")]));
        assert_eq!(claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(), 600);
        let bearer = HeaderValue::from_str(&format!("Bearer {token}")).unwrap();
        let headers = HeaderMap::from_iter([(header::AUTHORIZATION, bearer)]);
        let at = async |page: &AdministrationPage| {
            page.respond(&Method::GET, &administration::SESSIONS.parse().unwrap(), &headers).await.status()
        };
        assert_eq!(at(&fixture.page_of_pod).await, StatusCode::OK);
        assert_eq!(at(&other).await, StatusCode::UNAUTHORIZED);
        let mut thief = Page::new(fixture.address);
        thief.headers.extend(headers);
        assert_eq!(thief.get("objects").await.0, StatusCode::UNAUTHORIZED);
    }
}

#[tokio::test]
async fn a_console_that_administers_nothing_says_so() {
    let test = skep_testkit::namespace().await;
    server(&test, "one").await;
    let address = console(&test).await;
    let rights = vec![may_get(&["mcpservers"], &[]), may_sessions("get"), may_sessions("delete")];
    let page = Page::signed_in(address, &token(&test, "administrator", rights).await).await;
    until("the console shows it", async || page.names().await == ["one"]).await;
    assert_eq!(page.get("sessions").await.1, r#"{"isAvailable":false,"servers":[]}"#);
    let (status, text) = page.get(&format!("sessions/MCPServer/{}/one", test.name())).await;
    assert!(status == StatusCode::CONFLICT && text.contains("kubectl skep sessions"), "{status} {text}");
}
