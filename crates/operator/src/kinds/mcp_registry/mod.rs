//! MCPRegistry: a server that publishes a catalogue of MCP servers.

mod checks;
mod children;
mod hash;
mod inputs;
mod notices;
mod pgpass;
mod pod;
mod status;
mod template;

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use skep_api::kinds::MCPRegistry;
use skep_config::annotations::REGISTRY_FINALIZER;
use skep_converge::{Child, Finalizer};
use skep_world::{ReadError, Reader};

use crate::{
    driver::{Blocked, Controller, Outcome},
    notice::Notice,
    settings::Settings,
    watched::Registries,
};
use inputs::Inputs;

/// The controller of MCPRegistries.
pub struct McpRegistries {
    settings: Arc<Settings>,
}

impl McpRegistries {
    /// A controller with the settings of the installation.
    pub fn new(settings: Arc<Settings>) -> Self {
        Self { settings }
    }
}

impl Controller for McpRegistries {
    type Resource = Registries;
    type Inputs = Inputs;

    const MANAGER: &'static str = "skep-mcpregistry";
    /// The garbage collector finds all that belongs to it.
    const FINALIZER: Option<Finalizer> = Some(Finalizer(REGISTRY_FINALIZER));
    const ADDS_FINALIZER: bool = false;

    async fn resolve(&self, object: Arc<MCPRegistry>, reader: &mut Reader) -> Result<Inputs, ReadError> {
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
