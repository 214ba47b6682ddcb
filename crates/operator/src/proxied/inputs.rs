//! What a proxy depends on, whatever it stands in front of: looked up once.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use skep_api::{
    auth_server::EmbeddedAuthServer,
    kinds::{
        ExternalAuthType, MCPAuthzConfig, MCPExternalAuthConfig, MCPGroup, MCPOIDCConfig, MCPTelemetryConfig,
        MCPToolConfig,
    },
    refs::SecretKeyRef,
};
use skep_config::objects;
use skep_converge::Meta;
use skep_world::{ReadError, Reader};

use super::spec::{HasProxy, ProxySpec};
use crate::{
    build::Identity,
    facts::{ConfigFacts, DeploymentFacts, PodFacts, PodState},
    parts,
    reference::{Reference, object},
    settings::Settings,
    watched::{
        AuthzConfigs, ConfigMaps, CustomResource, Deployments, ExternalAuthConfigs, Groups, OidcConfigs,
        Pods, Secrets, TelemetryConfigs, ToolConfigs,
    },
};

/// What was found.
pub(crate) struct Proxied {
    owner: Arc<dyn HasProxy>,
    pub(crate) identity: Identity,
    pub(crate) settings: Arc<Settings>,
    pub(crate) group: Option<Reference<MCPGroup>>,
    pub(crate) tools: Option<Reference<MCPToolConfig>>,
    pub(crate) telemetry: Option<Reference<MCPTelemetryConfig>>,
    pub(crate) external_auth: Option<Reference<MCPExternalAuthConfig>>,
    pub(crate) auth_server: Option<Reference<MCPExternalAuthConfig>>,
    pub(crate) oidc: Option<Reference<MCPOIDCConfig>>,
    pub(crate) authz: Option<Reference<MCPAuthzConfig>>,
    /// ConfigMaps that are referred to, with their data. One that is not there has none.
    pub(crate) config_maps: HashMap<String, Option<Arc<BTreeMap<String, String>>>>,
    /// The Secret keys that must be there for the proxy to start, with the field that asks for each.
    pub(crate) required_secrets: Vec<(&'static str, SecretKeyRef)>,
    /// The Secrets of these, with their keys. One that is not there has none.
    pub(crate) secrets: HashMap<String, Option<Arc<Vec<String>>>>,
    pub(crate) deployment: Option<DeploymentFacts>,
    /// The ConfigMap with the RunConfig.
    pub(crate) live_config: Option<Arc<ConfigFacts>>,
    /// The proxy's pods that are not being deleted.
    pub(crate) pods: Vec<LivePod>,
}

/// A pod of a proxy or of a server.
pub(crate) struct LivePod {
    pub(crate) name: String,
    pub(crate) meta: Meta,
    pub(crate) state: PodState,
}

/// A Secret key that is not there.
pub(crate) struct MissingSecret {
    /// The field that asks for it.
    pub(crate) field: &'static str,
    pub(crate) message: String,
}

impl Proxied {
    /// Looks up what the object refers to. `own_secrets` are those that only its kind knows of.
    pub(crate) async fn resolve<W: CustomResource>(
        owner: Arc<W::Object>,
        app: &'static str,
        own_secrets: Vec<(&'static str, SecretKeyRef)>,
        settings: Arc<Settings>,
        reader: &mut Reader,
    ) -> Result<Self, ReadError>
    where
        W::Object: HasProxy,
    {
        let identity = Identity::new(W::KIND, app, owner.metadata());
        let name = identity.name.clone();
        let spec = owner.proxy();
        macro_rules! follow {
            ($reference:ident, $kind:ty) => {
                spec.$reference.map(|reference| Reference::follow::<$kind>(reader, &reference.name))
            };
        }
        let mut proxied = Self {
            group: follow!(group_ref, Groups),
            tools: follow!(tool_config_ref, ToolConfigs),
            telemetry: follow!(telemetry_config_ref, TelemetryConfigs),
            external_auth: follow!(external_auth_config_ref, ExternalAuthConfigs),
            auth_server: follow!(auth_server_ref, ExternalAuthConfigs),
            oidc: follow!(oidc_config_ref, OidcConfigs),
            authz: follow!(authz_config_ref, AuthzConfigs),
            config_maps: HashMap::new(),
            required_secrets: Vec::new(),
            secrets: HashMap::new(),
            deployment: reader.get::<Deployments>(&name).map(|entry| entry.kept.facts),
            live_config: live_config(reader, &objects::run_config(&name)),
            pods: live_pods(reader, &PodFacts::proxy(app, &name)),
            owner: owner.clone(),
            identity,
            settings,
        };
        for name in proxied.config_map_names() {
            let data = reader.content::<ConfigMaps>(&name).await?;
            proxied.config_maps.insert(name, data);
        }
        proxied.required_secrets = proxied.shared_secrets().into_iter().chain(own_secrets).collect();
        for (_, secret) in &proxied.required_secrets {
            let keys = reader.content::<Secrets>(&secret.name).await?;
            proxied.secrets.insert(secret.name.clone(), keys);
        }
        Ok(proxied)
    }

    pub(crate) fn spec(&self) -> ProxySpec<'_> {
        self.owner.proxy()
    }

