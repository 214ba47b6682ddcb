//! VirtualMCPServer: one MCP server for the tools of a whole group.

mod backend_auth;
mod backends;
mod config;
mod container;
mod desired;
mod events;
mod incoming;
mod inputs;
mod spec;
mod startup;
mod status;
mod validate;

use serde_json::Value;
use skep_api::{
    events::EventReason,
    kinds::{VirtualMCPServer, VirtualMCPServerStatus},
};
use skep_config::objects;
use skep_converge::{Error, Kind};
use skep_world::Watched;

use crate::{
    reconcile::{Condition, Controller, Event, Outcome, Validation},
    resources::{ConfigMaps, Deployments, RoleBindings, Roles, Secrets, ServiceAccounts, Services},
};
use inputs::{Inputs, account, service};

/// It has no finalizer: all its children have an owner, and the garbage collector deletes them.
impl Controller for VirtualMCPServer {
    type Inputs = Inputs;

    const HAS_PODS: bool = true;

    fn names(name: &str) -> Vec<(Kind, String)> {
        vec![
            (ServiceAccounts::kind(), account(name)),
            (Roles::kind(), account(name)),
            (RoleBindings::kind(), account(name)),
            (Secrets::kind(), objects::session_secret(name)),
            (ConfigMaps::kind(), objects::vmcp_config(name)),
            (Deployments::kind(), name.into()),
            (Services::kind(), service(name)),
        ]
    }

    fn status(
        inputs: &Inputs,
        _: &Validation,
        outcome: &Outcome,
    ) -> (VirtualMCPServerStatus, Vec<Condition>) {
        status::status(inputs, outcome)
    }

    fn is_rolling(inputs: &Inputs) -> bool {
        inputs.deployment.as_ref().is_some_and(|deployment| deployment.is_rolling)
    }

    fn reported_by_pods() -> Value {
        status::reported_by_pods()
    }

    fn events(inputs: &Inputs, _: &Validation, outcome: &Outcome) -> Vec<Event> {
        events::events(inputs, outcome)
    }

    fn failure(inputs: &Inputs, error: &Error) -> EventReason {
        events::failure(inputs, error)
    }
}
