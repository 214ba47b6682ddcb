//! MCPServer: a server in the cluster, with a proxy in front of it.

pub(super) mod address;
mod container;
mod desired;
mod inputs;
mod restart;
mod run_config;
mod status;
mod validate;

use serde_json::Value;
use skep_api::kinds::{MCPServer, MCPServerStatus};
use skep_config::{annotations::MCPSERVER_FINALIZER, objects};
use skep_converge::{Finalizer, Kind};
use skep_world::Watched;

use crate::{
    config_refs::authz::inline_config_map,
    proxy_workload::{reported_by_proxy, rollout},
    reconcile::{Actions, Condition, Controller, Event, Outcome, Validation},
    resources::{ConfigMaps, Deployments, RoleBindings, Roles, ServiceAccounts, Services, StatefulSets},
};
use inputs::{Inputs, backend_account, runner};

impl Controller for MCPServer {
    type Inputs = Inputs;

    const FINALIZER: Option<Finalizer> = Some(Finalizer(MCPSERVER_FINALIZER));
    const HAS_PODS: bool = true;

    fn status(inputs: &Inputs, _: &Validation, outcome: &Outcome) -> (MCPServerStatus, Vec<Condition>) {
        status::status(inputs, outcome)
    }

    fn is_rolling(inputs: &Inputs) -> bool {
        inputs.proxy.is_rolling()
    }

    fn reported_by_pods() -> Value {
        reported_by_proxy()
    }

    fn events(inputs: &Inputs, _: &Validation, outcome: &Outcome) -> Vec<Event> {
        rollout(&inputs.proxy, outcome).into_iter().collect()
    }

    fn actions(inputs: &Inputs) -> Actions {
        restart::actions(inputs)
    }

    fn names(name: &str) -> Vec<(Kind, String)> {
        vec![
            (ServiceAccounts::kind(), runner(name)),
            (Roles::kind(), runner(name)),
            (RoleBindings::kind(), runner(name)),
            (ServiceAccounts::kind(), backend_account(name)),
            (ConfigMaps::kind(), inline_config_map(name)),
            (ConfigMaps::kind(), objects::run_config(name)),
            (Deployments::kind(), name.into()),
            (Services::kind(), address::service(name)),
            (StatefulSets::kind(), name.into()),
        ]
    }

    /// Objects that the proxy created have no owner reference for the garbage collector. The RoleBinding is deleted
    /// first: a proxy that is just starting would otherwise create it again.
    fn unowned(name: &str) -> Vec<(Kind, String)> {
        vec![
            (RoleBindings::kind(), runner(name)),
            (Deployments::kind(), name.into()),
            (StatefulSets::kind(), name.into()),
            (Services::kind(), objects::headless_service(name)),
            (Services::kind(), objects::backend_service(name)),
            (ConfigMaps::kind(), objects::run_config(name)),
        ]
    }
}
