//! A fake of the kubelet and the workload controllers: it writes the statuses that they would report.

use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    core::v1::Pod,
};
use kube::{
    Api, Client, Resource,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

/// Sets the status of pods and workloads in one namespace.
pub struct Kubelet {
    client: Client,
    namespace: String,
}

impl Kubelet {
    pub(crate) fn new(client: Client, namespace: &str) -> Self {
        Self { client, namespace: namespace.into() }
    }

    /// The Deployment has as many pods as it wants, and all are ready.
    pub async fn deployment_ready(&self, name: &str) {
        let api: Api<Deployment> = Api::namespaced(self.client.clone(), &self.namespace);
        let live = api.get(name).await.expect("the Deployment exists");
        let replicas = live.spec.and_then(|spec| spec.replicas).unwrap_or(1);
        let status = all_ready(live.metadata.generation, replicas);
        patch_status(&api, name, &status).await;
    }

    /// The StatefulSet has as many pods as it wants, and all are ready.
    pub async fn stateful_set_ready(&self, name: &str) {
        let api: Api<StatefulSet> = Api::namespaced(self.client.clone(), &self.namespace);
        let live = api.get(name).await.expect("the StatefulSet exists");
        let replicas = live.spec.and_then(|spec| spec.replicas).unwrap_or(1);
        let mut status = all_ready(live.metadata.generation, replicas);
        status["currentReplicas"] = json!(replicas);
        patch_status(&api, name, &status).await;
    }

    /// The StatefulSet has a pod, created from its template, which is not ready. Returns its name.
    pub async fn stateful_set_waiting(&self, name: &str) -> String {
        let api: Api<StatefulSet> = Api::namespaced(self.client.clone(), &self.namespace);
        let live = api.get(name).await.expect("the StatefulSet exists");
        let owner = live.controller_owner_ref(&()).expect("it has a name and a uid");
        let template = live.spec.expect("a spec").template;
        let pod = format!("{name}-0");
        let metadata = ObjectMeta {
            name: Some(pod.clone()),
            owner_references: Some(vec![owner]),
            ..template.metadata.unwrap_or_default()
        };
        let object = Pod { metadata, spec: template.spec, status: None };
        self.pods().create(&PostParams::default(), &object).await.expect("the pod is created");
        let status =
            json!({"observedGeneration": live.metadata.generation, "replicas": 1, "readyReplicas": 0});
        patch_status(&api, name, &status).await;
        pod
    }

    /// The API server rejects the Deployment's pods, for instance because of a quota.
    pub async fn deployment_refused(&self, name: &str, message: &str) {
        let condition = json!({
            "type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message,
        });
        self.deployment_conditions(name, &json!([condition])).await;
    }

    /// The Deployment's pods can be created again.
    pub async fn deployment_let_through(&self, name: &str) {
        self.deployment_conditions(name, &json!([])).await;
    }

    async fn deployment_conditions(&self, name: &str, conditions: &Value) {
        let api: Api<Deployment> = Api::namespaced(self.client.clone(), &self.namespace);
        patch_status(&api, name, &json!({"conditions": conditions})).await;
    }

    /// The Deployment has a pod, created from its template and running.
    pub async fn pod_of(&self, deployment: &str, pod: &str) {
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), &self.namespace);
        let template =
            deployments.get(deployment).await.expect("the Deployment exists").spec.expect("a spec").template;
        let metadata = ObjectMeta { name: Some(pod.into()), ..template.metadata.unwrap_or_default() };
        let object = Pod { metadata, spec: template.spec, status: None };
        self.pods().create(&PostParams::default(), &object).await.expect("the pod is created");
        self.pod_running(pod).await;
    }

    /// The pod runs, and its containers are ready.
    pub async fn pod_running(&self, name: &str) {
        let state = json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}});
        self.pod_status(name, "Running", true, &state).await;
    }

    /// The pod waits for its containers for a reason, such as `CrashLoopBackOff`.
    pub async fn pod_waiting(&self, name: &str, reason: &str) {
        let waiting = json!({"reason": reason, "message": "as the kubelet says"});
        self.pod_status(name, "Pending", false, &json!({"waiting": waiting})).await;
    }

    /// The scheduler has no node for the pod.
    pub async fn pod_unschedulable(&self, name: &str) {
        let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"});
        let status = json!({"phase": "Pending", "containerStatuses": null, "conditions": [condition]});
        patch_status(&self.pods(), name, &status).await;
    }

    async fn pod_status(&self, name: &str, phase: &str, ready: bool, state: &Value) {
        let pod = self.pods().get(name).await.expect("the pod exists");
        let containers: Vec<Value> = pod
            .spec
            .map(|spec| spec.containers)
            .unwrap_or_default()
            .iter()
            .map(|container| {
                let image = container.image.clone().unwrap_or_default();
                let (name, id) = (&container.name, "");
                json!({"name": name, "image": image, "imageID": id, "ready": ready, "restartCount": 0, "state": state})
            })
            .collect();
        let condition = json!({"type": "Ready", "status": if ready { "True" } else { "False" }});
        let status = json!({"phase": phase, "containerStatuses": containers, "conditions": [condition]});
        patch_status(&self.pods(), name, &status).await;
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }
}

/// The status of a workload whose pods are all up to date and ready.
fn all_ready(generation: Option<i64>, replicas: i32) -> Value {
    json!({
        "observedGeneration": generation,
        "replicas": replicas,
        "updatedReplicas": replicas,
        "readyReplicas": replicas,
        "availableReplicas": replicas,
    })
}

async fn patch_status<K>(api: &Api<K>, name: &str, status: &Value)
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let patch = Patch::Merge(json!({"status": status}));
    api.patch_status(name, &PatchParams::default(), &patch).await.expect("the status is written");
}
