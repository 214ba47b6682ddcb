//! Everything that an EmbeddingServer's children and status depend on, looked up once.

use std::sync::Arc;

use skep_api::kinds::{EmbeddingServer, EmbeddingServerSpec};
use skep_config::{annotations::EMBEDDING_SERVER_FINALIZER, labels};
use skep_world::{ReadError, Reader, Watched};

use super::findings::findings;
use crate::{
    build::{Identity, Labels},
    facts::StatefulSetFacts,
    proxied::Findings,
    settings::Settings,
    watched::{EmbeddingServers, ManagedStatefulSets, Secrets},
};

/// The label with the kind, in lower case.
const APP: &str = "embeddingserver";
/// The label that says what part of the whole it is.
const COMPONENT: &str = "embedding-server";

/// What was found.
pub struct Inputs {
    pub(super) object: Arc<EmbeddingServer>,
    pub(super) identity: Identity,
    pub(super) settings: Arc<Settings>,
    /// The StatefulSet as it is.
    pub(super) live: Option<StatefulSetFacts>,
    /// The keys of the Secret with the Hugging Face token, if one is named and there.
    pub(super) token_keys: Option<Arc<Vec<String>>>,
    /// What all of this amounts to.
    pub(super) findings: Findings,
}

impl Inputs {
    pub(super) async fn resolve(
        object: Arc<EmbeddingServer>,
        settings: Arc<Settings>,
        reader: &mut Reader,
    ) -> Result<Self, ReadError> {
        let identity = Identity::new(EmbeddingServers::KIND, APP, &object.metadata);
        let mut inputs = Self {
            live: reader.get::<ManagedStatefulSets>(&identity.name).map(|entry| entry.kept.facts),
            token_keys: match &object.spec.hf_token_secret_ref {
                Some(secret) => reader.content::<Secrets>(&secret.name).await?,
                None => None,
            },
            object,
            identity,
            settings,
            findings: Findings::default(),
        };
        inputs.findings = findings(&inputs);
        Ok(inputs)
    }

    pub(super) fn spec(&self) -> &EmbeddingServerSpec {
        &self.object.spec
    }

    pub(super) fn generation(&self) -> i64 {
        self.object.metadata.generation.unwrap_or_default()
    }

    /// Whether ToolHive has worked on it, as only it puts on this finalizer. Its pods keep their rights then: they would
    /// restart to lose them, and whatever they run has relied on them.
    pub(super) fn was_toolhives(&self) -> bool {
        let mut finalizers = self.object.metadata.finalizers.iter().flatten();
        finalizers.any(|finalizer| finalizer == EMBEDDING_SERVER_FINALIZER)
    }

    /// The labels of everything that is made for it, by which its pods are also selected.
    pub(super) fn labels(&self) -> Labels {
        let labels = [
            (labels::APP_NAME, APP),
            (labels::APP_INSTANCE, &self.identity.name),
            (labels::APP_COMPONENT, COMPONENT),
            (labels::APP_MANAGED_BY, labels::OPERATOR),
        ];
        labels.map(|(key, value)| (key.into(), value.into())).into()
    }

    /// The labels by which the StatefulSet knows its pods. They cannot be changed: ToolHive has put a user's labels
    /// for the pods among them, and there they stay.
    pub(super) fn selector(&self) -> Labels {
        let live = self.live.as_ref().map(|live| &live.selector).filter(|selector| !selector.is_empty());
        live.cloned().unwrap_or_else(|| self.labels())
    }
}
