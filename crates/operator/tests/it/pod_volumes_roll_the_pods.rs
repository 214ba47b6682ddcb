//! Operator-managed pod volumes roll the pods.

use crate::kinds::{Entries, OidcConfigs, TelemetryConfigs, VirtualServers};
use skep_operator::resources::Deployments;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use http::{Method, Request};
use kube::{
    Client,
    client::{Body, ClientBuilder},
};
use serde_json::{Value, json};
use skep_api::kinds::{MCPGroup, MCPOIDCConfig, MCPServerEntry, MCPTelemetryConfig, VirtualMCPServer};
use skep_converge::{Kind, Mode};
use skep_operator::{
    reconcile::{ReconcileError, Reconciler},
    run::watches,
    settings::Settings,
};
use skep_testkit::{User, fixtures::TestGroup, until};
use skep_world::{Target, Watched};
use tower::{BoxError, filter::FilterLayer};

use crate::{
    fixture::Fixture,
    virtual_server::{certificates, object, patch, secret, settled},
};

const HASH: &str = "toolhive.stacklok.io/podvolumes-hash";
const CHECKSUM: &str = "toolhive.stacklok.dev/runconfig-checksum";

/// What a server with every kind of managed volume refers to.
async fn references(fixture: &Fixture) {
    let test = &fixture.test;
    for name in ["v1", "v2"] {
        secret(fixture, name, &["one", "two"]).await;
        certificates(fixture, &format!("ca-{name}")).await;
    }
    test.create_object(&MCPGroup::test("all")).await;
    let bundle = json!({"configMapRef": {"name": "ca-v1", "key": "ca.crt"}});
    let oidc = json!({"type": "inline", "inline": {"issuer": "https://as.example", "caBundleRef": bundle}});
    test.create_object(&object::<MCPOIDCConfig>("idp", oidc)).await;
    let otel = json!({"openTelemetry": {
        "enabled": true, "endpoint": "https://otel.example", "tracing": {"enabled": true}, "caBundleRef": bundle,
    }});
    test.create_object(&object::<MCPTelemetryConfig>("otel", otel)).await;
    for name in ["ext", "far"] {
        let entry = json!({
            "remoteUrl": "https://ext.example/mcp", "transport": "sse", "groupRef": {"name": "all"},
            "caBundleRef": bundle,
        });
        test.create_object(&object::<MCPServerEntry>(name, entry)).await;
    }
}

fn front() -> VirtualMCPServer {
    let secret = json!({"name": "v1", "key": "one"});
    object(
        "front",
        json!({
            "groupRef": {"name": "all"},
            "telemetryConfigRef": {"name": "otel"},
            "incomingAuth": {"type": "oidc", "oidcConfigRef": {
                "name": "idp", "audience": "https://mcp.example", "resourceUrl": "https://mcp.example",
            }},
            "authServerConfig": {
                "issuer": "https://as.example",
                "signingKeySecretRefs": [secret],
                "hmacSecretRefs": [secret],
                "upstreamProviders": [{"name": "corp", "type": "oidc", "oidcConfig": {
                    "issuerUrl": "https://idp.example", "clientId": "c",
                }}],
                "storage": {"type": "redis", "redis": {
                    "sentinelConfig": {"masterName": "m", "sentinelAddrs": ["sentinel:26379"]},
                    "aclUserConfig": {"passwordSecretRef": secret},
                    "tls": {"caCertSecretRef": secret},
                    "sentinelTls": {"caCertSecretRef": secret},
                }},
            },
        }),
    )
}

/// A settled server with every kind of managed volume, which no further reconciliation would change.
async fn settled_front() -> Fixture {
    let fixture = Fixture::new().await;
    references(&fixture).await;
    fixture.test.create_object(&front()).await;
    let server = settled(&fixture, "front").await;
    let status = server.status.unwrap();
    assert_eq!(status.phase.unwrap().as_str(), "Pending", "{:?}", status.message);
    let recording = fixture.record();
    settled(&fixture, "front").await;
    assert_eq!(recording.writes().await, [] as [&str; 0], "it starts with no drift at all");
    fixture
}

