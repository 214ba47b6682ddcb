//! The calls of a cluster's proxies. Tokens are those of a real API server, and verified with its keys.

use std::{
    net::{IpAddr, UdpSocket},
    sync::Mutex,
    time::Duration,
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use hyper::{server::conn::http1, service::service_fn};
use k8s_openapi::api::{authentication::v1::TokenRequestSpec, discovery::v1::EndpointSlice};
use skep_config::{calls, run_config::Oidc};
use skep_console::{Account, follow_calls};
use skep_gateway::middleware::CallsPage;

use super::*;

/// An address of this machine as a pod has one: the API server rejects loopback in EndpointSlices. Nothing is sent.
pub(crate) fn own_address() -> IpAddr {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect("198.51.100.1:9").unwrap();
    socket.local_addr().unwrap().ip()
}

/// What has arrived at a pod.
#[derive(Default)]
pub(crate) struct Seen(Mutex<Vec<String>>);

/// A pod with the stream of calls of an object. It verifies tokens as one in a cluster does.
pub(crate) struct FakeProxy {
    address: SocketAddr,
    pub(crate) page: Arc<CallsPage>,
    seen: Arc<Seen>,
}

impl FakeProxy {
    pub(crate) async fn start(test: &Namespace, object: &str) -> Self {
        let own = test.folder().join(format!("{}-{object}-token", test.name()));
        std::fs::write(&own, token(test, &format!("{object}-runner"), Vec::new()).await).unwrap();
        let oidc = Oidc {
            audience: calls::audience("MCPServer", test.name(), object),
            jwks_url: format!("{}openid/v1/jwks", test.admin("keys").config().cluster_url),
            ca_cert_path: test.folder().join("ca.crt").display().to_string(),
            auth_token_file: own.display().to_string(),
            allow_private_ip: true,
            ..Oidc::default()
        };
        let reader = format!("system:serviceaccount:{}:console", test.name());
        let page = Arc::new(CallsPage::new(&reader, &oidc).unwrap());
        let listener = TcpListener::bind((own_address(), 0)).await.unwrap();
        let proxy =
            Self { address: listener.local_addr().unwrap(), page: page.clone(), seen: Arc::default() };
        let seen = proxy.seen.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (page, seen) = (page.clone(), seen.clone());
                let service = service_fn(move |request: Request<Incoming>| {
                    let (page, seen) = (page.clone(), seen.clone());
                    async move {
                        assert_eq!(request.uri().path(), calls::PATH);
                        let headers = format!("{:?}", request.headers());
                        seen.0.lock().unwrap().push(headers);
                        let token = request.headers()[header::AUTHORIZATION].to_str().unwrap().to_owned();
                        seen.0.lock().unwrap().push(token.strip_prefix("Bearer ").unwrap().to_owned());
                        Ok::<_, std::convert::Infallible>(
                            page.respond(request.method(), request.headers()).await,
                        )
                    }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        proxy
    }

    /// Has the object use it: by its address, and a slice of its Service as the cluster would write it.
    pub(crate) async fn serve(&self, test: &Namespace, object: &str) {
        let service = format!("mcp-{object}-proxy");
        let slice: EndpointSlice = serde_json::from_value(json!({
            "metadata": {
                "name": format!("{service}-1"),
                "labels": {"kubernetes.io/service-name": service, "toolhive": "true"},
            },
            "addressType": "IPv4", "ports": [{"name": "http", "port": self.address.port()}],
            "endpoints": [{"addresses": [self.address.ip()], "conditions": {"ready": true}}],
        }))
        .unwrap();
        test.create_object(&slice).await;
        let url = format!("http://{service}.{}.svc.cluster.local:8080/mcp", test.name());
        let status = Patch::Merge(json!({"status": {"phase": "Ready", "url": url}}));
        test.api::<MCPServer>().patch_status(object, &PatchParams::default(), &status).await.unwrap();
    }

    fn call(&self, target: &str) {
        self.page.log().add(call(target));
    }
}

/// A console that reads calls with the account `console` of this namespace, and with no other permission for it.
pub(crate) async fn reading_console(test: &Namespace) -> SocketAddr {
    let logs = Arc::new(CallLogs::default());
    let (address, objects) = console_with(test, logs.clone()).await;
    let own: ServiceAccount = serde_json::from_value(json!({"metadata": {"name": "console"}})).unwrap();
    test.create_object(&own).await;
    let user = test.user("console");
    let rule = PolicyRule {
        api_groups: Some(vec![String::new()]),
        resources: Some(vec!["serviceaccounts/token".into()]),
        resource_names: Some(vec!["console".into()]),
        verbs: vec!["create".into()],
        ..PolicyRule::default()
    };
    test.grant(&user, vec![rule]).await;
    let account = Account { namespace: test.name().into(), name: "console".into() };
    let namespaces = vec![test.name().to_owned()];
    tokio::spawn(follow_calls(user.client(), namespaces, account, objects, logs));
    address
}

/// Reads a stream until it has this text, and returns all of it.
pub(crate) async fn read_until(body: &mut Incoming, text: &mut String, wanted: &str) {
    let read = async {
        while !text.contains(wanted) {
            let frame = body.frame().await.unwrap().unwrap();
            text.push_str(&String::from_utf8_lossy(frame.data_ref().unwrap()));
        }
    };
    let read = tokio::time::timeout(Duration::from_secs(30), read).await;
    assert!(read.is_ok(), "{wanted} does not come: {text}");
}

#[tokio::test]
async fn calls_of_proxies_are_shown_to_those_who_may_read_them_and_to_no_others() {
    let test = skep_testkit::namespace().await;
    server(&test, "one").await;
    let proxy = FakeProxy::start(&test, "one").await;
    let address = reading_console(&test).await;
    proxy.call("before");
    let reads = |with_calls: bool| {
        let resources: &[&str] =
            if with_calls { &["mcpservers", "mcpservers/calls"] } else { &["mcpservers"] };
        vec![may_get(resources, &[])]
    };
    let reader = Page::signed_in(address, &token(&test, "reader", reads(true)).await).await;
    let viewer = Page::signed_in(address, &token(&test, "viewer", reads(false)).await).await;
    proxy.serve(&test, "one").await;
    until("the console shows it", async || reader.names().await == ["one"]).await;
    assert!(proxy.seen.0.lock().unwrap().is_empty(), "nothing is read while no page is open");
    let mut of_viewer = viewer.send(Method::GET, "events?calls=all", "").await.into_body();
    let mut of_reader = reader.send(Method::GET, "events?calls=all", "").await.into_body();
    let (mut read, mut viewed) = (String::new(), String::new());
    read_until(&mut of_reader, &mut read, "\"before\"").await;
    proxy.call("after");
    read_until(&mut of_reader, &mut read, "\"after\"").await;
    assert_eq!(read.matches("event: call\n").count(), 2, "each call once: {read}");
    // What comes after the calls has come, so they would have, too.
    set_phase(&test, "one", "Failed").await;
    read_until(&mut of_viewer, &mut viewed, "\"Failed\"").await;
    assert!(!viewed.contains("event: call\n") && !viewed.contains("alice"), "{viewed}");
    let path = format!("objects/MCPServer/{}/one", test.name());
    let calls = async |page: &Page, may_read: bool| {
        let detail: Value = serde_json::from_str(&page.get(&path).await.1).unwrap();
        assert_eq!(detail["seesCalls"], may_read);
        detail["calls"].as_array().unwrap().iter().map(|call| call["target"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(calls(&reader, true).await, ["after", "before"]);
    assert!(calls(&viewer, false).await.is_empty());
}

#[tokio::test]
async fn what_reaches_a_hostile_proxy_is_good_for_nothing_else() {
    let test = skep_testkit::namespace().await;
    server(&test, "hostile").await;
    server(&test, "victim").await;
    let (hostile, victim) =
        (FakeProxy::start(&test, "hostile").await, FakeProxy::start(&test, "victim").await);
    let address = reading_console(&test).await;
    let rights = vec![may_get(&["mcpservers", "mcpservers/calls"], &[])];
    let users = token(&test, "reader", rights).await;
    let page = Page::signed_in(address, &users).await;
    hostile.serve(&test, "hostile").await;
    let mut body = page.send(Method::GET, "events?calls=all", "").await.into_body();
    hostile.call("here");
    read_until(&mut body, &mut String::new(), "\"here\"").await;
    let seen = hostile.seen.0.lock().unwrap().clone();
    let cookie = page.headers[header::COOKIE].to_str().unwrap();
    assert!(!seen.iter().any(|text| text.contains(&users) || text.contains(cookie)), "nothing of the user");
    let stolen = &seen[1];
    let claims = URL_SAFE_NO_PAD.decode(stolen.split('.').nth(1).unwrap()).unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    let life = claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap();
    assert_eq!(life, 600, "it is good for ten minutes");
    // Not at another proxy.
    let mut headers = HeaderMap::new();
    headers.insert(header::AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {stolen}")).unwrap());
    let at_victim = victim.page.respond(&Method::GET, &headers).await.status();
    assert_eq!(at_victim, StatusCode::UNAUTHORIZED);
    assert_eq!(hostile.page.respond(&Method::GET, &headers).await.status(), StatusCode::OK);
    // Not at the API server, so it cannot get another one.
    let mut config = test.user("thief").config();
    config.auth_info = kube::config::AuthInfo { token: Some(stolen.clone().into()), ..Default::default() };
    let client = kube::Client::try_from(config).unwrap();
    let got = Api::<MCPServer>::namespaced(client, test.name()).list(&kube::api::ListParams::default()).await;
    assert!(matches!(got, Err(kube::Error::Api(status)) if status.code == 401));
    // Not at the console.
    let thief = Page::new(address).send(Method::POST, "session", &json!({"token": stolen}).to_string()).await;
    assert_eq!(thief.status(), StatusCode::FORBIDDEN, "without the header of the page");
    let mut thief = Page::new(address);
    thief.headers.insert("x-skep-console", HeaderValue::from_static("1"));
    let signed_in = thief.send(Method::POST, "session", &json!({"token": stolen}).to_string()).await;
    assert_eq!(signed_in.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_proxy_accepts_the_account_of_the_console_and_no_other() {
    let test = skep_testkit::namespace().await;
    let proxy = FakeProxy::start(&test, "one").await;
    for (account, expected) in [("console", StatusCode::OK), ("other", StatusCode::FORBIDDEN)] {
        token(&test, account, Vec::new()).await;
        let audiences = vec![calls::audience("MCPServer", test.name(), "one")];
        let spec = TokenRequestSpec { audiences, ..TokenRequestSpec::default() };
        let request = TokenRequest { spec, ..TokenRequest::default() };
        let accounts: Api<ServiceAccount> = test.api();
        let issued = accounts.create_token_request(account, &PostParams::default(), &request).await.unwrap();
        let bearer = format!("Bearer {}", issued.status.unwrap().token);
        let headers =
            HeaderMap::from_iter([(header::AUTHORIZATION, HeaderValue::from_str(&bearer).unwrap())]);
        let response = proxy.page.respond(&Method::GET, &headers).await;
        assert_eq!(response.status(), expected, "{account}");
    }
}
