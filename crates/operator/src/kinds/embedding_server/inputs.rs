//! Everything that an EmbeddingServer's children and status depend on, looked up once.

use std::sync::Arc;

use skep_api::kinds::{EmbeddingServer, EmbeddingServerSpec};
use skep_config::{FieldError, annotations::EMBEDDING_SERVER_FINALIZER, labels};
use skep_world::{ReadError, Reader};

use crate::{
    build::{Identity, Labels},
    reconcile::Resolve,
    resources::{ManagedStatefulSets, facts::StatefulSetFacts, kind_of, missing_secrets},
    settings::Settings,
};

/// The label with the kind, in lower case.
const APP: &str = "embeddingserver";
/// The component label.
const COMPONENT: &str = "embedding-server";

/// The inputs of an EmbeddingServer.
pub struct Inputs {
    pub(super) object: Arc<EmbeddingServer>,
    pub(super) identity: Identity,
    pub(super) settings: Arc<Settings>,
    /// The live StatefulSet.
    pub(super) live: Option<StatefulSetFacts>,
    /// The Secret key with the Hugging Face token, if it does not exist.
    pub(super) missing_secrets: Vec<FieldError>,
}

impl Resolve<EmbeddingServer> for Inputs {
    async fn resolve(
        object: Arc<EmbeddingServer>,
        settings: &Arc<Settings>,
        reader: &mut Reader,
    ) -> Result<Self, ReadError> {
        let identity = Identity::new(kind_of::<EmbeddingServer>(), APP, &object.metadata);
        let token = object.spec.hf_token_secret_ref.iter();
        let token = token.map(|secret| ("hfTokenSecretRef".into(), secret.clone()));
        Ok(Self {
            live: reader.get::<ManagedStatefulSets>(&identity.name).map(|entry| entry.cached.facts),
            missing_secrets: missing_secrets(reader, token.collect()).await?,
            object,
            identity,
            settings: settings.clone(),
        })
    }
}

impl Inputs {
    pub(super) fn spec(&self) -> &EmbeddingServerSpec {
        &self.object.spec
    }

    pub(super) fn generation(&self) -> i64 {
        self.object.metadata.generation.unwrap_or_default()
    }

    /// Whether ToolHive has reconciled it, which alone adds this finalizer. Its pods then keep their privileges: dropping
    /// them would restart the pods, and what they run may rely on them.
    pub(super) fn was_toolhives(&self) -> bool {
        let mut finalizers = self.object.metadata.finalizers.iter().flatten();
        finalizers.any(|finalizer| finalizer == EMBEDDING_SERVER_FINALIZER)
    }

    /// The labels of all its children, which also select its pods.
    pub(super) fn labels(&self) -> Labels {
        let labels = [
            (labels::APP_NAME, APP),
            (labels::APP_INSTANCE, &self.identity.name),
            (labels::APP_COMPONENT, COMPONENT),
            (labels::APP_MANAGED_BY, labels::OPERATOR),
        ];
        labels.map(|(key, value)| (key.into(), value.into())).into()
    }

    /// The labels by which the StatefulSet selects its pods. They are immutable, so labels that ToolHive added for a user
    /// stay.
    pub(super) fn selector(&self) -> Labels {
        let live = self.live.as_ref().map(|live| &live.selector).filter(|selector| !selector.is_empty());
        live.cloned().unwrap_or_else(|| self.labels())
    }
}
