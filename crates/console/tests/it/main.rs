//! The console of a cluster, on a real API server.

#![allow(clippy::unwrap_used)]

mod calls;
mod connections;
mod login;
mod try_it;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::{
    apps::v1::Deployment,
    authentication::v1::TokenRequest,
    core::v1::{Event, ServiceAccount},
    rbac::v1::PolicyRule,
};
use kube::{
    ResourceExt,
    api::{Api, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use skep_api::kinds::{MCPGroup, MCPServer};
use skep_console::{Access, CallLogs, ClusterAccess, Console, Objects, Workers, follow, rules, serve};
use skep_testkit::{Namespace, until};
use tokio::net::{TcpListener, TcpStream};

/// A console that follows the cluster with its own permissions, and no others.
async fn console(test: &Namespace) -> SocketAddr {
    console_with(test, Arc::new(CallLogs::default())).await.0
}

/// The same with these logs, and its objects.
async fn console_with(test: &Namespace, calls: Arc<CallLogs>) -> (SocketAddr, Arc<Objects>) {
    let user = test.user("console");
    test.grant_everywhere(&user, rules()).await;
    let objects = Arc::new(Objects::default());
    tokio::spawn(follow(user.client(), Vec::new(), objects.clone()));
    let access = Access::Cluster(Box::new(ClusterAccess::new(&user.config())));
    let console = Console::new(objects.clone(), calls, access).unwrap().with_services(user.client());
    let console = Arc::new(console);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve(listener, console, Workers::default(), std::future::pending()));
    (address, objects)
}

async fn server(test: &Namespace, name: &str) {
    let server: MCPServer = serde_json::from_value(json!({
        "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer", "metadata": {"name": name},
        "spec": {"image": "example", "groupRef": {"name": format!("{name}-group")}},
    }))
    .unwrap();
    test.create_object(&server).await;
    let group: MCPGroup = serde_json::from_value(json!({
        "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPGroup", "metadata": {"name": format!("{name}-group")},
        "spec": {},
    }))
    .unwrap();
    test.create_object(&group).await;
}

/// The token of a new ServiceAccount that may do this in the namespace.
async fn token(test: &Namespace, name: &str, rules: Vec<PolicyRule>) -> String {
    let account: ServiceAccount = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    test.create_object(&account).await;
    let role: k8s_openapi::api::rbac::v1::Role =
        serde_json::from_value(json!({"metadata": {"name": name}, "rules": rules})).unwrap();
    test.create_object(&role).await;
    let binding: k8s_openapi::api::rbac::v1::RoleBinding = serde_json::from_value(json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": test.name()}],
    }))
    .unwrap();
    test.create_object(&binding).await;
    let accounts: Api<ServiceAccount> = test.api();
    let requested = TokenRequest::default();
    let token = accounts.create_token_request(name, &PostParams::default(), &requested).await.unwrap();
    token.status.unwrap().token
}

fn may_get(resources: &[&str], names: &[&str]) -> PolicyRule {
    let list = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect());
    PolicyRule {
        api_groups: list(&["toolhive.stacklok.dev"]),
        resources: list(resources),
        resource_names: list(names).filter(|names: &Vec<String>| !names.is_empty()),
        verbs: vec!["get".into()],
        ..PolicyRule::default()
    }
}

/// A page of the console, with these headers.
struct Page {
    address: SocketAddr,
    headers: HeaderMap,
}

impl Page {
    fn new(address: SocketAddr) -> Self {
        let host = HeaderValue::from_str(&address.to_string()).unwrap();
        Self { address, headers: HeaderMap::from_iter([(header::HOST, host)]) }
    }

    /// The page of a user who signs in with this token.
    async fn signed_in(address: SocketAddr, token: &str) -> Self {
        let mut page = Self::new(address);
        page.headers.insert("x-skep-console", HeaderValue::from_static("1"));
        let response = page.send(Method::POST, "session", &json!({"token": token}).to_string()).await;
        assert_eq!(response.status(), StatusCode::NO_CONTENT);
        let cookie = response.headers()[header::SET_COOKIE].to_str().unwrap();
        for attribute in ["__Host-", "Secure", "HttpOnly", "SameSite=Strict", "Path=/"] {
            assert!(cookie.contains(attribute), "{cookie}");
        }
        let pair = cookie.split(';').next().unwrap();
        page.headers.insert(header::COOKIE, HeaderValue::from_str(pair).unwrap());
        page
    }

    async fn send(&self, method: Method, path: &str, body: &str) -> Response<Incoming> {
        self.request(method, &format!("/api/{path}"), body).await
    }

