//! Everything that an MCPServer's children and status depend on, looked up once.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use skep_api::kinds::{
    MCPAuthzConfig, MCPExternalAuthConfig, MCPGroup, MCPOIDCConfig, MCPServer, MCPServerSpec,
    MCPTelemetryConfig, MCPToolConfig, MCPWebhookConfig,
};
use skep_api::refs::SecretKeyRef;
use skep_config::objects;
use skep_converge::Meta;
use skep_world::{ReadError, Reader, Watched};

use super::findings::{Findings, findings};
use crate::{
    build::Identity,
    facts::{DeploymentFacts, PodFacts, PodState},
    parts,
    reference::{Reference, object},
    settings::Settings,
    watched::{
        AuthzConfigs, ConfigMaps, Deployments, ExternalAuthConfigs, Groups, OidcConfigs, Pods, Secrets,
        Servers, StatefulSets, TelemetryConfigs, ToolConfigs, WebhookConfigs,
    },
};

/// The label `app` of the proxies of MCPServers.
pub(super) const APP: &str = "mcpserver";

/// What was found.
pub struct Inputs {
    pub(super) object: Arc<MCPServer>,
    pub(super) identity: Identity,
    pub(super) settings: Arc<Settings>,
    pub(super) group: Option<Reference<MCPGroup>>,
    pub(super) tools: Option<Reference<MCPToolConfig>>,
    pub(super) telemetry: Option<Reference<MCPTelemetryConfig>>,
    pub(super) external_auth: Option<Reference<MCPExternalAuthConfig>>,
    pub(super) auth_server: Option<Reference<MCPExternalAuthConfig>>,
    pub(super) webhooks: Option<Reference<MCPWebhookConfig>>,
    pub(super) oidc: Option<Reference<MCPOIDCConfig>>,
    pub(super) authz: Option<Reference<MCPAuthzConfig>>,
    /// ConfigMaps that are referred to, with their data. One that is not there has none.
    pub(super) config_maps: HashMap<String, Option<Arc<BTreeMap<String, String>>>>,
    /// Secrets that are referred to, with their keys. One that is not there has none.
    pub(super) secrets: HashMap<String, Option<Arc<Vec<String>>>>,
    pub(super) deployment: Option<DeploymentFacts>,
    /// The proxy's pods that are not being deleted.
    pub(super) pods: Vec<LivePod>,
    /// The server's StatefulSet, which the proxy makes: whether it is there.
    pub(super) stateful_set: bool,
    /// What all of this amounts to.
    pub(super) findings: Findings,
}

impl Inputs {
    pub(super) async fn resolve(
        object: Arc<MCPServer>,
        settings: Arc<Settings>,
        reader: &mut Reader,
    ) -> Result<Self, ReadError> {
        let identity = Identity::new(Servers::KIND, APP, &object.metadata);
        let spec = &object.spec;
        let name = identity.name.clone();
        macro_rules! follow {
            ($reference:ident, $kind:ty) => {
                spec.$reference.as_ref().map(|reference| Reference::follow::<$kind>(reader, &reference.name))
            };
        }
        let mut inputs = Self {
            group: follow!(group_ref, Groups),
            tools: follow!(tool_config_ref, ToolConfigs),
            telemetry: follow!(telemetry_config_ref, TelemetryConfigs),
            external_auth: follow!(external_auth_config_ref, ExternalAuthConfigs),
            auth_server: follow!(auth_server_ref, ExternalAuthConfigs),
            webhooks: follow!(webhook_config_ref, WebhookConfigs),
            oidc: follow!(oidc_config_ref, OidcConfigs),
            authz: follow!(authz_config_ref, AuthzConfigs),
            config_maps: HashMap::new(),
            secrets: HashMap::new(),
            deployment: reader.get::<Deployments>(&name).map(|entry| entry.kept.facts),
            pods: pods(reader, &name),
            stateful_set: reader.get::<StatefulSets>(&name).is_some(),
            findings: Findings::default(),
            object: object.clone(),
            identity,
            settings,
        };
        for name in inputs.config_map_names() {
            let data = reader.content::<ConfigMaps>(&name).await?;
            inputs.config_maps.insert(name, data);
        }
        for name in inputs.secret_names() {
            let keys = reader.content::<Secrets>(&name).await?;
            inputs.secrets.insert(name, keys);
        }
        inputs.findings = findings(&inputs);
        Ok(inputs)
    }

    pub(super) fn spec(&self) -> &MCPServerSpec {
        &self.object.spec
    }

    pub(super) fn generation(&self) -> i64 {
        self.object.metadata.generation.unwrap_or_default()
    }

    /// The name of the Service in front of the proxy.
    pub(super) fn service(&self) -> String {
        format!("mcp-{}-proxy", self.identity.name)
    }

    /// The ServiceAccount of the proxy, and the Role that it has.
    pub(super) fn runner(&self) -> String {
        format!("{}-proxy-runner", self.identity.name)
    }

    /// The ConfigMap with the policies that the object itself carries.
    pub(super) fn inline_authz_name(&self) -> String {
        format!("{}-authz-inline", self.identity.name)
    }

    pub(super) fn run_config_name(&self) -> String {
        objects::run_config(&self.identity.name)
    }

    /// The ConfigMaps whose content decides something: policies, and certificates that must be there.
    fn config_map_names(&self) -> Vec<String> {
        let policies = self.spec().authz_config.as_ref().and_then(|authz| authz.config_map.as_ref());
        let oidc = object(&self.oidc);
        let certificates = oidc.and_then(|oidc| parts::oidc::ca_bundle(&oidc.spec));
        let mut names: Vec<String> = policies.map(|policies| policies.name.clone()).into_iter().collect();
        names.extend(certificates.map(|bundle| bundle.config_map.to_owned()));
        names
    }

    /// The Secrets that must be there for the proxy to start.
    fn secret_names(&self) -> Vec<String> {
        self.required_secrets().into_iter().map(|(_, secret)| secret.name.clone()).collect()
    }

    /// The Secret keys that must be there for the proxy to start, with the field that asks for them.
    pub(super) fn required_secrets(&self) -> Vec<(&'static str, &SecretKeyRef)> {
        let oidc = object(&self.oidc);
        let oidc = oidc.map(|oidc| parts::oidc::secrets(&oidc.spec)).unwrap_or_default();
        let auth = object(&self.external_auth);
        let auth = auth.map(|auth| parts::external_auth::secrets(&auth.spec)).unwrap_or_default();
        let oidc = oidc.into_iter().map(|secret| ("oidcConfigRef", secret));
        oidc.chain(auth.into_iter().map(|secret| ("externalAuthConfigRef", secret))).collect()
    }
}

/// A pod of the proxy.
pub(super) struct LivePod {
    pub(super) name: String,
    pub(super) meta: Meta,
    pub(super) state: PodState,
}

fn pods(reader: &mut Reader, name: &str) -> Vec<LivePod> {
    let pods = reader.by_index::<Pods>(&PodFacts::workload(APP, name)).into_iter();
    let pods = pods.map(|(name, entry)| LivePod { name, meta: entry.meta, state: entry.kept.state });
    pods.filter(|pod| pod.state != PodState::Leaving).collect()
}