async fn deployment(fixture: &Fixture) -> Value {
    serde_json::to_value(fixture.object(Deployments::kind(), "front").await.unwrap()).unwrap()
}

fn hash(deployment: &Value) -> String {
    deployment["metadata"]["annotations"][HASH].as_str().unwrap().to_owned()
}

/// The pods, without their volumes.
fn without_volumes(deployment: &Value) -> Value {
    let mut template = deployment["spec"]["template"].clone();
    template["spec"]["volumes"] = json!(null);
    template["spec"]["containers"][0]["volumeMounts"] = json!(null);
    template
}

/// The hash identifies its input: equal volumes have equal hashes, and different ones different hashes.
#[tokio::test]
async fn a_change_of_any_managed_volume_rolls_the_pods_for_this_reason_alone() {
    let fixture = settled_front().await;
    let server =
        |fields: Value| (VirtualServers::kind(), "front", json!({"spec": {"authServerConfig": fields}}));
    let redis = |fields: Value| server(json!({"storage": {"redis": fields}}));
    let bundle = |key: &str, value: &str| json!({"caBundleRef": {"configMapRef": {key: value}}});
    let entry = |name, key, value| (Entries::kind(), name, json!({"spec": bundle(key, value)}));
    // What, the change, and whether the file that the server reads names it too.
    let rows: Vec<(&str, (Kind, &str, Value), bool)> = vec![
        (
            "signing key, Secret",
            server(json!({"signingKeySecretRefs": [{"name": "v2", "key": "one"}]})),
            false,
        ),
        ("signing key, key", server(json!({"signingKeySecretRefs": [{"name": "v2", "key": "two"}]})), false),
        ("HMAC secret, Secret", server(json!({"hmacSecretRefs": [{"name": "v2", "key": "one"}]})), false),
        ("HMAC secret, key", server(json!({"hmacSecretRefs": [{"name": "v2", "key": "two"}]})), false),
        ("Redis CA", redis(json!({"tls": {"caCertSecretRef": {"name": "v2"}}})), false),
        ("Redis CA, key", redis(json!({"tls": {"caCertSecretRef": {"key": "two"}}})), false),
        ("Sentinel CA", redis(json!({"sentinelTls": {"caCertSecretRef": {"name": "v2"}}})), false),
        ("entry CA", entry("ext", "name", "ca-v2"), false),
        ("entry CA, key", entry("ext", "key", "other.crt"), false),
        ("another entry's CA", entry("far", "name", "ca-v2"), false),
        ("no entry CA", (Entries::kind(), "far", json!({"spec": {"caBundleRef": null}})), false),
        ("OIDC CA", (OidcConfigs::kind(), "idp", json!({"spec": {"inline": bundle("name", "ca-v2")}})), true),
        (
            "telemetry CA",
            (TelemetryConfigs::kind(), "otel", json!({"spec": {"openTelemetry": bundle("name", "ca-v2")}})),
            true,
        ),
    ];
    let mut hashes = BTreeSet::from([hash(&deployment(&fixture).await)]);
    for (what, (kind, name, change), in_file) in rows {
        let before = deployment(&fixture).await;
        let recording = fixture.record();
        fixture.patch_any(kind, name, change).await;
        until(what, async || hash(&deployment(&fixture).await) != hash(&before)).await;
        settled(&fixture, "front").await;
        let after = deployment(&fixture).await;
        assert!(hashes.insert(hash(&after)), "{what}: the hash is a new one");
        assert_ne!(after["spec"]["template"], before["spec"]["template"], "{what}: the pods roll");
        let checksum =
            |deployment: &Value| deployment["spec"]["template"]["metadata"]["annotations"][CHECKSUM].clone();
        assert_eq!(checksum(&after) != checksum(&before), in_file, "{what}: the file");
        if !in_file {
            assert_eq!(without_volumes(&after), without_volumes(&before), "{what}: for this reason alone");
        }
        let requests = recording.requests().await;
        let writes =
            requests.iter().filter(|request| request.is_write() && request.resource == "deployments");
        assert_eq!(writes.count(), 1, "{what}: one write");
    }
    fixture.operator.stop().await;
}

