//! What is cached of built-in objects: the facts that statuses are computed from.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::core::DynamicObject;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use skep_config::{DataChecksum, annotations, labels, paths};
use skep_converge::{Digest, documents_digest};

/// The facts about a ConfigMap with the configuration of pods. Its data is not cached.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigFacts {
    /// Its files, in any layout.
    pub(crate) documents: Digest,
    /// The checksum of its texts.
    pub(crate) checksum: DataChecksum,
}

impl ConfigFacts {
    pub(crate) fn of(object: &DynamicObject) -> Option<Arc<Self>> {
        object.metadata.labels.as_ref()?.get(labels::COMPONENT)?;
        let mut data: BTreeMap<String, String> = BTreeMap::deserialize(object.data.get("data")?).ok()?;
        // A user may have added others.
        data.retain(|name, _| paths::CONFIG_FILES.contains(&name.as_str()));
        Some(Arc::new(Self { documents: documents_digest(&data), checksum: DataChecksum::new(&data) }))
    }
}

/// Whether a workload still has pods of an older template. One without a status is not controlled by anyone.
pub(crate) fn is_rolling(object: &DynamicObject) -> bool {
    let status = &object.data["status"];
    let number = |field: &str| status[field].as_i64();
    let Some(observed) = number("observedGeneration") else { return false };
    Some(observed) < object.metadata.generation || number("updatedReplicas") < number("replicas")
}

/// The facts about a Deployment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeploymentFacts {
    /// The desired number of pods.
    pub desired: i32,
    /// The number of pods.
    pub replicas: i32,
    /// The number of pods that have been ready for long enough.
    pub available: i32,
    /// The generation of the object that its pods are made from.
    pub generation: Option<String>,
    /// The checksum of the configuration that its pods run with.
    pub checksum: Option<String>,
    /// The hash of the volumes that its pods have.
    pub volumes: Option<String>,
    /// Why the API server rejects its pods, if it does.
    pub rejected: Option<String>,
    /// When a restart of the pods was last requested.
    pub restarted_at: Option<String>,
    /// Whether it has pods of an older template, or will have to replace them.
    pub is_rolling: bool,
}

impl DeploymentFacts {
    pub(crate) fn of(object: &DynamicObject) -> Self {
        let pods = &object.data["spec"]["template"]["metadata"]["annotations"];
        let annotation = |key: &str| pods[key].as_str().map(Into::into);
        Self {
            desired: number(&object.data, "/spec/replicas"),
            replicas: number(&object.data, "/status/replicas"),
            available: number(&object.data, "/status/availableReplicas"),
            generation: annotation(annotations::MCPSERVER_GENERATION),
            checksum: annotation(annotations::RUNCONFIG_CHECKSUM),
            volumes: object
                .metadata
                .annotations
                .as_ref()
                .and_then(|all| all.get(annotations::POD_VOLUMES_HASH))
                .cloned(),
            rejected: rejected(&object.data["status"]),
            restarted_at: annotation(annotations::RESTARTED_AT),
            is_rolling: is_rolling(object),
        }
    }
}

/// A quota, a policy or a missing ServiceAccount can prevent the creation of pods. Only the ReplicaSet's events report it,
/// and this condition.
fn rejected(status: &Value) -> Option<String> {
    let conditions = status["conditions"].as_array()?;
    let failure = conditions.iter().find(|condition| condition["type"] == "ReplicaFailure")?;
    (failure["status"] == "True").then(|| failure["message"].as_str().unwrap_or_default().into())
}

/// The facts about a Deployment without a proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManagedDeploymentFacts {
    /// How many pods are ready.
    pub ready: i32,
    /// Why the API server rejects its pods, if it does.
    pub rejected: Option<String>,
}

impl ManagedDeploymentFacts {
    pub(crate) fn of(object: &DynamicObject) -> Self {
        Self {
            ready: number(&object.data, "/status/readyReplicas"),
            rejected: rejected(&object.data["status"]),
        }
    }
}

/// The facts about a StatefulSet that the operator creates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatefulSetFacts {
    /// The number of pods.
    pub replicas: i32,
    /// How many of them are ready.
    pub ready: i32,
    /// The labels that select its pods. They are immutable.
    pub selector: BTreeMap<String, String>,
    /// The claims for its volumes. They are immutable.
    pub claims: Vec<PersistentVolumeClaim>,
}

impl StatefulSetFacts {
    pub(crate) fn of(object: &DynamicObject) -> Self {
        Self {
            replicas: number(&object.data, "/status/replicas"),
            ready: number(&object.data, "/status/readyReplicas"),
            selector: typed(&object.data["spec"]["selector"]["matchLabels"]),
            claims: typed(&object.data["spec"]["volumeClaimTemplates"]),
        }
    }
}

/// The facts about the StatefulSet of a server, which its proxy creates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerSetFacts {
    /// Whether pods are desired and none is ready. For a StatefulSet without a status, this is unknown.
    pub is_unavailable: bool,
}

