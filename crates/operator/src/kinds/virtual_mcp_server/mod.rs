//! VirtualMCPServer: one MCP server that serves the tools of a whole group.

mod backends;
mod checks;
mod children;
mod config;
mod container;
mod findings;
mod incoming;
mod inputs;
mod notices;
mod startup;
mod status;
mod ways;

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use skep_api::kinds::VirtualMCPServer;
use skep_converge::{Child, Finalizer};
use skep_world::{ReadError, Reader};

use crate::{
    driver::{Blocked, Controller, Outcome},
    notice::Notice,
    settings::Settings,
    watched::VirtualServers,
};
use inputs::Inputs;

/// The controller of VirtualMCPServers.
pub struct VirtualMcpServers {
    settings: Arc<Settings>,
}

impl VirtualMcpServers {
    /// A controller with the settings of the installation.
    pub fn new(settings: Arc<Settings>) -> Self {
        Self { settings }
    }
}

impl Controller for VirtualMcpServers {
    type Resource = VirtualServers;
    type Inputs = Inputs;

    const MANAGER: &'static str = "skep-virtualmcpserver";
    /// All that belongs to it has an owner, and the garbage collector finds it.
    const FINALIZER: Option<Finalizer> = None;

    async fn resolve(&self, object: Arc<VirtualMCPServer>, reader: &mut Reader) -> Result<Inputs, ReadError> {
        Inputs::resolve(object, self.settings.clone(), reader).await
    }

    fn desired(&self, inputs: &Inputs) -> Result<Vec<Child>, Blocked> {
        children::children(inputs)
    }

    fn status(&self, inputs: &Inputs, outcome: &Outcome, now: &Time) -> Child {
        status::status(inputs, outcome, now)
    }

    fn notices(&self, inputs: &Inputs, outcome: &Outcome) -> Vec<Notice> {
        notices::notices(inputs, outcome)
    }
}