#[tokio::test]
async fn defaults_of_the_api_server_do_not_roll_pods() {
    let fixture = settled_front().await;
    let before = hash(&deployment(&fixture).await);
    let pods = "/spec/template/spec";
    for (path, value) in [
        (format!("{pods}/volumes/0/configMap/defaultMode"), json!(416)),
        (format!("{pods}/volumes/1/configMap/defaultMode"), json!(416)),
        (format!("{pods}/dnsPolicy"), json!("Default")),
        (format!("{pods}/schedulerName"), json!("other")),
        (format!("{pods}/containers/0/terminationMessagePath"), json!("/dev/other")),
        (format!("{pods}/containers/0/terminationMessagePolicy"), json!("FallbackToLogsOnError")),
        (format!("{pods}/containers/0/readinessProbe/successThreshold"), json!(2)),
        ("/spec/revisionHistoryLimit".into(), json!(3)),
        ("/spec/progressDeadlineSeconds".into(), json!(700)),
    ] {
        let object = format!(
            "{}/front?fieldManager=another-writer",
            Deployments::kind().path(Some(fixture.test.name()))
        );
        let request = Request::patch(object).header("content-type", "application/json-patch+json");
        let operation = json!([{"op": "replace", "path": path, "value": value}]);
        let recording = fixture.record();
        let request = request.body(operation.to_string().into_bytes()).unwrap();
        let theirs: Value = fixture.test.client().request(request).await.unwrap();
        settled(&fixture, "front").await;
        assert_eq!(recording.writes().await, [] as [&str; 0], "{path}");
        let after = deployment(&fixture).await;
        assert_eq!(hash(&after), before, "{path}");
        assert_eq!(after["metadata"]["generation"], theirs["metadata"]["generation"], "{path}: it is theirs");
    }
    fixture.operator.stop().await;
}

