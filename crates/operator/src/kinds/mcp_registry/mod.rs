//! MCPRegistry: a server that publishes a catalogue of MCP servers.

mod desired;
mod events;
mod hash;
mod inputs;
mod pgpass;
mod pod;
mod status;
mod template;
mod validate;

use skep_api::kinds::{MCPRegistry, MCPRegistryStatus};
use skep_config::annotations::REGISTRY_FINALIZER;
use skep_converge::{Finalizer, Kind};
use skep_world::Watched;

use crate::{
    reconcile::{Condition, Controller, Event, Outcome, Validation},
    resources::{ConfigMaps, ManagedDeployments, RoleBindings, Roles, ServiceAccounts, Services},
};
use inputs::{Inputs, account, config_map, server};

impl Controller for MCPRegistry {
    type Inputs = Inputs;

    /// The garbage collector deletes all that belongs to it.
    const FINALIZER: Option<Finalizer> = Some(Finalizer(REGISTRY_FINALIZER));
    const ADDS_FINALIZER: bool = false;
    const HAS_PODS: bool = true;

    fn names(name: &str) -> Vec<(Kind, String)> {
        vec![
            (ConfigMaps::kind(), config_map(name)),
            (ServiceAccounts::kind(), account(name)),
            (Roles::kind(), account(name)),
            (RoleBindings::kind(), account(name)),
            (ManagedDeployments::kind(), server(name)),
            (Services::kind(), server(name)),
        ]
    }

    fn status(inputs: &Inputs, _: &Validation, outcome: &Outcome) -> (MCPRegistryStatus, Vec<Condition>) {
        status::status(inputs, outcome)
    }

    fn events(inputs: &Inputs, _: &Validation, outcome: &Outcome) -> Vec<Event> {
        events::events(inputs, outcome)
    }
}
