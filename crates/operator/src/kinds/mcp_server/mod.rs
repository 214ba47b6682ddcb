//! MCPServer: a server of its own in the cluster, with a proxy in front of it.

pub(super) mod address;
mod children;
mod container;
mod findings;
mod inputs;
mod restart;
mod run_config;
mod status;

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use skep_api::kinds::MCPServer;
use skep_config::{annotations::MCPSERVER_FINALIZER, objects};
use skep_converge::{Child, Finalizer, Kind};
use skep_world::{ReadError, Reader, Watched};

use crate::{
    driver::{Acts, Blocked, Controller, Outcome},
    notice::Notice,
    proxied::notices,
    settings::Settings,
    watched::{ConfigMaps, Deployments, RoleBindings, Servers, Services, StatefulSets},
};
use inputs::{Inputs, runner};

/// The controller of MCPServers.
pub struct McpServers {
    settings: Arc<Settings>,
}

impl McpServers {
    /// A controller with the settings of the installation.
    pub fn new(settings: Arc<Settings>) -> Self {
        Self { settings }
    }
}

impl Controller for McpServers {
    type Resource = Servers;
    type Inputs = Inputs;

    const MANAGER: &'static str = "skep-mcpserver";
    const FINALIZER: Option<Finalizer> = Some(Finalizer(MCPSERVER_FINALIZER));

    async fn resolve(&self, object: Arc<MCPServer>, reader: &mut Reader) -> Result<Inputs, ReadError> {
        Inputs::resolve(object, self.settings.clone(), reader).await
    }

    fn desired(&self, inputs: &Inputs) -> Result<Vec<Child>, Blocked> {
        children::children(inputs)
    }

    fn status(&self, inputs: &Inputs, outcome: &Outcome, now: &Time) -> Child {
        status::status(inputs, outcome, now)
    }

    fn acts(&self, inputs: &Inputs) -> Acts {
        restart::acts(inputs)
    }

    fn notices(&self, inputs: &Inputs, outcome: &Outcome) -> Vec<Notice> {
        let told = inputs.object.status.as_ref().and_then(|status| status.message.as_deref());
        notices(&inputs.proxied, &inputs.findings, outcome, told)
    }

    /// What the proxy has made has no owner that the garbage collector would follow. First goes what lets a proxy make it,
    /// for one that is just starting would make it anew.
    fn leftovers(&self, name: &str) -> Vec<(Kind, String)> {
        vec![
            (RoleBindings::KIND, runner(name)),
            (Deployments::KIND, name.into()),
            (StatefulSets::KIND, name.into()),
            (Services::KIND, objects::headless_service(name)),
            (Services::KIND, objects::backend_service(name)),
            (ConfigMaps::KIND, objects::run_config(name)),
        ]
    }
}
