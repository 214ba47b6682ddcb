//! MCPRemoteProxy: a proxy in front of a server that runs elsewhere.

pub(super) mod address;
mod desired;
mod inputs;
mod run_config;
mod status;
mod validate;

use serde_json::Value;
use skep_api::kinds::{MCPRemoteProxy, MCPRemoteProxyStatus};
use skep_config::objects;
use skep_converge::Kind;
use skep_world::Watched;

use crate::{
    config_refs::authz::inline_config_map,
    proxy_workload::{reported_by_proxy, rollout},
    reconcile::{Condition, Controller, Event, Outcome, Validation},
    resources::{ConfigMaps, Deployments, RoleBindings, Roles, ServiceAccounts, Services},
};
use inputs::{Inputs, runner};

/// It has no finalizer: its proxy creates nothing, so the garbage collector deletes all that belongs to it.
impl Controller for MCPRemoteProxy {
    type Inputs = Inputs;

    const HAS_PODS: bool = true;

    fn names(name: &str) -> Vec<(Kind, String)> {
        vec![
            (ServiceAccounts::kind(), runner(name)),
            (Roles::kind(), runner(name)),
            (RoleBindings::kind(), runner(name)),
            (ConfigMaps::kind(), inline_config_map(name)),
            (ConfigMaps::kind(), objects::run_config(name)),
            (Deployments::kind(), name.into()),
            (Services::kind(), address::service(name)),
        ]
    }

    fn status(inputs: &Inputs, _: &Validation, outcome: &Outcome) -> (MCPRemoteProxyStatus, Vec<Condition>) {
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
}
