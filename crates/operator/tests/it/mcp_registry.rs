//! An MCPRegistry from its creation to its deletion.

use crate::kinds::Registries;
use k8s_openapi::api::{
    core::v1::{ConfigMap, Secret},
    rbac::v1::Role,
};
use serde_json::{Value, json};
use skep_operator::resources::{ConfigMaps, Deployments, Services};
use skep_operator::settings::Settings;
use skep_testkit::json::condition;
use skep_world::Watched;

use crate::fixture::Fixture;

fn kind() -> skep_converge::Kind {
    Registries::kind()
}
const DEPRECATED: &str = "MCPRegistryDeprecated";

async fn pod(fixture: &Fixture) -> Value {
    json!(fixture.deployment("reg-api").await.spec.unwrap().template)
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().map(|item| item["name"].as_str().unwrap()).collect()
}

async fn create_passwords(fixture: &Fixture) {
    let secret = json!({"metadata": {"name": "postgres"}, "stringData": {"pgpass": "*:*:*:*:x"}});
    fixture.test.create_object(&serde_json::from_value::<Secret>(secret).unwrap()).await;
}

#[tokio::test]
async fn it_becomes_ready_with_its_pod_and_follows_its_spec() {
    let settings = Settings { pull_secrets: vec!["theirs".into()], ..Settings::default() };
    let fixture = Fixture::with(settings).await;
    create_passwords(&fixture).await;
    let spec = json!({
        "configYAML": "a: 1\n",
        "volumes": [{"name": "data", "configMap": {"name": "servers"}}],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "pgpassSecretRef": {"name": "postgres", "key": "pgpass"},
        "imagePullSecrets": [{"name": "mine"}],
    });
    fixture.create(kind(), "reg", spec).await;
    let object = fixture.settle_any(kind(), "reg").await;
    assert_eq!(object.data["status"]["phase"], "Pending");
    let message = "the registry's pod is starting; if it takes long: kubectl describe pod -l app.kubernetes.io/name=reg-api";
    assert_eq!(object.data["status"]["message"], message);
    assert_eq!(object.data["status"]["url"], Value::Null);
    assert_eq!(condition(&object, "Ready")["reason"], "NotReady");
    assert_eq!(object.metadata.finalizers, None);
    let first = pod(&fixture).await;
    assert_eq!(names(&first["spec"]["imagePullSecrets"]), ["mine", "theirs"]);
    assert_eq!(
        names(&first["spec"]["volumes"]),
        ["registry-server-config", "data", "pgpass-secret", "pgpass"]
    );
    assert_eq!(names(&first["spec"]["initContainers"]), ["setup-pgpass"]);
    let server = &first["spec"]["containers"][0];
    assert_eq!(server["env"], json!([{"name": "PGPASSFILE", "value": "/home/appuser/.pgpass"}]));
    let mounts = json!([
        {"name": "registry-server-config", "mountPath": "/config", "readOnly": true},
        {"name": "data", "mountPath": "/data"},
        {"name": "pgpass", "mountPath": "/home/appuser/.pgpass", "subPath": ".pgpass", "readOnly": true},
    ]);
    assert_eq!(server["volumeMounts"], mounts);
    assert_eq!(fixture.test.api::<Role>().get("reg-registry-api").await.unwrap().rules.unwrap().len(), 6);

    fixture.test.kubelet().deployment_ready("reg-api").await;
    fixture.until_any(kind(), "reg", "ready", |object| object["status"]["phase"] == "Ready").await;
    let object = fixture.settle_any(kind(), "reg").await;
    assert_eq!(object.data["status"]["url"], format!("http://reg-api.{}:8080", fixture.test.name()));
    assert_eq!(object.data["status"]["readyReplicas"], 1);
    assert_eq!(fixture.events().await.len(), 1, "it is deprecated, and nothing else");

    let change = json!({"spec": {
        "configYAML": "a: 2\n", "volumes": null, "volumeMounts": null, "pgpassSecretRef": null,
        "imagePullSecrets": null,
    }});
    fixture.patch_any(kind(), "reg", change).await;
    fixture.settle_any(kind(), "reg").await;
    let second = pod(&fixture).await;
    let hash = |pod: &Value| pod["metadata"]["annotations"]["toolhive.stacklok.dev/config-hash"].clone();
    assert_ne!(hash(&second), hash(&first), "another file rolls the pod");
    assert_eq!(names(&second["spec"]["imagePullSecrets"]), ["theirs"]);
    assert_eq!(names(&second["spec"]["volumes"]), ["registry-server-config"]);
    assert_eq!(second["spec"]["initContainers"], Value::Null);
    assert_eq!(second["spec"]["containers"][0]["env"], Value::Null);
    let file = fixture.test.api::<ConfigMap>().get("reg-registry-server-config").await.unwrap();
    assert_eq!(file.data.unwrap()["config.yaml"], "a: 2\n");
    let reported: Vec<_> =
        fixture.events().await.into_iter().filter(|(reason, _)| reason != DEPRECATED).collect();
    let note = "updated the Deployment: the spec has the new generation 2";
    assert_eq!(reported, [("DeploymentUpdated".to_owned(), note.to_owned())]);
    fixture.operator.stop().await;
}