impl ServerSetFacts {
    pub(crate) fn of(object: &DynamicObject) -> Self {
        let number = |path| number(&object.data, path);
        let has_status = number("/status/observedGeneration") > 0;
        Self {
            is_unavailable: has_status
                && number("/spec/replicas") > 0
                && number("/status/readyReplicas") == 0,
        }
    }
}

/// The state of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodState {
    /// Its containers are ready.
    Running,
    /// It is starting.
    Pending,
    /// It waits for this, which may need a user's help.
    Blocked(String),
    /// It cannot run, for this reason.
    Failed(String),
    /// It is being deleted.
    Terminating,
}

/// The facts about a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodFacts {
    /// Its workload: see [`PodFacts::proxy`] and [`PodFacts::server`].
    pub workload: String,
    /// Its state.
    pub state: PodState,
}

/// Reasons why a container will not start, however long one waits.
const FATAL: [&str; 3] = ["CrashLoopBackOff", "CreateContainerError", "InvalidImageName"];
/// The kubelet alternates between these, which is not a change.
const NO_IMAGE: [&str; 2] = ["ErrImagePull", "ImagePullBackOff"];

impl PodFacts {
    /// The key of the pods of a proxy.
    pub fn proxy(app: &str, name: &str) -> String {
        format!("{app}/{name}")
    }

    /// The key of the pods of a server, which a StatefulSet of that name creates.
    pub fn server(name: &str) -> String {
        format!("StatefulSet {name}")
    }

    pub(crate) fn of(object: &DynamicObject) -> Self {
        let label = |key: &str| object.metadata.labels.as_ref().and_then(|labels| labels.get(key));
        let text = |key| label(key).map(String::as_str).unwrap_or_default();
        let owners = object.metadata.owner_references.iter().flatten();
        let mut sets = owners.filter(|owner| owner.kind == "StatefulSet");
        let workload = match sets.next() {
            Some(set) => Self::server(&set.name),
            None => Self::proxy(text("app"), text("toolhive-name")),
        };
        let state = if object.metadata.deletion_timestamp.is_some() {
            PodState::Terminating
        } else {
            state(&object.data["status"])
        };
        Self { workload, state }
    }
}

fn state(status: &Value) -> PodState {
    let containers = status["containerStatuses"].as_array().map(Vec::as_slice).unwrap_or_default();
    for container in containers {
        let waits_for = container["state"]["waiting"]["reason"].as_str().unwrap_or_default();
        if FATAL.contains(&waits_for) {
            return PodState::Failed(match last_words(&container["lastState"]["terminated"]) {
                Some(words) => format!("{waits_for}, {words}"),
                None => waits_for.into(),
            });
        }
        if let Some(why) = blocked_by(container, waits_for) {
            return PodState::Blocked(why);
        }
        if container["state"]["terminated"]["exitCode"].as_i64().is_some_and(|code| code != 0) {
            let words = last_words(&container["state"]["terminated"]);
            return PodState::Failed(words.unwrap_or_else(|| "ContainerTerminated".into()));
        }
    }
    match status["phase"].as_str().unwrap_or_default() {
        "Running"
            if !containers.is_empty() && containers.iter().all(|container| container["ready"] == true) =>
        {
            PodState::Running
        }
        "Succeeded" => PodState::Running,
        "Failed" => PodState::Failed("PodFailed".into()),
        _ if is_unschedulable(status) => PodState::Blocked("no node can run it".into()),
        _ => PodState::Pending,
    }
}

/// How much of a container's last message is shown.
const LAST_WORDS: usize = 200;

/// How a container ended, with the last line of the message that it left for this purpose (`/dev/termination-log`).
fn last_words(terminated: &Value) -> Option<String> {
    let code = terminated["exitCode"].as_i64()?;
    let reason = terminated["reason"].as_str().filter(|reason| !["Error", ""].contains(reason));
    let how = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    let message = terminated["message"].as_str().unwrap_or_default();
    let last = message.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let last = &last[..last.floor_char_boundary(LAST_WORDS)];
    let words = if last.is_empty() { String::new() } else { format!(": {last}") };
    Some(format!("a container ended with exit code {code}{how}{words}"))
}

fn blocked_by(container: &Value, waits_for: &str) -> Option<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match waits_for {
        _ if NO_IMAGE.contains(&waits_for) => {
            Some(format!("its image {} cannot be pulled", text(&container["image"])))
        }
        // A Secret, a ConfigMap or a key of it does not exist. The kubelet names it.
        "CreateContainerConfigError" => Some(text(&container["state"]["waiting"]["message"])),
        _ => None,
    }
}

fn is_unschedulable(status: &Value) -> bool {
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == "PodScheduled" && condition["reason"] == "Unschedulable")
}

/// A number in an object, or zero.
fn number(value: &Value, path: &str) -> i32 {
    value.pointer(path).and_then(Value::as_i64).and_then(|number| number.try_into().ok()).unwrap_or_default()
}

/// A value as its type, or an empty one.
fn typed<T: DeserializeOwned + Default>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap_or_default()
}
