//! Everything that an MCPRegistry's children and status depend on, looked up once.

use std::sync::Arc;

use skep_api::{
    kinds::{MCPRegistry, MCPRegistrySpec},
    refs::SecretKeyRef,
};
use skep_config::{FieldError, labels};
use skep_world::{ReadError, Reader};

use crate::{
    build::{Identity, Labels},
    reconcile::Resolve,
    resources::{
        ManagedDeployments, PlatformSecrets, facts::ManagedDeploymentFacts, kind_of, missing_secrets,
    },
    settings::Settings,
};

/// The label with the kind, in lower case.
const APP: &str = "mcpregistry";
/// The component label, and the name of the server's container.
pub(super) const COMPONENT: &str = "registry-api";

/// The field that refers to the Secret with passwords.
const PGPASS: &str = "pgpassSecretRef";

/// The inputs of an MCPRegistry.
pub struct Inputs {
    pub(super) object: Arc<MCPRegistry>,
    pub(super) identity: Identity,
    pub(super) settings: Arc<Settings>,
    /// The live Deployment.
    pub(super) live: Option<ManagedDeploymentFacts>,
    pub(super) platform_secrets: PlatformSecrets,
    /// The Secret key with passwords, if it does not exist.
    pub(super) missing_secrets: Vec<FieldError>,
}

impl Resolve<MCPRegistry> for Inputs {
    async fn resolve(
        object: Arc<MCPRegistry>,
        settings: &Arc<Settings>,
        reader: &mut Reader,
    ) -> Result<Self, ReadError> {
        let identity = Identity::new(kind_of::<MCPRegistry>(), APP, &object.metadata);
        let pgpass = object.spec.pgpass_secret_ref.iter().map(|secret| {
            let name = secret.name.clone().unwrap_or_default();
            (PGPASS.into(), SecretKeyRef { name, key: secret.key.clone() })
        });
        Ok(Self {
            live: reader.get::<ManagedDeployments>(&server(&identity.name)).map(|entry| entry.cached.facts),
            platform_secrets: PlatformSecrets::read(reader, [account(&identity.name)]),
            missing_secrets: missing_secrets(reader, pgpass.collect()).await?,
            object,
            identity,
            settings: settings.clone(),
        })
    }
}

impl Inputs {
    pub(super) fn spec(&self) -> &MCPRegistrySpec {
        &self.object.spec
    }

    pub(super) fn generation(&self) -> i64 {
        self.object.metadata.generation.unwrap_or_default()
    }

    /// The name of the Deployment and of the Service.
    pub(super) fn server(&self) -> String {
        server(&self.identity.name)
    }

    /// The name of the ServiceAccount and Role.
    pub(super) fn account(&self) -> String {
        account(&self.identity.name)
    }

    /// The name of the ConfigMap with the server's file.
    pub(super) fn config_map(&self) -> String {
        config_map(&self.identity.name)
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

    /// The labels that select the pods.
    pub(super) fn selector(&self) -> Labels {
        let server = self.server();
        let labels = [(labels::APP_NAME, server.as_str()), (labels::APP_COMPONENT, COMPONENT)];
        labels.map(|(key, value)| (key.into(), value.into())).into()
    }
}

pub(super) fn config_map(registry: &str) -> String {
    format!("{registry}-registry-server-config")
}

pub(super) fn account(registry: &str) -> String {
    format!("{registry}-registry-api")
}

pub(super) fn server(registry: &str) -> String {
    format!("{registry}-api")
}
