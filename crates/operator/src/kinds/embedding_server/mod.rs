//! EmbeddingServer: a server that turns texts into vectors.

mod cache;
mod children;
mod findings;
mod inputs;
mod notices;
mod status;

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use skep_api::kinds::EmbeddingServer;
use skep_config::annotations::EMBEDDING_SERVER_FINALIZER;
use skep_converge::{Child, Finalizer};
use skep_world::{ReadError, Reader};

use crate::{
    driver::{Blocked, Controller, Outcome},
    notice::Notice,
    settings::Settings,
    watched::EmbeddingServers,
};
use inputs::Inputs;

/// The controller of EmbeddingServers.
pub struct Embeddings {
    settings: Arc<Settings>,
}

impl Embeddings {
    /// A controller with the settings of the installation.
    pub fn new(settings: Arc<Settings>) -> Self {
        Self { settings }
    }
}

impl Controller for Embeddings {
    type Resource = EmbeddingServers;
    type Inputs = Inputs;

    const MANAGER: &'static str = "skep-embeddingserver";
    /// The garbage collector finds all that belongs to it. The claims for volumes stay, as those of every StatefulSet.
    const FINALIZER: Option<Finalizer> = Some(Finalizer(EMBEDDING_SERVER_FINALIZER));
    const ADDS_FINALIZER: bool = false;

    async fn resolve(&self, object: Arc<EmbeddingServer>, reader: &mut Reader) -> Result<Inputs, ReadError> {
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