    async fn request(&self, method: Method, uri: &str, body: &str) -> Response<Incoming> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::new(Full::new(Bytes::copy_from_slice(body.as_bytes())));
        *request.method_mut() = method;
        *request.uri_mut() = uri.parse().unwrap();
        *request.headers_mut() = self.headers.clone();
        sender.send_request(request).await.unwrap()
    }

    /// The status and the body of a response that ends.
    async fn get(&self, path: &str) -> (StatusCode, String) {
        let response = self.send(Method::GET, path, "").await;
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    async fn names(&self) -> Vec<String> {
        let (status, body) = self.get("objects").await;
        assert_eq!(status, StatusCode::OK, "{body}");
        let overview: Value = serde_json::from_str(&body).unwrap();
        let objects = overview["objects"].as_array().unwrap().iter();
        objects.map(|object| object["name"].as_str().unwrap().to_owned()).collect()
    }

    /// What a stream sends while `act` is done, and a little longer.
    async fn stream(&self, query: &str, act: impl Future<Output = ()>) -> String {
        let mut body = self.send(Method::GET, &format!("events?{query}"), "").await.into_body();
        let mut text = String::new();
        let read = async {
            while let Some(Ok(frame)) = body.frame().await {
                text.push_str(&String::from_utf8_lossy(frame.data_ref().unwrap()));
            }
        };
        let act = async {
            act.await;
            // What would be sent to the viewer is sent at once.
            tokio::time::sleep(Duration::from_millis(500)).await;
        };
        tokio::select! {
            () = read => {}
            () = act => {}
        }
        text
    }
}

async fn set_phase(test: &Namespace, name: &str, phase: &str) {
    let servers: Api<MCPServer> = test.api();
    let status = Patch::Merge(json!({"status": {"phase": phase}}));
    servers.patch_status(name, &PatchParams::default(), &status).await.unwrap();
}

#[tokio::test]
async fn a_user_of_one_namespace_sees_nothing_of_another_on_any_page_or_stream() {
    let (mine, other) = (skep_testkit::namespace().await, skep_testkit::namespace().await);
    server(&mine, "mine").await;
    server(&other, "theirs").await;
    let address = console(&mine).await;
    let token = token(&mine, "viewer", vec![may_get(&["mcpservers", "mcpgroups"], &[])]).await;
    let page = Page::signed_in(address, &token).await;
    until("the console shows what is mine", async || page.names().await == ["mine-group", "mine"]).await;
    let theirs = format!("MCPServer/{}/theirs", other.name());
    for path in ["objects".to_owned(), "session".into(), format!("objects/{theirs}"), format!("mcp/{theirs}")]
    {
        let (_, body) = page.get(&path).await;
        assert!(!body.contains("theirs") && !body.contains(other.name()), "{path}: {body}");
    }
    let (status, _) = page.get(&format!("objects/{theirs}")).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    for query in ["", "calls=all", &format!("calls={theirs}")] {
        let act = async {
            set_phase(&other, "theirs", "Failed").await;
            set_phase(&other, "theirs", "Pending").await;
            set_phase(&mine, "mine", "Failed").await;
            set_phase(&mine, "mine", "Pending").await;
        };
        let text = page.stream(query, act).await;
        assert!(text.contains("\"mine\"") && text.contains("\"Failed\""), "{query}: {text}");
        assert!(!text.contains("theirs") && !text.contains(other.name()), "{query}: {text}");
    }
}

#[tokio::test]
async fn a_user_who_may_get_one_object_sees_that_one() {
    let test = skep_testkit::namespace().await;
    server(&test, "one").await;
    server(&test, "two").await;
    let address = console(&test).await;
    let token = token(&test, "viewer", vec![may_get(&["mcpservers"], &["one"])]).await;
    let page = Page::signed_in(address, &token).await;
    until("the console shows it", async || page.names().await == ["one"]).await;
    let (status, detail) = page.get(&format!("objects/MCPServer/{}/one", test.name())).await;
    assert!(status == StatusCode::OK && !detail.contains("two"), "{detail}");
}

