//! The backends of a virtual server, and what they are known to offer.

use std::collections::{BTreeMap, BTreeSet};

use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use skep_api::{
    kinds::{MCPExternalAuthConfig, MCPRemoteProxy, MCPServer, MCPServerEntry},
    strategy::strategy,
    vmcp::{BackendAuthStrategy, Config},
};
use skep_vmcp::{Offer, Settings};

use crate::cluster::{Cluster, kind_of};

/// The kinds that can be members of a group.
const MEMBERS: [&str; 3] = ["MCPServer", "MCPRemoteProxy", "MCPServerEntry"];

/// Tools that a test names.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Tools {
    /// Those of a server.
    All(Vec<String>),
    /// Those of each backend of a virtual server.
    OfBackends(BTreeMap<String, Vec<String>>),
}

/// The backends of a configuration: those in it, and the members of its group among these objects, with the tools in
/// their statuses.
pub(super) fn of<'a>(
    settings: &Settings,
    objects: impl IntoIterator<Item = &'a DynamicObject>,
) -> Vec<Offer> {
    let config: &Config = settings.config();
    let group = config.group_ref.as_deref().unwrap_or_default();
    let objects: Vec<&DynamicObject> = objects.into_iter().collect();
    let is_member = |object: &&&DynamicObject| {
        MEMBERS.contains(&kind_of(object)) && object.data["spec"]["groupRef"]["name"] == group
    };
    let members: Vec<&DynamicObject> =
        objects.iter().filter(|_| !group.is_empty()).filter(is_member).copied().collect();
    let names: BTreeSet<String> = config
        .backends
        .iter()
        .map(|backend| backend.name.clone())
        .chain(members.iter().map(|member| member.name_any()))
        .collect();
    let offer = |backend: String| {
        let member = members.iter().find(|member| member.name_any() == backend);
        let report = member.map(|member| &member.data["status"]["server"]).unwrap_or(&Value::Null);
        let tools: Vec<Value> = report["tools"].as_array().into_iter().flatten().map(definition).collect();
        let count = report["toolCount"].as_u64();
        let has_others = count.is_none_or(|count| count > tools.len() as u64);
        // Otherwise the configuration has it.
        let strategy =
            member.filter(|_| settings.is_discovered()).and_then(|member| described(member, &objects));
        Offer { backend, tools, has_others, strategy }
    };
    names.into_iter().map(offer).collect()
}

/// The backends with these tools, and no others.
pub(super) fn given(tools: &BTreeMap<String, Vec<String>>) -> Vec<Offer> {
    let offer = |(backend, tools): (&String, &Vec<String>)| Offer {
        backend: backend.clone(),
        tools: tools.iter().map(|name| json!({"name": name})).collect(),
        ..Offer::default()
    };
    tools.iter().map(offer).collect()
}

/// How a member has a virtual server authenticate, by the MCPExternalAuthConfig that it refers to.
fn described(member: &DynamicObject, objects: &[&DynamicObject]) -> Option<BackendAuthStrategy> {
    let name = member.data["spec"]["externalAuthConfigRef"]["name"].as_str()?;
    let is_it =
        |object: &&&DynamicObject| kind_of(object) == "MCPExternalAuthConfig" && object.name_any() == name;
    let config = DynamicObject::clone(objects.iter().find(is_it)?);
    let config: MCPExternalAuthConfig = config.try_parse().ok()?;
    strategy(name, &config.spec, None).ok()
}

/// A tool as its server lists it, as far as a status has it.
fn definition(tool: &Value) -> Value {
    let hints = tool["hints"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let annotations: Map<String, Value> =
        hints.map(|hint| (format!("{hint}Hint"), Value::Bool(true))).collect();
    json!({"name": tool["name"], "annotations": annotations})
}

/// The objects of a cluster that may be members of a group, and how these have a virtual server authenticate.
pub(super) async fn live(cluster: &Cluster) -> kube::Result<Vec<DynamicObject>> {
    let kinds = [
        ApiResource::erase::<MCPServer>(&()),
        ApiResource::erase::<MCPRemoteProxy>(&()),
        ApiResource::erase::<MCPServerEntry>(&()),
        ApiResource::erase::<MCPExternalAuthConfig>(&()),
    ];
    let mut objects = Vec::new();
    for kind in kinds {
        let api: Api<DynamicObject> = Api::namespaced_with(cluster.client.clone(), &cluster.namespace, &kind);
        let listed = api.list(&ListParams::default()).await?;
        objects.extend(listed.into_iter().map(|mut object| {
            // A list leaves it out.
            object.types.get_or_insert_with(Default::default).kind = kind.kind.clone();
            object
        }));
    }
    Ok(objects)
}
