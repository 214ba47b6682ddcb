//! Every file under examples/ works: it is accepted, runs, and causes no further writes.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    autoscaling::v2::HorizontalPodAutoscaler,
    core::v1::{ConfigMap, Secret, Service},
    networking::v1::NetworkPolicy,
};
use kube::api::ListParams;
use serde_json::{Value, json};
use skep_api::GROUP;
use skep_converge::Kind;
use skep_operator::{permissions, settings::Settings};
use skep_testkit::{Namespace, repository};
use tokio::time::timeout;

use crate::{fixture::Operator, kinds::all_kinds};

/// The timeout for everything.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long no write may follow.
const QUIET: Duration = Duration::from_secs(5);

/// Conditions that report a problem: False is good.
const WARNINGS: [&str; 4] =
    ["IdentitySynthesized", "PolicyWarning", "SessionStorageWarning", "StdioReplicaCapped"];

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<_> = entries
        .flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    all.sort();
    all
}

/// A file in its own namespace.
struct Example {
    file: PathBuf,
    namespace: Namespace,
    objects: Vec<Value>,
}

impl Example {
    /// Applies the file as `kubectl apply` does: an unknown field is an error.
    async fn apply(file: PathBuf) -> Self {
        let objects: Vec<Value> = serde_saphyr::from_multiple(&fs::read_to_string(&file).unwrap()).unwrap();
        let namespace = skep_testkit::namespace().await;
        for object in &objects {
            let path = format!("{}?fieldValidation=Strict", path(object, &namespace));
            let request = http::Request::post(path).body(object.to_string().into_bytes()).unwrap();
            let response = namespace.client().request::<Value>(request).await;
            response.unwrap_or_else(|error| panic!("{}: {object}: {error}", file.display()));
        }
        Self { file, namespace, objects }
    }

    /// The custom resources, as they are now.
    async fn custom(&self) -> Vec<Value> {
        let mut all = Vec::new();
        for object in self.objects.iter().filter(|object| is_custom(object)) {
            let name = object["metadata"]["name"].as_str().unwrap();
            let request = http::Request::get(format!("{}/{name}", path(object, &self.namespace)));
            all.push(self.namespace.client().request(request.body(Vec::new()).unwrap()).await.unwrap());
        }
        all
    }

    fn names(&self, kind: &str) -> impl Iterator<Item = &str> {
        let of_kind = self.objects.iter().filter(move |object| object["kind"] == kind);
        of_kind.map(|object| object["metadata"]["name"].as_str().unwrap())
    }

    /// What a kubelet and the proxies do: the proxies create StatefulSets, and pods run.
    async fn run_pods(&self) {
        let kubelet = self.namespace.kubelet();
        for server in self.names("EmbeddingServer") {
            kubelet.stateful_set_ready(server).await;
        }
        for server in self.names("MCPServer") {
            let labels = json!({"app": server});
            let stateful_set: StatefulSet = serde_json::from_value(json!({
                "metadata": {"name": server, "labels": {"app": server, "toolhive": "true"}},
                "spec": {
                    "selector": {"matchLabels": labels}, "serviceName": server,
                    "template": {
                        "metadata": {"labels": labels}, "spec": {"containers": [{"name": "mcp", "image": "i"}]},
                    },
                },
            }))
            .unwrap();
            self.namespace.create_object(&stateful_set).await;
        }
    }

    /// Pods of the Deployments that the operator has created, which have none yet.
    async fn run_proxies(&self, done: &mut Vec<String>) {
        let kubelet = self.namespace.kubelet();
        let deployments = self.namespace.api::<Deployment>().list(&ListParams::default()).await.unwrap();
        for deployment in deployments {
            let name = deployment.metadata.name.unwrap();
            let place = format!("{}/{name}", self.namespace.name());
            if deployment.metadata.owner_references.is_some() && !done.contains(&place) {
                kubelet.deployment_ready(&name).await;
                kubelet.pod_of(&name, &format!("{name}-0")).await;
                done.push(place);
            }
        }
    }
}

