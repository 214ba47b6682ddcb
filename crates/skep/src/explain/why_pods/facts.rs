//! What the cluster knows of a server and its pods.

use k8s_openapi::api::{
    apps::v1::{ControllerRevision, Deployment, ReplicaSet, StatefulSet},
    core::v1::{Event, Pod},
};
use kube::{
    Api, Resource, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use skep_api::{GROUP, for_each_kind, kinds, refs::REFERENCES};

use crate::cluster::{Cluster, kind_of};

/// All of it, as JSON.
pub(super) struct Facts {
    pub(super) kind: String,
    pub(super) object: Value,
    /// The configurations that its spec refers to.
    pub(super) references: Vec<Value>,
    pub(super) workloads: Vec<WorkloadFacts>,
    pub(super) pods: Vec<Value>,
    /// Newest first.
    pub(super) events: Vec<Value>,
}

/// A Deployment or StatefulSet, with the templates that it had.
pub(super) struct WorkloadFacts {
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) object: Value,
    /// Oldest first.
    pub(super) templates: Vec<Template>,
}

/// The template of a revision.
pub(super) struct Template {
    pub(super) revision: i64,
    /// When it came first.
    pub(super) created: String,
    pub(super) template: Value,
    /// Whether pods have it now.
    pub(super) is_current: bool,
}

impl Facts {
    pub(super) async fn read(cluster: &Cluster, name: &str) -> anyhow::Result<Self> {
        let server = cluster.server(name).await?;
        let (kind, name) = (kind_of(&server).to_owned(), server.name_any());
        let object = serde_json::to_value(&server)?;
        let sets = list::<ReplicaSet>(cluster).await?;
        let mut workloads = Vec::new();
        if let Some(deployment) = api::<Deployment>(cluster).get_opt(&name).await? {
            workloads.push(of_deployment(&serde_json::to_value(&deployment)?, &sets));
        }
        if kind == "MCPServer"
            && let Some(set) = api::<StatefulSet>(cluster).get_opt(&name).await?
        {
            let revisions = list::<ControllerRevision>(cluster).await?;
            workloads.push(of_stateful_set(&serde_json::to_value(&set)?, &revisions));
        }
        let owners: Vec<&str> = workloads.iter().filter_map(|workload| uid(&workload.object)).collect();
        let sets: Vec<&str> = sets.iter().filter(|set| is_owned(set, &owners)).filter_map(uid).collect();
        let pods = list::<Pod>(cluster).await?;
        let pods: Vec<Value> =
            pods.into_iter().filter(|pod| is_owned(pod, &owners) || is_owned(pod, &sets)).collect();
        let mut events = list::<Event>(cluster).await?;
        let of_pods: Vec<&str> = pods.iter().filter_map(uid).collect();
        let known: Vec<&str> =
            [uid(&object)].into_iter().flatten().chain(owners).chain(sets).chain(of_pods).collect();
        events
            .retain(|event| event["involvedObject"]["uid"].as_str().is_some_and(|uid| known.contains(&uid)));
        events.sort_by(|a, b| event_time(b).as_str().cmp(&event_time(a).as_str()));
        let references = references(cluster, &object["spec"]).await?;
        Ok(Self { kind, object, references, workloads, pods, events })
    }

    /// The kind, namespace and name of the server.
    pub(super) fn title(&self) -> String {
        let text = |name: &str| self.object["metadata"][name].as_str().unwrap_or_default();
        format!("{} {}/{}", self.kind, text("namespace"), text("name"))
    }
}

/// When an event was last seen.
pub(super) fn event_time(event: &Value) -> &Value {
    let times = [&event["lastTimestamp"], &event["series"]["lastObservedTime"], &event["eventTime"]];
    times.into_iter().find(|time| time.is_string()).unwrap_or(&event["metadata"]["creationTimestamp"])
}

