//! MCPGroup: a named group of servers.

use std::sync::Arc;

use skep_api::{
    conditions::MCPServersChecked,
    kinds::{MCPGroup, MCPGroupPhase, MCPGroupStatus, MCPRemoteProxy, MCPServer, MCPServerEntry},
};
use skep_config::annotations::GROUP_FINALIZER;
use skep_converge::Finalizer;
use skep_world::{ReadError, Reader};

use crate::{
    reconcile::{Condition, Controller, Outcome, Resolve, Validate, Validated, Validation},
    resources::{Custom, listed, reference_key},
    settings::Settings,
};

/// A group with its members, each list sorted.
pub struct Inputs {
    servers: Vec<String>,
    remote_proxies: Vec<String>,
    entries: Vec<String>,
}

impl Resolve<MCPGroup> for Inputs {
    async fn resolve(_: Arc<MCPGroup>, _: &Arc<Settings>, reader: &mut Reader) -> Result<Self, ReadError> {
        let key = reference_key::<MCPGroup>(&reader.target().name);
        Ok(Self {
            servers: reader.members::<Custom<MCPServer>>(&key),
            remote_proxies: reader.members::<Custom<MCPRemoteProxy>>(&key),
            entries: reader.members::<Custom<MCPServerEntry>>(&key),
        })
    }
}

impl Validate for Inputs {
    type Valid<'a> = ();

    fn validate(&self) -> Validated<()> {
        let message = "the members are the objects that refer to this group";
        let mut validation = Validation::default();
        validation.add(Condition::new(MCPServersChecked::ListMCPServersCheckSucceeded, message));
        validation.finish(|| Ok(()))
    }
}

impl Controller for MCPGroup {
    type Inputs = Inputs;

    /// Members are notified of the deletion of their group, so it need not wait for them.
    const FINALIZER: Option<Finalizer> = Some(Finalizer(GROUP_FINALIZER));
    const ADDS_FINALIZER: bool = false;

    fn status(inputs: &Inputs, _: &Validation, _: &Outcome) -> (MCPGroupStatus, Vec<Condition>) {
        let count = |names: &[String]| i32::try_from(names.len()).ok().filter(|count| *count > 0);
        let status = MCPGroupStatus {
            // The state of its members is in their own status.
            phase: Some(MCPGroupPhase::Ready),
            servers: listed(&inputs.servers),
            server_count: count(&inputs.servers),
            remote_proxies: listed(&inputs.remote_proxies),
            remote_proxy_count: count(&inputs.remote_proxies),
            entries: listed(&inputs.entries),
            entry_count: count(&inputs.entries),
            ..MCPGroupStatus::default()
        };
        (status, Vec::new())
    }
}