fn is_custom(object: &Value) -> bool {
    object["apiVersion"].as_str().unwrap().starts_with(GROUP)
}

fn path(object: &Value, namespace: &Namespace) -> String {
    let (api_version, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
    if is_custom(object) {
        let plural = all_kinds().into_iter().find(|known| known.kind == kind).unwrap().plural;
        return format!("/apis/{api_version}/namespaces/{}/{plural}", namespace.name());
    }
    let known = [
        Kind::of::<ConfigMap>(),
        Kind::of::<Deployment>(),
        Kind::of::<HorizontalPodAutoscaler>(),
        Kind::of::<NetworkPolicy>(),
        Kind::of::<Secret>(),
        Kind::of::<Service>(),
    ];
    let known = known.iter().find(|known| known.kind == kind && known.api_version() == api_version);
    known.unwrap_or_else(|| panic!("{api_version} {kind}")).path(Some(namespace.name()))
}

/// Waits until every status is about its spec, and nothing is left to be reconciled.
async fn settle(examples: &[Example], operator: &Operator) {
    let settled = async {
        while !operator.is_idle().await || !all_are_reported(examples).await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, settled).await.expect("the examples settle");
}

async fn all_are_reported(examples: &[Example]) -> bool {
    for example in examples {
        let mut objects = example.custom().await.into_iter();
        if objects.any(|object| object["status"]["observedGeneration"] != object["metadata"]["generation"]) {
            return false;
        }
    }
    true
}

#[tokio::test]
async fn every_example_is_accepted_runs_and_causes_no_further_writes() {
    let folder = repository("examples");
    let mut examples = Vec::new();
    for file in files(&folder) {
        examples.push(Example::apply(file).await);
    }
    let user = examples[0].namespace.user("operator");
    for example in &examples {
        example.namespace.grant(&user, permissions::rules()).await;
    }
    let namespaces: Vec<_> = examples.iter().map(|example| &example.namespace).collect();
    let operator = Operator::start(&namespaces, user.config(), Settings::default());

    settle(&examples, &operator).await;
    let mut running = Vec::new();
    for example in &examples {
        example.run_pods().await;
        example.run_proxies(&mut running).await;
    }
    settle(&examples, &operator).await;
    // Objects that waited for others have their Deployments by now.
    for example in &examples {
        example.run_proxies(&mut running).await;
    }
    settle(&examples, &operator).await;

    for example in &examples {
        for object in example.custom().await {
            check(&example.file, &object);
        }
    }
    let recording = user.record();
    tokio::time::sleep(QUIET).await;
    assert_eq!(recording.writes().await, [] as [&str; 0]);
    operator.stop().await;
}

/// Every condition of the object is as it should be.
fn check(file: &Path, object: &Value) {
    let what = format!("{} {} of {}", object["kind"], object["metadata"]["name"], file.display());
    let status = &object["status"];
    assert!(
        ["Ready", "Valid"].map(Value::from).contains(&status["phase"]) || status["phase"].is_null(),
        "{what}: {status:#}"
    );
    let conditions = status["conditions"].as_array().unwrap_or_else(|| panic!("{what}: {status:#}"));
    for condition in conditions {
        let text = |key: &str| condition[key].as_str().unwrap().to_owned();
        let expected = if WARNINGS.contains(&&*text("type")) { "False" } else { "True" };
        assert_eq!(text("status"), expected, "{what}: {condition}");
    }
}

#[test]
fn there_is_an_example_of_every_kind() {
    let folder = repository("examples");
    let texts: Vec<String> = files(&folder).iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    for Kind { kind, .. } in all_kinds() {
        let line = format!("\nkind: {kind}\n");
        assert!(texts.iter().any(|text| text.contains(&line)), "there is none of {kind}");
    }
}
