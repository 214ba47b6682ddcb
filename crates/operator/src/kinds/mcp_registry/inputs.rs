//! Everything that an MCPRegistry's children and status depend on, looked up once.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{PodTemplateSpec, Volume, VolumeMount};
use skep_api::kinds::{MCPRegistry, MCPRegistrySpec};
use skep_config::labels;
use skep_world::{ReadError, Reader, Watched};

use super::checks::{self, Wrong};
use crate::{
    build::{Identity, Labels},
    facts::ManagedDeploymentFacts,
    settings::Settings,
    watched::{ManagedDeployments, Registries, Secrets},
};

/// The label with the kind, in lower case.
const APP: &str = "mcpregistry";
/// The label that says what part of the whole it is, and the name of the server's container.
pub(super) const COMPONENT: &str = "registry-api";

/// What was found.
pub struct Inputs {
    pub(super) object: Arc<MCPRegistry>,
    pub(super) identity: Identity,
    pub(super) settings: Arc<Settings>,
    /// The Deployment as it is.
    pub(super) live: Option<ManagedDeploymentFacts>,
    /// The keys of the Secret with passwords, if one is named and there.
    pub(super) pgpass_keys: Option<Arc<Vec<String>>>,
    /// What the user gives for the pod, or what is wrong with it.
    pub(super) users: Result<UsersPod, Wrong>,
}

/// What the user gives for the pod.
#[derive(Default)]
pub(super) struct UsersPod {
    pub(super) template: Option<PodTemplateSpec>,
    pub(super) volumes: Vec<Volume>,
    pub(super) mounts: Vec<VolumeMount>,
}

impl Inputs {
    pub(super) async fn resolve(
        object: Arc<MCPRegistry>,
        settings: Arc<Settings>,
        reader: &mut Reader,
    ) -> Result<Self, ReadError> {
        let identity = Identity::new(Registries::KIND, APP, &object.metadata);
        let pgpass = object.spec.pgpass_secret_ref.as_ref().and_then(|secret| secret.name.as_deref());
        let mut inputs = Self {
            live: reader.get::<ManagedDeployments>(&server(&identity)).map(|entry| entry.kept.facts),
            pgpass_keys: match pgpass {
                Some(name) => reader.content::<Secrets>(name).await?,
                None => None,
            },
            object,
            identity,
            settings,
            users: Ok(UsersPod::default()),
        };
        inputs.users = checks::users_pod(&inputs);
        Ok(inputs)
    }

    pub(super) fn spec(&self) -> &MCPRegistrySpec {
        &self.object.spec
    }

    pub(super) fn generation(&self) -> i64 {
        self.object.metadata.generation.unwrap_or_default()
    }

    /// The name of the Deployment and of the Service.
    pub(super) fn server(&self) -> String {
        server(&self.identity)
    }

    /// The name of the ServiceAccount, and of what it may do.
    pub(super) fn account(&self) -> String {
        format!("{}-registry-api", self.identity.name)
    }

    /// The name of the ConfigMap with the server's file.
    pub(super) fn config_map(&self) -> String {
        format!("{}-registry-server-config", self.identity.name)
    }

    /// The labels of the object of that name.
    pub(super) fn labels(&self, name: &str) -> Labels {
        let labels = [
            (labels::APP_NAME, name),
            (labels::APP_COMPONENT, COMPONENT),
            (labels::APP_MANAGED_BY, labels::OPERATOR),
            (labels::REGISTRY_NAME, &self.identity.name),
        ];
        labels.map(|(key, value)| (key.into(), value.into())).into()
    }

    /// The labels by which the pods are selected.
    pub(super) fn selector(&self) -> Labels {
        let server = self.server();
        let labels = [(labels::APP_NAME, server.as_str()), (labels::APP_COMPONENT, COMPONENT)];
        labels.map(|(key, value)| (key.into(), value.into())).into()
    }
}

fn server(identity: &Identity) -> String {
    format!("{}-api", identity.name)
}