fn of_deployment(deployment: &Value, sets: &[Value]) -> WorkloadFacts {
    let own = uid(deployment).into_iter().collect::<Vec<_>>();
    let number = |object: &Value| {
        object["metadata"]["annotations"]["deployment.kubernetes.io/revision"].as_str()?.parse().ok()
    };
    let newest: Option<i64> = sets.iter().filter(|set| is_owned(set, &own)).filter_map(number).max();
    let templates = sets.iter().filter(|set| is_owned(set, &own)).filter_map(|set| {
        let revision = number(set)?;
        Some(Template {
            revision,
            created: text(&set["metadata"]["creationTimestamp"]),
            template: set["spec"]["template"].clone(),
            is_current: Some(revision) == newest,
        })
    });
    workload("Deployment", deployment, templates.collect())
}

fn of_stateful_set(set: &Value, revisions: &[Value]) -> WorkloadFacts {
    let own = uid(set).into_iter().collect::<Vec<_>>();
    let current = set["status"]["updateRevision"].as_str();
    let templates = revisions.iter().filter(|revision| is_owned(revision, &own)).map(|revision| Template {
        revision: revision["revision"].as_i64().unwrap_or_default(),
        created: text(&revision["metadata"]["creationTimestamp"]),
        template: revision["data"]["spec"]["template"].clone(),
        is_current: revision["metadata"]["name"].as_str() == current,
    });
    workload("StatefulSet", set, templates.collect())
}

fn workload(kind: &'static str, object: &Value, mut templates: Vec<Template>) -> WorkloadFacts {
    templates.sort_by_key(|template| template.revision);
    WorkloadFacts { kind, name: text(&object["metadata"]["name"]), object: object.clone(), templates }
}

/// The configurations that a spec refers to, as far as the user may read them.
async fn references(cluster: &Cluster, spec: &Value) -> anyhow::Result<Vec<Value>> {
    let mut found = Vec::new();
    let mut named = Vec::new();
    add_named(spec, &mut named);
    for (kind, name) in named {
        let Some(resource) = resources().into_iter().find(|resource| resource.kind == kind) else { continue };
        let api: Api<DynamicObject> =
            Api::namespaced_with(cluster.client.clone(), &cluster.namespace, &resource);
        if let Ok(Some(mut object)) = api.get_opt(&name).await {
            object.types.get_or_insert_default().kind = kind.to_owned();
            found.push(serde_json::to_value(&object)?);
        }
    }
    Ok(found)
}

fn add_named(value: &Value, named: &mut Vec<(&'static str, String)>) {
    match value {
        Value::Object(members) => {
            for (field, inner) in members {
                match REFERENCES.iter().find(|(known, _)| known == field) {
                    Some((_, kind)) => {
                        let one_or_more = inner.as_array().map_or(std::slice::from_ref(inner), Vec::as_slice);
                        let names = one_or_more.iter().filter_map(|one| one["name"].as_str());
                        named.extend(names.map(|name| (*kind, name.to_owned())));
                    }
                    None => add_named(inner, named),
                }
            }
        }
        Value::Array(elements) => elements.iter().for_each(|inner| add_named(inner, named)),
        _ => {}
    }
}

fn resources() -> Vec<ApiResource> {
    macro_rules! resources {
        ($($kind:ident),+) => { vec![$(ApiResource::erase::<kinds::$kind>(&())),+] };
    }
    let all: Vec<ApiResource> = for_each_kind!(resources);
    all.into_iter().filter(|resource| resource.group == GROUP).collect()
}

fn api<K: Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>>(
    cluster: &Cluster,
) -> Api<K> {
    Api::namespaced(cluster.client.clone(), &cluster.namespace)
}

async fn list<K>(cluster: &Cluster) -> anyhow::Result<Vec<Value>>
where
    K: Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>
        + Clone
        + DeserializeOwned
        + Serialize
        + std::fmt::Debug,
{
    let objects = api::<K>(cluster).list(&ListParams::default()).await?;
    objects.items.iter().map(|object| Ok(serde_json::to_value(object)?)).collect()
}

fn uid(object: &Value) -> Option<&str> {
    object["metadata"]["uid"].as_str()
}

fn is_owned(object: &Value, owners: &[&str]) -> bool {
    let references = object["metadata"]["ownerReferences"].as_array().map(Vec::as_slice).unwrap_or_default();
    references.iter().any(|owner| owner["uid"].as_str().is_some_and(|uid| owners.contains(&uid)))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