/// The name of the ConfigMap that a Deployment mounts for the entry.
fn mounted(deployment: &Value) -> String {
    let volumes = deployment["spec"]["template"]["spec"]["volumes"].as_array().unwrap();
    let volume = volumes.iter().find(|volume| volume["name"] == "ca-bundle-ext").unwrap();
    volume["configMap"]["name"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_hash_and_the_volumes_agree_even_if_an_entry_changes_meanwhile() {
    let fixture = settled_front().await;
    let mut seen: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for round in 0..30 {
        let name = if round % 2 == 0 { "ca-v2" } else { "ca-v1" };
        let change = json!({"spec": {"caBundleRef": {"configMapRef": {"name": name}}}});
        fixture.patch_any(Entries::kind(), "ext", change).await;
        // Not awaited: the next change may arrive while this one is being reconciled.
        let now = deployment(&fixture).await;
        seen.entry(mounted(&now)).or_default().insert(hash(&now));
    }
    for name in ["ca-v1", "ca-v2"] {
        let change = json!({"spec": {"caBundleRef": {"configMapRef": {"name": name}}}});
        fixture.patch_any(Entries::kind(), "ext", change).await;
        until(name, async || mounted(&deployment(&fixture).await) == name).await;
        settled(&fixture, "front").await;
        let now = deployment(&fixture).await;
        assert_eq!(mounted(&now), name, "the last change counts");
        seen.entry(name.into()).or_default().insert(hash(&now));
    }
    let all: BTreeSet<&String> = seen.values().flatten().collect();
    assert!(seen.values().all(|hashes| hashes.len() == 1), "each volume has one hash: {seen:#?}");
    assert_eq!(all.len(), seen.len(), "and no two share one: {seen:#?}");
    fixture.operator.stop().await;
}

#[tokio::test]
async fn drift_is_detected_without_reads() {
    let fixture = settled_front().await;
    let good = deployment(&fixture).await;
    let recording = fixture.record();
    let drift = json!({"metadata": {"annotations": {HASH: "0000"}}});
    fixture.patch_any(Deployments::kind(), "front", drift).await;
    until("the hash is put back", async || hash(&deployment(&fixture).await) == hash(&good)).await;
    settled(&fixture, "front").await;
    let requests = recording.requests().await;
    let made: Vec<String> = requests
        .iter()
        .filter(|request| request.resource != "events")
        .map(|request| format!("{} {}/{}", request.verb, request.resource, request.name))
        .collect();
    assert_eq!(made, ["patch deployments/front"]);
    fixture.operator.stop().await;
}

/// A client that fails to read Secrets while the flag is set.
fn forgetful_client(user: &User, broken: Arc<AtomicBool>) -> Client {
    let reject = move |request: Request<Body>| -> Result<Request<Body>, BoxError> {
        let one_secret = *request.method() == Method::GET && request.uri().path().contains("/secrets/");
        if one_secret && broken.load(Ordering::Relaxed) { Err("out of order".into()) } else { Ok(request) }
    };
    ClientBuilder::try_from(user.config()).unwrap().with_layer(&FilterLayer::new(reject)).build()
}

#[tokio::test]
async fn a_failed_read_is_retried_and_changes_no_child() {
    let fixture = settled_front().await.stopped().await;
    let before = deployment(&fixture).await;
    let change =
        json!({"spec": {"authServerConfig": {"signingKeySecretRefs": [{"name": "v2", "key": "one"}]}}});
    fixture.patch_any(VirtualServers::kind(), "front", change).await;

    let broken = Arc::new(AtomicBool::new(true));
    let client = forgetful_client(&fixture.user, broken.clone());
    let namespace = fixture.test.name().to_owned();
    let world = watches().start(&client, std::slice::from_ref(&namespace));
    world.listed().await;
    let settings = Arc::new(Settings::default());
    let reconciler =
        Reconciler::<VirtualMCPServer>::new(client, world.clone(), settings, Arc::default(), Mode::Write);
    let target =
        Arc::new(Target { kind: VirtualServers::kind(), namespace: namespace.into(), name: "front".into() });
    let recording = fixture.record();
    for _ in 0..3 {
        let failure = reconciler.reconcile(&target).await.unwrap_err();
        assert!(matches!(failure, ReconcileError::Read(_)), "{failure}");
        assert!(
            failure.to_string().contains("v1") || failure.to_string().contains("v2"),
            "it names it: {failure}"
        );
    }
    let writes = recording.writes().await;
    assert!(writes.iter().all(|write| write.contains(" events")), "{writes:?}");
    let events = fixture.events().await;
    assert!(events.iter().any(|(reason, _)| reason == "ReadFailed"), "it is reported: {events:?}");
    assert_eq!(deployment(&fixture).await, before);

    broken.store(false, Ordering::Relaxed);
    reconciler.reconcile(&target).await.unwrap();
    assert_ne!(hash(&deployment(&fixture).await), hash(&before));
}

#[tokio::test]
async fn an_annotation_that_is_no_longer_desired_is_removed() {
    let fixture = settled_front().await;
    patch(
        &fixture,
        "front",
        json!({"imagePullSecrets": [{"name": "pull"}], "podTemplateSpec": {"spec": {"hostNetwork": false}}}),
    )
    .await;
    let annotations = async || {
        let deployment = deployment(&fixture).await;
        let annotations = deployment["metadata"]["annotations"].as_object().unwrap().clone();
        annotations.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
    };
    let all = ["imagepullsecrets-hash", "podtemplatespec-hash", "podvolumes-hash"];
    assert_eq!(annotations().await, all.map(|key| format!("toolhive.stacklok.io/{key}")));
    patch(&fixture, "front", json!({"imagePullSecrets": [], "podTemplateSpec": null})).await;
    assert_eq!(annotations().await, [HASH]);
    let recording = fixture.record();
    settled(&fixture, "front").await;
    assert_eq!(recording.writes().await, [] as [&str; 0]);
    fixture.operator.stop().await;
}
