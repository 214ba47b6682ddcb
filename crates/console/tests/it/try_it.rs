//! Where "try it" of a cluster leads: to the pods of the object, whatever people write into statuses, Services and
//! EndpointSlices.

use std::sync::Mutex;

use hyper::{server::conn::http1, service::service_fn};
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use skep_api::kinds::VirtualMCPServer;

use super::{calls::own_address, *};

const CONTROLLER: &str = "endpointslice-controller.k8s.io";

/// Something that listens, with the requests that it has received.
struct Target {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Target {
    /// It responds with a redirect to this address, or with a message.
    async fn start(redirect: Option<String>) -> Self {
        let listener = TcpListener::bind((own_address(), 0)).await.unwrap();
        let target = Self { address: listener.local_addr().unwrap(), seen: Arc::default() };
        let seen = target.seen.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (seen, redirect) = (seen.clone(), redirect.clone());
                let service = service_fn(move |request: Request<Incoming>| {
                    seen.lock().unwrap().push(request.uri().to_string());
                    let mut response = Response::new(Full::new(Bytes::from_static(b"{\"pong\":true}")));
                    if let Some(redirect) = &redirect {
                        *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
                        let location = HeaderValue::from_str(redirect).unwrap();
                        response.headers_mut().insert(header::LOCATION, location);
                    }
                    async { Ok::<_, std::convert::Infallible>(response) }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        target
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

/// A console with a server `one`, and a page of a user who may see it.
struct Fixture {
    test: Namespace,
    page: Page,
    server: MCPServer,
}

impl Fixture {
    async fn new() -> Self {
        let test = skep_testkit::namespace().await;
        server(&test, "one").await;
        let address = console(&test).await;
        let token = token(&test, "viewer", vec![may_get(&["mcpservers"], &[])]).await;
        let page = Page::signed_in(address, &token).await;
        let server = test.api::<MCPServer>().get("one").await.unwrap();
        let fixture = Self { test, page, server };
        fixture
            .set_url(&format!("http://mcp-one-proxy.{}.svc.cluster.local:8080/mcp", fixture.test.name()))
            .await;
        fixture
    }

    async fn set_url(&self, url: &str) {
        let status = Patch::Merge(json!({"status": {"phase": "Ready", "url": url}}));
        self.test.api::<MCPServer>().patch_status("one", &PatchParams::default(), &status).await.unwrap();
        let path = format!("objects/MCPServer/{}/one", self.test.name());
        until("the console knows the address", async || {
            let detail: Value = serde_json::from_str(&self.page.get(&path).await.1).unwrap_or_default();
            detail["url"] == url
        })
        .await;
    }

    /// The Service as the operator writes it.
    fn service(&self) -> Value {
        json!({
            "metadata": {
                "name": "mcp-one-proxy", "labels": {"toolhive": "true"},
                "ownerReferences": [{
                    "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer", "name": "one",
                    "uid": self.server.uid(), "controller": true,
                }],
            },
            "spec": {"selector": {"app": "one"}, "ports": [{"name": "http", "port": 8080}]},
        })
    }

    /// Creates the Service, and a slice with a pod at this address as the cluster writes it.
    async fn serve(&self, service: Value, managed_by: &str, target: &Target) {
        let service: Service = serde_json::from_value(service).unwrap();
        let created = self.test.api::<Service>().create(&PostParams::default(), &service).await.unwrap();
        let slice: EndpointSlice = serde_json::from_value(json!({
            "metadata": {
                "name": "mcp-one-proxy-1",
                "labels": {
                    "kubernetes.io/service-name": "mcp-one-proxy", "toolhive": "true",
                    "endpointslice.kubernetes.io/managed-by": managed_by,
                },
                "ownerReferences": [{
                    "apiVersion": "v1", "kind": "Service", "name": "mcp-one-proxy", "uid": created.uid(),
                    "controller": true,
                }],
            },
            "addressType": "IPv4", "ports": [{"name": "http", "port": target.address.port()}],
            "endpoints": [{"addresses": [target.address.ip()], "conditions": {"ready": true}}],
        }))
        .unwrap();
        self.test.create_object(&slice).await;
    }

    /// The status of a request to the server, and its body.
    async fn try_it(&self) -> (StatusCode, String) {
        let path = format!("mcp/MCPServer/{}/one", self.test.name());
        let response = self.page.send(Method::POST, &path, "{}").await;
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }
}

#[tokio::test]
async fn a_request_reaches_the_pod_behind_the_service_of_the_object() {
    let fixture = Fixture::new().await;
    let target = Target::start(None).await;
    fixture.serve(fixture.service(), CONTROLLER, &target).await;
    assert_eq!(fixture.try_it().await, (StatusCode::OK, "{\"pong\":true}".to_owned()));
    assert_eq!(target.seen(), ["/mcp"]);
    // A pod that is not ready gets nothing.
    let slices: Api<EndpointSlice> = fixture.test.api();
    let unready =
        json!({"endpoints": [{"addresses": [target.address.ip()], "conditions": {"ready": false}}]});
    slices.patch("mcp-one-proxy-1", &PatchParams::default(), &Patch::Merge(unready)).await.unwrap();
    assert_eq!(fixture.try_it().await.0, StatusCode::CONFLICT);
}

#[tokio::test]
async fn a_service_that_leads_elsewhere_leads_the_console_nowhere() {
    let target = Target::start(None).await;
    let changed = async |change: fn(&mut Value), managed_by: &str, port: u16| {
        let fixture = Fixture::new().await;
        let mut service = fixture.service();
        change(&mut service);
        if service["spec"]["type"] == "ExternalName" {
            // A name of this machine, as a user could name the cloud's metadata service or one of another namespace.
            let name = format!("{}.nip.invalid", target.address.ip());
            service["spec"]["externalName"] = json!(name);
        }
        fixture.serve(service, managed_by, &target).await;
        if port != 8080 {
            let host = format!("mcp-one-proxy.{}.svc", fixture.test.name());
            fixture.set_url(&format!("http://{host}:{port}/mcp")).await;
        }
        let (status, body) = fixture.try_it().await;
        assert_eq!(status, StatusCode::CONFLICT, "{body}");
    };
    let keep: fn(&mut Value) = |_| {};
    // A name elsewhere.
    changed(
        |service| {
            service["spec"] = json!({"type": "ExternalName", "selector": {"app": "one"}, "ports": [{"name": "http", "port": 8080}]});
        },
        CONTROLLER,
        8080,
    )
    .await;
    // Addresses that were written by hand: for a Service without pods, or beside those of its pods.
    changed(|service| drop(service["spec"].as_object_mut().unwrap().remove("selector")), CONTROLLER, 8080)
        .await;
    changed(keep, "a-user", 8080).await;
    // A Service of a user, or of another object.
    changed(
        |service| drop(service["metadata"].as_object_mut().unwrap().remove("ownerReferences")),
        CONTROLLER,
        8080,
    )
    .await;
    changed(
        |service| {
            service["metadata"]["ownerReferences"][0]["uid"] = json!("11111111-1111-1111-1111-111111111111")
        },
        CONTROLLER,
        8080,
    )
    .await;
    changed(
        |service| service["metadata"]["ownerReferences"][0]["kind"] = json!("MCPGroup"),
        CONTROLLER,
        8080,
    )
    .await;
    // A port that the Service does not have.
    changed(keep, CONTROLLER, 9090).await;
    assert!(target.seen().is_empty(), "{:?}", target.seen());
}

#[tokio::test]
async fn an_address_that_is_no_service_of_the_namespace_leads_nowhere() {
    let fixture = Fixture::new().await;
    let target = Target::start(None).await;
    fixture.serve(fixture.service(), CONTROLLER, &target).await;
    for url in [
        format!("http://{}/mcp", target.address),
        "http://mcp-one-proxy.default.svc.cluster.local:8080/mcp".to_owned(),
        "http://kubernetes.default.svc:443/mcp".to_owned(),
        format!("http://mcp-one-proxy.{}.svc:8080/secrets", fixture.test.name()),
    ] {
        fixture.set_url(&url).await;
        assert_eq!(fixture.try_it().await.0, StatusCode::CONFLICT, "{url}");
    }
    assert!(target.seen().is_empty());
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Target::start(None).await;
    for location in [format!("http://{}/mcp", elsewhere.address), "/admin".to_owned()] {
        let fixture = Fixture::new().await;
        let target = Target::start(Some(location)).await;
        fixture.serve(fixture.service(), CONTROLLER, &target).await;
        assert_eq!(fixture.try_it().await.0, StatusCode::TEMPORARY_REDIRECT);
        assert_eq!(target.seen(), ["/mcp"]);
    }
    assert!(elsewhere.seen().is_empty());
}

#[tokio::test]
async fn a_virtual_server_is_reached_by_its_address_without_a_path() {
    let fixture = Fixture::new().await;
    let test = &fixture.test;
    let hub: VirtualMCPServer = serde_json::from_value(json!({
        "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "VirtualMCPServer", "metadata": {"name": "hub"},
        "spec": {"groupRef": {"name": "one-group"}, "incomingAuth": {"type": "anonymous"}},
    }))
    .unwrap();
    let hub = test.create_object(&hub).await;
    let mut service = fixture.service();
    service["metadata"]["ownerReferences"][0] = json!({
        "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "VirtualMCPServer", "name": "hub",
        "uid": hub.uid(), "controller": true,
    });
    let target = Target::start(None).await;
    fixture.serve(service, CONTROLLER, &target).await;
    let token = token(test, "other", vec![may_get(&["virtualmcpservers"], &[])]).await;
    let page = Page::signed_in(fixture.page.address, &token).await;
    let url = format!("http://mcp-one-proxy.{}.svc.cluster.local:8080", test.name());
    let status = Patch::Merge(json!({"status": {"phase": "Ready", "url": url}}));
    test.api::<VirtualMCPServer>().patch_status("hub", &PatchParams::default(), &status).await.unwrap();
    let path = format!("mcp/VirtualMCPServer/{}/hub", test.name());
    until("it responds", async || page.send(Method::POST, &path, "{}").await.status() == StatusCode::OK)
        .await;
    assert_eq!(target.seen(), ["/mcp"]);
}
