//! The console of a cluster, on a real API server.

#![allow(clippy::unwrap_used)]

mod calls;
mod connections;
mod events;
mod local;
mod login;
mod session;
mod sessions;
mod try_it;

use std::{net::SocketAddr, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::{
    apps::v1::Deployment, authentication::v1::TokenRequest, core::v1::ServiceAccount, rbac::v1::PolicyRule,
};
use kube::{
    ResourceExt,
    api::{Api, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use skep_api::kinds::{MCPGroup, MCPServer};
use skep_console::{
    Access, CallLogs, ClusterAccess, Console, Endpoint, Key, Objects, Workers, follow, rules, serve,
};
use skep_gateway::middleware::{Call, Counts};
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

/// The same of resources of Kubernetes.
fn may(verb: &str, group: &str, resource: &str) -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec![group.into()]),
        resources: Some(vec![resource.into()]),
        verbs: vec![verb.into()],
        ..PolicyRule::default()
    }
}

/// A call of this tool.
fn call(target: &str) -> Call {
    serde_json::from_value(json!({
        "id": 0, "time": "2030-01-01T00:00:00Z", "method": "tools/call", "target": target, "caller": "alice",
        "status": 200, "error": null, "failed": false, "ms": 1.5, "decidedBy": "",
    }))
    .unwrap()
}

/// What a pod has counted in a minute.
fn counts(calls: u64) -> Counts {
    serde_json::from_value(json!({"seconds": 60, "calls": calls, "errors": 0, "classes": [[3, calls]]}))
        .unwrap()
}

/// A page of the console, with these headers.
struct Page {
    address: SocketAddr,
    headers: HeaderMap,
}

impl Page {
    fn new(address: SocketAddr) -> Self {
        Self::at(address, "console.example")
    }

    /// Its browser knows the console by this name.
    fn at(address: SocketAddr, host: &str) -> Self {
        let host = HeaderValue::from_str(host).unwrap();
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
}

async fn set_phase(test: &Namespace, name: &str, phase: &str) {
    let servers: Api<MCPServer> = test.api();
    let status = Patch::Merge(json!({"status": {"phase": phase}}));
    servers.patch_status(name, &PatchParams::default(), &status).await.unwrap();
}

async fn set_message(test: &Namespace, name: &str, message: &str) {
    let servers: Api<MCPServer> = test.api();
    let status = Patch::Merge(json!({"status": {"phase": "Failed", "message": message}}));
    servers.patch_status(name, &PatchParams::default(), &status).await.unwrap();
}

#[tokio::test]
async fn a_user_of_one_namespace_sees_nothing_of_another_on_any_page_or_stream() {
    let (mine, other) = (skep_testkit::namespace().await, skep_testkit::namespace().await);
    server(&mine, "mine").await;
    server(&other, "theirs").await;
    let logs = Arc::new(CallLogs::default());
    let (address, _) = console_with(&mine, logs.clone()).await;
    let log = |test: &Namespace, name: &str| logs.of(&Key::new("MCPServer", test.name(), name));
    let (my_log, their_log) = (log(&mine, "mine"), log(&other, "theirs"));
    let resources = ["mcpservers", "mcpservers/calls", "mcpgroups"];
    let token = token(&mine, "viewer", vec![may_get(&resources, &[])]).await;
    let page = Page::signed_in(address, &token).await;
    until("the console shows what is mine", async || page.names().await == ["mine-group", "mine"]).await;
    let key = |test: &Namespace, name: &str| format!("MCPServer/{}/{name}", test.name());
    let (my_key, their_key) = (key(&mine, "mine"), key(&other, "theirs"));
    let check = |what: &str, text: &str| {
        assert!(!text.contains("theirs") && !text.contains(other.name()), "{what}: {text}");
    };
    their_log.add(call("theirs-before"));
    their_log.set_counts("pod", Some(counts(7)));
    for (endpoint, path) in Endpoint::ALL {
        let path = if path.ends_with('/') { format!("{path}{their_key}") } else { path.to_owned() };
        let methods: &[Method] = match endpoint {
            // A sign-in and a sign-out would change who looks.
            Endpoint::Session => &[Method::GET],
            Endpoint::Login
            | Endpoint::Objects
            | Endpoint::Object
            | Endpoint::Mcp
            | Endpoint::Sessions
            | Endpoint::SessionsOf
            | Endpoint::ClientsOf => &[Method::GET, Method::POST, Method::PUT, Method::DELETE],
            // It does not end: see below.
            Endpoint::Events => continue,
        };
        for method in methods {
            let response = page.send(method.clone(), &path, "{}").await;
            if path.ends_with(&their_key) {
                // As if it did not exist.
                let missing = path.replace("theirs", "no-such-object");
                assert_eq!(
                    response.status(),
                    page.send(method.clone(), &missing, "{}").await.status(),
                    "{method} {path}"
                );
            }
            let body = response.into_body().collect().await.unwrap().to_bytes();
            check(&path, &String::from_utf8_lossy(&body));
        }
    }
    let queries =
        [String::new(), "calls=all".into(), format!("calls={my_key}"), format!("calls={their_key}")];
    for (number, query) in (0_u64..).zip(&queries) {
        let mut body = page.send(Method::GET, &format!("events?{query}"), "").await.into_body();
        let mut text = String::new();
        calls::read_until(&mut body, &mut text, ": connected").await;
        // What happens there happens first, so it would be sent before what happens here.
        their_log.add(call("theirs-call"));
        their_log.set_counts("pod", Some(counts(1_000 + number)));
        set_phase(&other, "theirs", "Failed").await;
        let mark = format!("mine-{number}");
        my_log.add(call(&mark));
        my_log.set_counts("pod", Some(counts(60 * (number + 1))));
        set_message(&mine, "mine", &format!("changed-{number}")).await;
        let sees_calls = query.ends_with("=all") || query.ends_with(&my_key);
        if sees_calls {
            calls::read_until(&mut body, &mut text, &mark).await;
        }
        calls::read_until(&mut body, &mut text, &format!("changed-{number}")).await;
        // All figures that have changed come together.
        calls::read_until(&mut body, &mut text, "event: traffic\n").await;
        assert_eq!(text.contains("event: call\n"), sees_calls, "{query}: {text}");
        check(query, &text);
        set_phase(&other, "theirs", "Pending").await;
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
    for (_, path) in Endpoint::ALL {
        let path = if path.ends_with('/') { format!("{path}MCPServer/n/one") } else { path.to_owned() };
        assert_eq!(stranger.get(&path).await.0, StatusCode::UNAUTHORIZED, "{path}");
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
    let rights = vec![may_get(&["*"], &[]), may("list", "", "events")];
    let token = token(&test, "viewer", rights).await;
    let page = Page::signed_in(address, &token).await;
    assert!(page.names().await.is_empty());
    server(&test, "one").await;
    until("it is created", async || page.names().await == ["one-group", "one"]).await;
    let pod = events::pod_of(&test, "one").await;
    events::event(&test, &pod.name_any(), &pod.uid().unwrap(), "<b>restarting</b>").await;
    let path = format!("objects/MCPServer/{}/one", test.name());
    until("its event is shown", async || {
        let detail: Value = serde_json::from_str(&page.get(&path).await.1).unwrap();
        let first = &detail["events"][0];
        *first
            == json!({
                "time": "2030-01-02T03:04:05Z", "type": "Warning", "reason": "BackOff", "message": "<b>restarting</b>",
                "object": format!("Pod {}", pod.name_any()), "count": 7,
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
    let may_get_deployments = may("get", "apps", "deployments");
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