#[tokio::test]
async fn strangers_and_users_that_signed_out_get_no_data() {
    let test = skep_testkit::namespace().await;
    server(&test, "one").await;
    let address = console(&test).await;
    let stranger = Page::new(address);
    for path in ["session", "objects", "events", "objects/MCPServer/n/one", "mcp/MCPServer/n/one"] {
        assert_eq!(stranger.get(path).await.0, StatusCode::UNAUTHORIZED, "{path}");
    }
    let mut forger = Page::new(address);
    forger.headers.insert("x-skep-console", HeaderValue::from_static("1"));
    for token in ["", "forged", &"x".repeat(20_000)] {
        let response = forger.send(Method::POST, "session", &json!({"token": token}).to_string()).await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    }
    forger.headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer forged"));
    assert_eq!(forger.get("objects").await.0, StatusCode::UNAUTHORIZED);
    let token = token(&test, "viewer", vec![may_get(&["mcpservers"], &[])]).await;
    let page = Page::signed_in(address, &token).await;
    until("the console shows it", async || page.names().await == ["one"]).await;
    let (_, session) = page.get("session").await;
    let session: Value = serde_json::from_str(&session).unwrap();
    let name = format!("system:serviceaccount:{}:viewer", test.name());
    assert_eq!((&session["mode"], &session["user"]), (&json!("cluster"), &json!(name)));
    // The page of another site has the cookie in no browser; here it has, and is rejected.
    let mut foreign = Page { address, headers: page.headers.clone() };
    foreign.headers.insert(header::ORIGIN, HeaderValue::from_static("https://evil.example"));
    assert_eq!(foreign.get("objects").await.0, StatusCode::FORBIDDEN);
    assert_eq!(page.send(Method::DELETE, "session", "").await.status(), StatusCode::NO_CONTENT);
    assert_eq!(page.get("objects").await.0, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_proxy_in_front_can_send_the_token_of_the_user() {
    let test = skep_testkit::namespace().await;
    server(&test, "one").await;
    let address = console(&test).await;
    let token = token(&test, "viewer", vec![may_get(&["mcpservers"], &[])]).await;
    let mut page = Page::new(address);
    page.headers.insert(header::AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {token}")).unwrap());
    until("the console shows it", async || page.names().await == ["one"]).await;
}

#[tokio::test]
async fn objects_come_change_and_go_and_events_of_their_pods_are_shown() {
    let test = skep_testkit::namespace().await;
    let address = console(&test).await;
    let token = token(&test, "viewer", vec![may_get(&["*"], &[])]).await;
    let page = Page::signed_in(address, &token).await;
    assert!(page.names().await.is_empty());
    server(&test, "one").await;
    until("it is created", async || page.names().await == ["one-group", "one"]).await;
    let event: Event = serde_json::from_value(json!({
        "metadata": {"name": "one-0.1"}, "type": "Warning", "reason": "BackOff", "message": "<b>restarting</b>",
        "involvedObject": {"kind": "Pod", "namespace": test.name(), "name": "one-0"},
        "lastTimestamp": "2030-01-02T03:04:05Z", "count": 7,
    }))
    .unwrap();
    test.create_object(&event).await;
    let path = format!("objects/MCPServer/{}/one", test.name());
    until("its event is shown", async || {
        let detail: Value = serde_json::from_str(&page.get(&path).await.1).unwrap();
        let first = &detail["events"][0];
        *first
            == json!({
                "time": "2030-01-02T03:04:05Z", "type": "Warning", "reason": "BackOff", "message": "<b>restarting</b>",
                "object": "Pod one-0", "count": 7,
            })
    })
    .await;
    // What the API server added is a default, and what the user wrote is not.
    let detail: Value = serde_json::from_str(&page.get(&path).await.1).unwrap();
    let origin = |field: &str| {
        let settings = detail["configuration"].as_array().unwrap().iter();
        settings.clone().find(|setting| setting["field"] == field).map(|setting| setting["origin"].clone())
    };
    assert_eq!(
        (origin("image"), origin("transport")),
        (Some(json!("spec")), Some(json!("default"))),
        "{detail}"
    );
    test.object::<MCPServer>("one").delete().await;
    until("it is deleted", async || page.names().await == ["one-group"]).await;
}

#[tokio::test]
async fn what_was_created_for_a_server_is_shown_to_those_who_may_get_it() {
    let test = skep_testkit::namespace().await;
    server(&test, "one").await;
    let address = console(&test).await;
    let owner = test.api::<MCPServer>().get("one").await.unwrap();
    let deployment: Deployment = serde_json::from_value(json!({
        "metadata": {
            "name": "one", "labels": {"toolhive": "true"},
            "ownerReferences": [{
                "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer", "name": "one", "uid": owner.uid(),
            }],
        },
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    }))
    .unwrap();
    test.create_object(&deployment).await;
    let may_get_deployments = PolicyRule {
        api_groups: Some(vec!["apps".into()]),
        resources: Some(vec!["deployments".into()]),
        verbs: vec!["get".into()],
        ..PolicyRule::default()
    };
    let rules = |more: Vec<PolicyRule>| [vec![may_get(&["mcpservers"], &[])], more].concat();
    let operator =
        Page::signed_in(address, &token(&test, "operator", rules(vec![may_get_deployments])).await).await;
    let viewer = Page::signed_in(address, &token(&test, "viewer", rules(Vec::new())).await).await;
    let path = format!("objects/MCPServer/{}/one", test.name());
    let objects = async |page: &Page| -> Value {
        serde_json::from_str::<Value>(&page.get(&path).await.1).unwrap_or_default()["objects"].take()
    };
    let shown = json!([{"kind": "Deployment", "name": "one", "state": "0 of 2 pods ready"}]);
    until("it is shown", async || objects(&operator).await == shown).await;
    assert_eq!(objects(&viewer).await, json!([]));
}
