//! Members of a group, on a real API server: they come, change and go without a restart, and without a lost session.

use std::time::Duration;

use k8s_openapi::{
    api::core::v1::{ConfigMap, Secret},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use skep_api::kinds::{MCPExternalAuthConfig, MCPServer, MCPServerEntry, VirtualMCPServer};
use skep_testkit::{ControlPlane, Namespace, audit::Recording};
use skep_vmcp::Cluster;

use crate::{
    Server,
    backend::{Backend, Mood, tool},
    client::text,
    until,
};

/// Health is checked often.
const CHECKS: &str =
    "operational: {failureHandling: {healthCheckInterval: 500ms, healthCheckTimeout: 450ms}}\n";

fn parsed<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// A virtual server that discovers the members of the group `team`.
async fn discovering(test: &Namespace) -> Server {
    discovering_with(test, "").await
}

/// The same with more lines in its configuration.
async fn discovering_with(test: &Namespace, more: &str) -> Server {
    virtual_server(test).await;
    replica(test, more).await
}

/// The object that replicas report to.
async fn virtual_server(test: &Namespace) {
    let virtual_server: VirtualMCPServer = parsed(json!({
        "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "VirtualMCPServer", "metadata": {"name": "all"},
        "spec": {"groupRef": {"name": "team"}, "incomingAuth": {"type": "anonymous"}},
    }));
    test.create_object(&virtual_server).await;
}

/// A replica of it, with more lines in its configuration.
async fn replica(test: &Namespace, more: &str) -> Server {
    let client = test.admin("vmcp").client();
    let cluster = Cluster { client, namespace: test.name().to_owned(), name: Some("all".into()) };
    let config = "name: test\ngroupRef: team\nincomingAuth: {type: anonymous}\noutgoingAuth: {source: discovered}\n\
                  aggregation: {conflictResolution: prefix, conflictResolutionConfig: {prefixFormat: \"{workload}_\"}}\n";
    Server::of(&format!("{config}{more}"), None, Some(cluster)).await
}

/// A member of a group whose proxy is this backend.
async fn member(test: &Namespace, name: &str, group: &str, backend: &Backend, spec: Value) {
    let mut all = json!({"image": "example", "transport": "streamable-http", "groupRef": {"name": group}});
    all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let server: MCPServer = parsed(json!({
        "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer", "metadata": {"name": name}, "spec": all,
    }));
    test.create_object(&server).await;
    address(test, name, backend).await;
}

async fn address(test: &Namespace, name: &str, backend: &Backend) {
    let servers: Api<MCPServer> = test.api();
    let status = Patch::Merge(json!({"status": {"url": backend.url(), "phase": "Ready"}}));
    servers.patch_status(name, &PatchParams::default(), &status).await.unwrap();
}

/// Waits until new clients see tools of these backends.
async fn until_offered(server: &Server, backends: &[&str]) {
    let expected: Vec<String> = backends.iter().map(|backend| format!("{backend}_echo")).collect();
    loop {
        let tools = server.client().await.tools().await;
        let offered: Vec<String> = tools.into_iter().filter(|tool| tool.ends_with("_echo")).collect();
        if offered == expected {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn members_come_and_go_without_a_lost_session() {
    let test = skep_testkit::namespace().await;
    let (one, two, other) = (Backend::start().await, Backend::start().await, Backend::start().await);
    member(&test, "one", "team", &one, json!({})).await;
    member(&test, "other", "another-team", &other, json!({})).await;
    let server = discovering(&test).await;
    until_offered(&server, &["one"]).await;
    let client = server.client().await;
    let session = text(&client.call("one_whoami").await).0.to_owned();
    member(&test, "two", "team", &two, json!({})).await;
    until_offered(&server, &["one", "two"]).await;
    assert!(!text(&client.call("two_echo").await).1, "a session sees a member that came later");
    test.object::<MCPServer>("two").delete().await;
    until_offered(&server, &["one"]).await;
    let removed = client.call("two_echo").await;
    assert_eq!(removed["error"]["message"], "unknown tool \"two_echo\"");
    // It moves to another group.
    test.object::<MCPServer>("other").patch(&json!({"spec": {"groupRef": {"name": "team"}}})).await;
    until_offered(&server, &["one", "other"]).await;
    assert_eq!(text(&client.call("one_whoami").await).0, session, "the others were not touched");
}

#[tokio::test]
async fn a_member_at_another_address_is_used_there() {
    let test = skep_testkit::namespace().await;
    let (before, after) = (Backend::start().await, Backend::start().await);
    member(&test, "one", "team", &before, json!({})).await;
    let server = discovering(&test).await;
    until_offered(&server, &["one"]).await;
    let client = server.client().await;
    client.call("one_echo").await;
    address(&test, "one", &after).await;
    loop {
        client.call("one_echo").await;
        if !after.received("tools/call").is_empty() {
            return;
        }
    }
}

#[tokio::test]
async fn a_changed_secret_is_used_at_once_and_a_missing_one_leaves_out_its_member_alone() {
    let test = skep_testkit::namespace().await;
    let (keyed, open) = (Backend::start().await, Backend::start().await);
    let auth: MCPExternalAuthConfig = parsed(json!({
        "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPExternalAuthConfig", "metadata": {"name": "key"},
        "spec": {"type": "headerInjection", "headerInjection":
            {"headerName": "X-Key", "valueSecretRef": {"name": "key", "key": "value"}}},
    }));
    test.create_object(&auth).await;
    member(&test, "keyed", "team", &keyed, json!({"externalAuthConfigRef": {"name": "key"}})).await;
    member(&test, "open", "team", &open, json!({})).await;
    let server = discovering(&test).await;
    until_offered(&server, &["open"]).await;
    let secret: Secret = parsed(json!({"metadata": {"name": "key"}, "stringData": {"value": "first"}}));
    test.create_object(&secret).await;
    until_offered(&server, &["keyed", "open"]).await;
    let client = server.client().await;
    client.call("keyed_echo").await;
    assert_eq!(keyed.last_header("x-key"), Some("first".into()));
    test.object::<Secret>("key").patch(&json!({"stringData": {"value": "second"}})).await;
    while keyed.last_header("x-key") != Some("second".into()) {
        client.call("keyed_echo").await;
    }
}

#[tokio::test]
async fn the_status_has_the_backends_and_is_written_only_when_they_change() {
    let test = skep_testkit::namespace().await;
    let (one, two) = (Backend::start().await, Backend::start().await);
    let auth: MCPExternalAuthConfig = parsed(json!({
        "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPExternalAuthConfig", "metadata": {"name": "open"},
        "spec": {"type": "unauthenticated"},
    }));
    test.create_object(&auth).await;
    member(&test, "one", "team", &one, json!({"externalAuthConfigRef": {"name": "open"}})).await;
    member(&test, "two", "team", &two, json!({})).await;
    two.set(Mood::Status(401));
    virtual_server(&test).await;
    let recording = test.admin("vmcp").record();
    let writes = async || recording.count("patch", "virtualmcpservers", "status").await;
    let server = replica(&test, CHECKS).await;
    let handle = test.object::<VirtualMCPServer>("all");
    let has = |object: Option<&VirtualMCPServer>, state: &str| {
        let status = object.and_then(|object| object.status.as_ref());
        let two = status.and_then(|status| status.discovered_backends.get(1));
        two.is_some_and(|backend| backend.status.as_deref() == Some(state))
    };
    let lists = |object: Option<&VirtualMCPServer>| {
        let status = object.and_then(|object| object.status.as_ref());
        status.is_some_and(|status| {
            status.discovered_backends.first().is_some_and(|one| one.tool_count == Some(3))
        })
    };
    let is_complete = |object: Option<&VirtualMCPServer>| has(object, "unauthenticated") && lists(object);
    let object = handle.until("it has both backends", is_complete).await.unwrap();
    let status = serde_json::to_value(object.status.unwrap()).unwrap();
    let backend = |name: &str, url: String, state: &str| {
        let mut backend = json!({"name": name, "url": url, "status": state, "authType": "unauthenticated",
            "circuitBreakerState": "closed"});
        match state {
            "ready" => {
                backend["authConfigRef"] = "open".into();
                backend["mcpRevision"] = "2025-11-25".into();
                backend["toolCount"] = 3.into();
                let tool =
                    |original: &str| json!({"name": format!("{name}_{original}"), "originalName": original});
                backend["tools"] = ["echo", "last", "whoami"].map(tool).into_iter().collect();
            }
            _ => backend["message"] = "authentication_failed".into(),
        }
        backend
    };
    let expected = [backend("one", one.url(), "ready"), backend("two", two.url(), "unauthenticated")];
    assert_eq!((&status["discoveredBackends"], &status["backendCount"]), (&json!(expected), &json!(2)));
    let condition = &status["conditions"][0];
    assert_eq!((&condition["type"], &condition["status"]), (&json!("BackendsDiscovered"), &json!("True")));
    let (version, written, looks) =
        (object.metadata.resource_version, writes().await, looks(&recording).await);
    // Another replica finds what is written already, and checks and sessions go on.
    let other = replica(&test, CHECKS).await;
    while self::looks(&recording).await == looks {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let checked = two.received("server/discover").len();
    until_offered(&other, &["one"]).await;
    until(|| two.received("server/discover").len() > checked + 6).await;
    assert_eq!(writes().await, written, "nothing has changed");
    two.set(Mood::Good);
    // A new session has lists read again.
    until_offered(&server, &["one", "two"]).await;
    let object = handle.until("it has the change", |object| has(object, "ready")).await.unwrap();
    let managers = object.metadata.managed_fields.unwrap();
    assert!(
        managers.iter().any(|entry| entry.manager.as_deref() == Some("vmcp-status-reporter")),
        "{managers:?}"
    );
    assert_ne!(object.metadata.resource_version, version);
    // Both may have found it at the same time.
    assert!((1..=2).contains(&(writes().await - written)), "{} writes", writes().await - written);
}

#[tokio::test]
async fn a_replica_that_leaves_reports_no_change() {
    let test = skep_testkit::namespace().await;
    let (one, two) = (Backend::start().await, Backend::start().await);
    member(&test, "one", "team", &one, json!({})).await;
    let server = discovering(&test).await;
    let handle = test.object::<VirtualMCPServer>("all");
    let is_ready = |object: Option<&VirtualMCPServer>| {
        let status = object.and_then(|object| object.status.as_ref());
        let one = status.and_then(|status| status.discovered_backends.first());
        one.is_some_and(|one| one.tool_count == Some(3))
    };
    let object = handle.until("it has the backend", is_ready).await.unwrap();
    server.server.drain();
    member(&test, "two", "team", &two, json!({})).await;
    until_offered(&server, &["one", "two"]).await;
    // A report follows a change after a second.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let live = test.api::<VirtualMCPServer>().get("all").await.unwrap();
    assert_eq!(live.metadata.resource_version, object.metadata.resource_version);
}

/// How often replicas have looked at the object.
async fn looks(recording: &Recording) -> usize {
    recording.count("get", "virtualmcpservers", "").await
}

#[tokio::test]
async fn an_entry_is_used_with_its_headers_and_its_authority() {
    let test = skep_testkit::namespace().await;
    let (backend, certificate) = Backend::with_tls().await;
    let entry = |name: &str, more: Value| -> MCPServerEntry {
        let mut spec = json!({"remoteUrl": backend.https_url(), "transport": "streamable-http",
            "allowPrivateEndpoint": true, "groupRef": {"name": "team"}});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        parsed(json!({"apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServerEntry",
            "metadata": {"name": name}, "spec": spec}))
    };
    let headers = json!({
        "addPlaintextHeaders": {"X-Plain": "plain"},
        "addHeadersFromSecret": [{"headerName": "X-Key", "valueSecretRef": {"name": "key", "key": "value"}}],
    });
    let authority = json!({"configMapRef": {"name": "authority", "key": "ca.crt"}});
    let entries = [
        entry("trusted", json!({"headerForward": headers, "caBundleRef": authority})),
        // The authority of its certificate is not among those of this machine.
        entry("untrusted", json!({})),
        entry("pending", json!({"caBundleRef": authority})),
    ];
    for entry in &entries {
        test.create_object(entry).await;
    }
    let config: ConfigMap =
        parsed(json!({"metadata": {"name": "authority"}, "data": {"ca.crt": certificate}}));
    test.create_object(&config).await;
    let secret: Secret = parsed(json!({"metadata": {"name": "key"}, "stringData": {"value": "first"}}));
    test.create_object(&secret).await;
    // The operator has validated two of them.
    let api: Api<MCPServerEntry> = test.api();
    for name in ["trusted", "untrusted"] {
        let status = Patch::Merge(json!({"status": {"phase": "Valid"}}));
        api.patch_status(name, &PatchParams::default(), &status).await.unwrap();
    }
    let server = discovering(&test).await;
    until_offered(&server, &["trusted"]).await;
    let client = server.client().await;
    assert!(!text(&client.call("trusted_echo").await).1);
    assert_eq!(backend.last_header("x-key"), Some("first".into()));
    assert_eq!(backend.last_header("x-plain"), Some("plain".into()));
    test.object::<Secret>("key").patch(&json!({"stringData": {"value": "second"}})).await;
    while backend.last_header("x-key") != Some("second".into()) {
        client.call("trusted_echo").await;
    }
    let failed = client.call("untrusted_echo").await;
    assert_eq!(failed["error"]["message"], "unknown tool \"untrusted_echo\"", "{failed}");
}

#[tokio::test]
async fn members_are_used_with_the_strategy_that_they_refer_to() {
    let test = skep_testkit::namespace().await;
    let secret: Secret = parsed(json!({"metadata": {"name": "client"}, "stringData": {"secret": "s3cret"}}));
    test.create_object(&secret).await;
    let key = json!({"name": "client", "key": "secret"});
    let backend = Backend::start().await;
    for (name, type_, fields) in [
        (
            "aws",
            "awsSts",
            json!({"region": "eu-west-1", "fallbackRoleArn": "arn:aws:iam::123456789012:role/dev"}),
        ),
        (
            "entra",
            "obo",
            json!({"tenantId": "contoso.example", "clientId": "app", "clientSecretRef": key, "audience": "api://files"}),
        ),
        (
            "partner",
            "xaa",
            json!({"idpTokenUrl": "https://idp.example/token", "targetTokenUrl": "https://as.example/token",
                "targetAudience": "https://as.example", "idpClientId": "us", "idpClientSecretRef": key}),
        ),
    ] {
        let auth: MCPExternalAuthConfig = parsed(json!({
            "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPExternalAuthConfig", "metadata": {"name": name},
            "spec": {"type": type_, type_: fields},
        }));
        test.create_object(&auth).await;
        member(&test, name, "team", &backend, json!({"externalAuthConfigRef": {"name": name}})).await;
    }
    let _server = discovering(&test).await;
    let strategies = |object: Option<&VirtualMCPServer>| -> Vec<String> {
        let status = object.and_then(|object| object.status.as_ref());
        let backends = status.map(|status| status.discovered_backends.as_slice()).unwrap_or_default();
        backends.iter().filter_map(|backend| backend.auth_type.clone()).collect()
    };
    let handle = test.object::<VirtualMCPServer>("all");
    handle
        .until("it has all members", |object| strategies(object) == ["aws_sts", "obo", "xaa"])
        .await
        .unwrap();
}

#[tokio::test]
async fn a_composite_tool_that_clients_do_not_see_is_a_condition_with_the_reason() {
    let test = skep_testkit::namespace().await;
    let one = Backend::start().await;
    member(&test, "one", "team", &one, json!({})).await;
    let composite = |name: &str, tool: &str| {
        format!("{{name: {name}, description: d, steps: [{{id: s, tool: {tool}}}]}}")
    };
    let (early, late) = (composite("early", "one_late"), composite("good", "one_echo"));
    let server = discovering_with(&test, &format!("compositeTools: [{early}, {late}]\n")).await;
    let offered = |object: Option<&VirtualMCPServer>| {
        let conditions = &object?.status.as_ref()?.conditions;
        let found = conditions.iter().find(|condition| condition.type_ == "CompositeToolsOffered")?;
        Some((found.status.clone(), found.reason.clone(), found.message.clone()))
    };
    let handle = test.object::<VirtualMCPServer>("all");
    let expected =
        ("False", "CompositeToolsNotOffered", "early: no backend has the tool \"one_late\" of a step");
    let expected = (expected.0.to_owned(), expected.1.to_owned(), expected.2.to_owned());
    handle.until("it has the reason", |object| offered(object).as_ref() == Some(&expected)).await.unwrap();
    assert!(server.client().await.tools().await.contains(&"good".to_owned()));
    one.set_tools(vec![tool("echo"), tool("late")]);
    let is_met = |object: Option<&VirtualMCPServer>| offered(object).is_some_and(|found| found.0 == "True");
    loop {
        // A new session has lists read again.
        server.client().await.tools().await;
        if is_met(handle.find().await.as_ref()) {
            return;
        }
    }
}

#[tokio::test]
async fn a_cluster_whose_crd_lacks_the_fields_for_tools_gets_the_rest_of_the_status() {
    let plane = ControlPlane::start().await;
    let test = plane.namespace().await;
    let crds: Api<CustomResourceDefinition> = Api::all(test.client());
    let name = "virtualmcpservers.toolhive.stacklok.dev";
    let mut crd = serde_json::to_value(crds.get(name).await.unwrap()).unwrap();
    for version in crd["spec"]["versions"].as_array_mut().unwrap() {
        let status = &mut version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"];
        let backend = status["discoveredBackends"]["items"]["properties"].as_object_mut().unwrap();
        for field in ["toolCount", "tools", "hiddenTools"] {
            backend.remove(field).unwrap();
        }
    }
    crds.replace(name, &PostParams::default(), &parsed(crd)).await.unwrap();
    let one = Backend::start().await;
    member(&test, "one", "team", &one, json!({})).await;
    let server = discovering(&test).await;
    until_offered(&server, &["one"]).await;
    let handle = test.object::<VirtualMCPServer>("all");
    let is_reported = |object: Option<&VirtualMCPServer>| {
        let status = object.and_then(|object| object.status.as_ref());
        status.is_some_and(|status| {
            let backend = status.discovered_backends.first();
            backend.is_some_and(|one| one.status.as_deref() == Some("ready") && one.tools.is_empty())
        })
    };
    handle.until("its backend is reported", is_reported).await.unwrap();
}