    pub(crate) fn generation(&self) -> i64 {
        self.owner.metadata().generation.unwrap_or_default()
    }

    /// The ConfigMap with the policies that the object itself carries.
    pub(crate) fn inline_authz_name(&self) -> String {
        format!("{}-authz-inline", self.identity.name)
    }

    pub(crate) fn run_config_name(&self) -> String {
        objects::run_config(&self.identity.name)
    }

    /// The authorization server to run, by whichever reference names one.
    pub(crate) fn embedded_server(&self) -> Option<&EmbeddedAuthServer> {
        let references = [&self.auth_server, &self.external_auth];
        references.into_iter().find_map(|auth| embedded_server(object(auth)?))
    }

    /// The ConfigMaps whose content decides something: policies, and certificates that must be there.
    fn config_map_names(&self) -> Vec<String> {
        let policies = self.spec().authz_config.and_then(|authz| authz.config_map.as_ref());
        let oidc = object(&self.oidc);
        let certificates = oidc.and_then(|oidc| parts::oidc::ca_bundle(&oidc.spec));
        let mut names: Vec<String> = policies.map(|policies| policies.name.clone()).into_iter().collect();
        names.extend(certificates.map(|bundle| bundle.config_map.to_owned()));
        names
    }

    /// The Secret keys that must be there and are not.
    pub(crate) fn missing_secrets(&self) -> impl Iterator<Item = MissingSecret> {
        self.required_secrets.iter().filter_map(|(field, SecretKeyRef { name, key })| {
            let message = match self.secrets.get(name) {
                Some(Some(keys)) if keys.contains(key) => return None,
                Some(Some(_)) => format!("{field}: the Secret {name} has no key {key}: add it"),
                _ => format!("{field}: there is no Secret {name}: create it with the key {key}"),
            };
            Some(MissingSecret { field, message })
        })
    }

    fn shared_secrets(&self) -> Vec<(&'static str, SecretKeyRef)> {
        let oidc = object(&self.oidc);
        let oidc = oidc.map(|oidc| parts::oidc::secrets(&oidc.spec)).unwrap_or_default();
        let auth = object(&self.external_auth);
        let auth = auth.map(|auth| parts::external_auth::secrets(&auth.spec)).unwrap_or_default();
        let password = self.spec().session_storage.and_then(|storage| storage.password_ref.as_ref());
        let oidc = oidc.into_iter().map(|secret| ("oidcConfigRef", secret));
        let auth = auth.into_iter().map(|secret| ("externalAuthConfigRef", secret));
        let password = password.map(|secret| ("sessionStorage.passwordRef", secret));
        oidc.chain(auth).chain(password).map(|(field, secret)| (field, secret.clone())).collect()
    }
}

/// The authorization server that the object describes.
pub(crate) fn embedded_server(auth: &MCPExternalAuthConfig) -> Option<&EmbeddedAuthServer> {
    let server = auth.spec.embedded_auth_server.as_ref();
    server.filter(|_| auth.spec.type_ == ExternalAuthType::EmbeddedAuthServer)
}

/// What is known of a live ConfigMap with the configuration of pods.
pub(crate) fn live_config(reader: &mut Reader, name: &str) -> Option<Arc<ConfigFacts>> {
    reader.get::<ConfigMaps>(name)?.kept.facts
}

/// The pods of a workload that are not being deleted.
pub(crate) fn live_pods(reader: &mut Reader, workload: &str) -> Vec<LivePod> {
    let pods = reader.by_index::<Pods>(workload).into_iter();
    let pods = pods.map(|(name, entry)| LivePod { name, meta: entry.meta, state: entry.kept.state });
    pods.filter(|pod| pod.state != PodState::Leaving).collect()
}