#[tokio::test]
async fn values_of_the_users_pod_replace_the_operators_as_a_whole() {
    let fixture = Fixture::new().await;
    let template = json!({
        "metadata": {"labels": {"team": "sky", "app.kubernetes.io/name": "mine"}, "annotations": {
            "toolhive.stacklok.dev/config-hash": "frozen", "team": "sky",
        }},
        "spec": {
            "serviceAccountName": "mine",
            "nodeSelector": {"disk": "ssd"},
            "containers": [
                {"name": "log", "image": "registry.example/log:1"},
                {
                    "name": "registry-api",
                    "resources": {"limits": {"memory": "1Gi"}},
                    "livenessProbe": {"tcpSocket": {"port": 8080}},
                    "env": [{"name": "LOG", "value": "debug"}],
                    "volumeMounts": [{"name": "extra", "mountPath": "/a"}, {"name": "extra", "mountPath": "/b"}],
                    "ports": [{"name": "metrics", "containerPort": 9090}],
                },
            ],
            "volumes": [{"name": "extra", "emptyDir": {}}],
        },
    });
    fixture.create(kind(), "reg", json!({"configYAML": "a: 1\n", "podTemplateSpec": template})).await;
    let object = fixture.settle_any(kind(), "reg").await;
    assert_eq!(condition(&object, "PodTemplateValid")["reason"], "ValidPodTemplateSpec");
    let pod = pod(&fixture).await;
    let labels = &pod["metadata"]["labels"];
    assert_eq!((&labels["team"], &labels["app.kubernetes.io/name"]), (&json!("sky"), &json!("reg-api")));
    assert_ne!(pod["metadata"]["annotations"]["toolhive.stacklok.dev/config-hash"], "frozen");
    let spec = &pod["spec"];
    assert_eq!((&spec["serviceAccountName"], &spec["nodeSelector"]["disk"]), (&json!("mine"), &json!("ssd")));
    assert_eq!(names(&spec["containers"]), ["log", "registry-api"]);
    assert_eq!(names(&spec["volumes"]), ["extra", "registry-server-config"]);
    let server = &spec["containers"][1];
    assert_eq!(server["resources"], json!({"limits": {"memory": "1Gi"}}), "not a mixture of both");
    assert_eq!(server["livenessProbe"]["httpGet"], Value::Null);
    assert_eq!(server["readinessProbe"]["httpGet"]["path"], "/readiness");
    assert_eq!(server["args"], json!(["serve", "--config=/config/config.yaml"]));
    assert_eq!(names(&server["ports"]), ["metrics", "http"]);
    let paths: Vec<_> =
        server["volumeMounts"].as_array().unwrap().iter().map(|mount| &mount["mountPath"]).collect();
    assert_eq!(paths, ["/a", "/b", "/config"]);

    fixture.patch_any(kind(), "reg", json!({"spec": {"podTemplateSpec": null}})).await;
    let object = fixture.settle_any(kind(), "reg").await;
    assert_eq!(condition(&object, "PodTemplateValid"), Value::Null);
    let deployment = fixture.deployment("reg-api").await;
    let hash = "toolhive.stacklok.io/podtemplatespec-hash";
    assert!(!deployment.metadata.annotations.unwrap_or_default().contains_key(hash));
    let pod = json!(deployment.spec.unwrap().template);
    assert_eq!(names(&pod["spec"]["containers"]), ["registry-api"]);
    assert_eq!(pod["spec"]["serviceAccountName"], "reg-registry-api");
    assert_eq!(
        pod["spec"]["containers"][0]["resources"]["limits"],
        json!({"cpu": "500m", "memory": "512Mi"})
    );
    fixture.operator.stop().await;
}

