//! EmbeddingServer: a server that computes embeddings, for tool search.

mod cache;
mod desired;
mod events;
mod inputs;
mod status;
mod validate;

use skep_api::kinds::{EmbeddingServer, EmbeddingServerStatus};
use skep_config::annotations::EMBEDDING_SERVER_FINALIZER;
use skep_converge::{Finalizer, Kind};
use skep_world::Watched;

use crate::{
    reconcile::{Condition, Controller, Event, Outcome, Validation},
    resources::{ManagedStatefulSets, Services},
};
use inputs::Inputs;

impl Controller for EmbeddingServer {
    type Inputs = Inputs;

    /// The garbage collector deletes all that belongs to it. The claims for volumes stay, as with every StatefulSet.
    const FINALIZER: Option<Finalizer> = Some(Finalizer(EMBEDDING_SERVER_FINALIZER));
    const ADDS_FINALIZER: bool = false;
    const HAS_PODS: bool = true;

    fn names(name: &str) -> Vec<(Kind, String)> {
        vec![(ManagedStatefulSets::kind(), name.into()), (Services::kind(), name.into())]
    }

    fn status(inputs: &Inputs, _: &Validation, outcome: &Outcome) -> (EmbeddingServerStatus, Vec<Condition>) {
        status::status(inputs, outcome)
    }

    fn events(inputs: &Inputs, validation: &Validation, outcome: &Outcome) -> Vec<Event> {
        events::events(inputs, validation, outcome)
    }
}
