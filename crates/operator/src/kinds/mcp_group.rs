//! MCPGroup: servers that belong together.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;
use skep_api::kinds::{MCPGroup, MCPGroupPhase, MCPGroupStatus};
use skep_config::annotations::GROUP_FINALIZER;
use skep_converge::{Child, Finalizer};
use skep_world::{ReadError, Reader, Watched};

use crate::{
    conditions::{Finding, conditions},
    driver::{Blocked, Controller, Outcome},
    refers::reference_key,
    watched::{Entries, Groups, RemoteProxies, Servers},
};

/// The controller of MCPGroups.
pub(super) struct McpGroups;

/// A group with its members, each list sorted.
pub(crate) struct Inputs {
    object: Arc<MCPGroup>,
    servers: Vec<String>,
    remote_proxies: Vec<String>,
    entries: Vec<String>,
}

impl Controller for McpGroups {
    type Resource = Groups;
    type Inputs = Inputs;

    const MANAGER: &'static str = "skep-mcpgroup";
    /// Members see for themselves that their group is gone.
    const FINALIZER: Option<Finalizer> = Some(Finalizer(GROUP_FINALIZER));
    const ADDS_FINALIZER: bool = false;

    async fn resolve(&self, object: Arc<MCPGroup>, reader: &mut Reader) -> Result<Inputs, ReadError> {
        let key = reference_key(Groups::KIND, &reader.target().name);
        Ok(Inputs {
            servers: reader.members::<Servers>(&key),
            remote_proxies: reader.members::<RemoteProxies>(&key),
            entries: reader.members::<Entries>(&key),
            object,
        })
    }

    fn desired(&self, _: &Inputs) -> Result<Vec<Child>, Blocked> {
        Ok(Vec::new())
    }

    fn status(&self, inputs: &Inputs, _: &Outcome, now: &Time) -> Child {
        let metadata = &inputs.object.metadata;
        let generation = metadata.generation.unwrap_or_default();
        let before = inputs.object.status.clone().unwrap_or_default();
        let count = |names: &[String]| i32::try_from(names.len()).ok().filter(|count| *count > 0);
        let listed = Finding::yes(
            "MCPServersChecked",
            "ListMCPServersCheckSucceeded",
            "the members are those that name this group",
        );
        let status = MCPGroupStatus {
            observed_generation: Some(generation),
            // How its members are doing is for each of them to say.
            phase: Some(MCPGroupPhase::Ready),
            servers: inputs.servers.clone(),
            server_count: count(&inputs.servers),
            remote_proxies: inputs.remote_proxies.clone(),
            remote_proxy_count: count(&inputs.remote_proxies),
            entries: inputs.entries.clone(),
            entry_count: count(&inputs.entries),
            conditions: conditions(vec![listed], &before.conditions, generation, now),
        };
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Child::status(Groups::KIND, text(&metadata.namespace), text(&metadata.name), json!(status))
    }
}