#[tokio::test]
async fn each_mistake_is_reported_with_its_field_and_existing_pods_keep_running() {
    let fixture = Fixture::new().await;
    create_passwords(&fixture).await;
    fixture.create(kind(), "reg", json!({"configYAML": "a: 1\n"})).await;
    fixture.settle_any(kind(), "reg").await;
    let before = pod(&fixture).await;
    let pgpass = json!({"name": "postgres", "key": "pgpass"});
    let patch = |spec: Value| json!({"spec": spec});
    let mounts =
        |path: &str| json!([{"name": "registry-api", "volumeMounts": [{"name": "x", "mountPath": path}]}]);
    let volume = |name: &str| json!({"name": name, "emptyDir": {}});
    for (change, reason, event, message) in [
        (
            json!({"volumes": [volume("registry-server-config")]}),
            "ValidationFailed",
            "ValidationFailed",
            "volumes: the name registry-server-config is reserved for the operator: use another",
        ),
        (
            json!({"volumes": [volume("pgpass")], "pgpassSecretRef": pgpass}),
            "ValidationFailed",
            "ValidationFailed",
            "volumes: the name pgpass is reserved for the operator: use another",
        ),
        (
            json!({"volumes": [volume("a"), volume("a")]}),
            "ValidationFailed",
            "ValidationFailed",
            "volumes: duplicate volume a: rename one of them",
        ),
        (
            json!({"volumes": ["a"]}),
            "ValidationFailed",
            "ValidationFailed",
            "volumes[0]: invalid type: string \"a\", expected Volume",
        ),
        (
            json!({"volumes": [{"emptyDir": {}}]}),
            "ValidationFailed",
            "ValidationFailed",
            "volumes[0].name: must not be empty",
        ),
        (
            json!({"volumes": [{"name": "a", "configMap": {}}]}),
            "ValidationFailed",
            "ValidationFailed",
            "volumes[0].configMap.name: must name a ConfigMap",
        ),
        (
            json!({"volumes": [{"name": "a", "secret": {}}]}),
            "ValidationFailed",
            "ValidationFailed",
            "volumes[0].secret.secretName: must name a Secret",
        ),
        (
            json!({"volumeMounts": [{"name": "a", "mountPath": "/a"}]}),
            "ValidationFailed",
            "ValidationFailed",
            "volumeMounts[0].name: there is no volume a: add it to volumes",
        ),
        (
            json!({"volumes": [volume("a")], "volumeMounts": [{"name": "a"}]}),
            "ValidationFailed",
            "ValidationFailed",
            "volumeMounts[0].mountPath: must be the path at which to mount a",
        ),
        (
            json!({"podTemplateSpec": patch(json!({"containers": [{"image": "a"}]}))}),
            "ValidationFailed",
            "InvalidPodTemplateSpec",
            "podTemplateSpec.spec.containers[0].name: must not be empty",
        ),
        (
            json!({"volumes": [volume("a")], "volumeMounts": [{"name": "a", "mountPath": "/config"}]}),
            "ValidationFailed",
            "ValidationFailed",
            "volumeMounts: something else is mounted at /config: use another path",
        ),
        (
            json!({"podTemplateSpec": patch(json!({"volumes": [volume("registry-server-config")]}))}),
            "ValidationFailed",
            "ValidationFailed",
            "podTemplateSpec.spec.volumes: the name registry-server-config is reserved for the operator: use another",
        ),
        (
            json!({"podTemplateSpec": patch(json!({"initContainers": [{"name": "setup-pgpass"}]})), "pgpassSecretRef": pgpass}),
            "ValidationFailed",
            "ValidationFailed",
            "podTemplateSpec.spec.initContainers: the name setup-pgpass is reserved for the operator: use another",
        ),
        (
            json!({"podTemplateSpec": patch(json!({"containers": mounts("/home/appuser/.pgpass")})), "pgpassSecretRef": pgpass}),
            "ValidationFailed",
            "ValidationFailed",
            "podTemplateSpec.spec.containers[registry-api].volumeMounts: something else is mounted at \
             /home/appuser/.pgpass: use another path",
        ),
        (
            json!({"podTemplateSpec": patch(json!({"containers": "many"}))}),
            "ValidationFailed",
            "InvalidPodTemplateSpec",
            "podTemplateSpec.spec.containers: invalid type: string \"many\", expected a sequence",
        ),
        (
            json!({"pgpassSecretRef": {"name": "", "key": "a"}}),
            "ValidationFailed",
            "ValidationFailed",
            "pgpassSecretRef.name: must name a Secret",
        ),
        (
            json!({"pgpassSecretRef": {"name": "a", "key": ""}}),
            "ValidationFailed",
            "ValidationFailed",
            "pgpassSecretRef.key: must name a key of Secret a",
        ),
        (
            json!({"pgpassSecretRef": {"name": "postgres", "key": "b"}}),
            "NotReady",
            "NotApplied",
            "pgpassSecretRef: Secret postgres has no key b: add it",
        ),
        (
            json!({"pgpassSecretRef": {"name": "a", "key": "b"}}),
            "NotReady",
            "NotApplied",
            "pgpassSecretRef: Secret a does not exist: create it with the key b",
        ),
    ] {
        let nothing =
            json!({"volumes": null, "volumeMounts": null, "podTemplateSpec": null, "pgpassSecretRef": null});
        fixture.patch_any(kind(), "reg", json!({"spec": nothing})).await;
        fixture.patch_any(kind(), "reg", json!({"spec": change})).await;
        let reported =
            |object: &Value| object["status"]["observedGeneration"] == object["metadata"]["generation"];
        fixture.until_any(kind(), "reg", "reported", reported).await;
        let object = fixture.object(kind(), "reg").await.unwrap();
        assert_eq!(object.data["status"]["message"], message);
        assert_eq!(object.data["status"]["phase"], "Failed", "{message}");
        assert_eq!(condition(&object, "Ready")["reason"], reason, "{message}");
        let events = fixture.events().await;
        // Those of one reason are counted in the first of them.
        assert!(events.iter().any(|(reason, _)| reason == event), "{message}: {events:#?}");
    }
    fixture.settle_any(kind(), "reg").await;
    assert_eq!(pod(&fixture).await["spec"], before["spec"]);

    // One with an invalid spec is deleted as well, even with ToolHive's finalizer.
    let finalizer = json!({"metadata": {"finalizers": ["mcpregistry.toolhive.stacklok.dev/finalizer"]}});
    fixture.patch_any(kind(), "reg", finalizer).await;
    fixture.delete(kind(), "reg").await;
    fixture.until_any(kind(), "reg", "deleted", Value::is_null).await;
    fixture.operator.stop().await;
}

