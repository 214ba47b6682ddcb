//! MCPRemoteProxy: a proxy in front of a server that runs elsewhere.

pub(super) mod address;
mod children;
mod findings;
mod inputs;
mod run_config;
mod status;

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use skep_api::kinds::MCPRemoteProxy;
use skep_converge::{Child, Finalizer};
use skep_world::{ReadError, Reader};

use crate::{
    driver::{Blocked, Controller, Outcome},
    notice::Notice,
    proxied::notices,
    settings::Settings,
    watched::RemoteProxies,
};
use inputs::Inputs;

/// The controller of MCPRemoteProxies.
pub struct McpRemoteProxies {
    settings: Arc<Settings>,
}

impl McpRemoteProxies {
    /// A controller with the settings of the installation.
    pub fn new(settings: Arc<Settings>) -> Self {
        Self { settings }
    }
}

impl Controller for McpRemoteProxies {
    type Resource = RemoteProxies;
    type Inputs = Inputs;

    const MANAGER: &'static str = "skep-mcpremoteproxy";
    /// Its proxy makes nothing, so the garbage collector finds all that belongs to it.
    const FINALIZER: Option<Finalizer> = None;

    async fn resolve(&self, object: Arc<MCPRemoteProxy>, reader: &mut Reader) -> Result<Inputs, ReadError> {
        Inputs::resolve(object, self.settings.clone(), reader).await
    }

    fn desired(&self, inputs: &Inputs) -> Result<Vec<Child>, Blocked> {
        children::children(inputs)
    }

    fn status(&self, inputs: &Inputs, outcome: &Outcome, now: &Time) -> Child {
        status::status(inputs, outcome, now)
    }

    fn notices(&self, inputs: &Inputs, outcome: &Outcome) -> Vec<Notice> {
        let told = inputs.object.status.as_ref().and_then(|status| status.message.as_deref());
        notices(&inputs.proxied, &inputs.findings, outcome, told)
    }
}