#[tokio::test]
async fn manual_changes_and_deletions_are_reverted_and_replicas_are_left_alone() {
    let fixture = Fixture::new().await;
    fixture.create(kind(), "reg", json!({"configYAML": "a: 1\n"})).await;
    fixture.settle_any(kind(), "reg").await;
    let image = Settings::default().registry_image;
    let other = json!({"spec": {"replicas": 3, "template": {"spec": {"containers": [
        {"name": "registry-api", "image": "registry.example/other:1"},
    ]}}}});
    fixture.patch_any(Deployments::kind(), "reg-api", other).await;
    let back = |object: &Value| object["spec"]["template"]["spec"]["containers"][0]["image"] == image;
    fixture.until_any(Deployments::kind(), "reg-api", "as it was", back).await;
    fixture.settle_any(kind(), "reg").await;
    assert_eq!(fixture.deployment("reg-api").await.spec.unwrap().replicas, Some(3));
    for (kind, name) in [
        (Services::kind(), "reg-api"),
        (ConfigMaps::kind(), "reg-registry-server-config"),
        (Deployments::kind(), "reg-api"),
    ] {
        fixture.delete(kind, name).await;
        fixture.until_any(kind, name, "back", Value::is_object).await;
    }
    fixture.operator.stop().await;
}
