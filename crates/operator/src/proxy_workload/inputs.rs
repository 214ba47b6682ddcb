//! Everything that a proxy depends on, looked up once.

use std::{collections::HashMap, sync::Arc};

use skep_api::{
    auth_server::EmbeddedAuthServer,
    kinds::{ApiKind, ExternalAuthType, MCPAuthzConfig, MCPExternalAuthConfig, MCPGroup},
    refs::{OidcConfigRef, SecretKeyRef, TelemetryConfigRef, ToolConfigRef},
};
use skep_config::{FieldError, FieldPath, objects};
use skep_converge::Meta;
use skep_world::{ReadError, Reader};

use super::spec::{HasProxy, ProxySpec};
use crate::{
    build::Identity,
    config_refs::{self, ConfigRef},
    resources::{
        ConfigMaps, Deployments, Keys, Pods, ResolvedRef, Secrets, Texts,
        facts::{ConfigFacts, DeploymentFacts, PodFacts, PodState},
        kind_of, missing_key, object,
    },
    settings::Settings,
};

/// The inputs of a proxy.
pub(crate) struct ProxyWorkload {
    owner: Arc<dyn HasProxy>,
    pub(crate) identity: Identity,
    pub(crate) settings: Arc<Settings>,
    pub(crate) group: Option<ResolvedRef<MCPGroup>>,
    pub(crate) tools: ConfigRef<ToolConfigRef>,
    pub(crate) telemetry: ConfigRef<TelemetryConfigRef>,
    pub(crate) external_auth: Option<ResolvedRef<MCPExternalAuthConfig>>,
    pub(crate) auth_server: Option<ResolvedRef<MCPExternalAuthConfig>>,
    pub(crate) oidc: ConfigRef<OidcConfigRef>,
    pub(crate) authz: Option<ResolvedRef<MCPAuthzConfig>>,
    /// The data of the ConfigMap with policies, if the spec names one that exists.
    pub(crate) policies: Option<Arc<Texts>>,
    /// The keys of the ConfigMap with certificates, if it exists.
    pub(crate) certificates: Option<Arc<Keys<ConfigMaps>>>,
    /// The Secret keys that the proxy needs to start, each with the field that refers to it.
    pub(crate) required_secrets: Vec<(FieldPath, SecretKeyRef)>,
    /// The Secrets of these, with their keys if they exist.
    pub(crate) secrets: HashMap<String, Option<Arc<Keys<Secrets>>>>,
    pub(crate) deployment: Option<DeploymentFacts>,
    /// The live ConfigMap with the RunConfig.
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

impl ProxyWorkload {
    /// Looks up what the object refers to. `own_secrets` are those of fields that only its kind has.
    pub(crate) async fn resolve<K: ApiKind + HasProxy>(
        owner: Arc<K>,
        app: &'static str,
        own_secrets: Vec<(FieldPath, SecretKeyRef)>,
        settings: Arc<Settings>,
        reader: &mut Reader,
    ) -> Result<Self, ReadError> {
        let identity = Identity::new(kind_of::<K>(), app, HasProxy::metadata(&*owner));
        let name = identity.name.clone();
        let spec = owner.proxy_spec();
        macro_rules! resolve {
            ($reference:ident) => {
                spec.$reference.map(|reference| ResolvedRef::resolve(reader, &reference.name))
            };
        }
        let mut proxy = Self {
            group: resolve!(group_ref),
            tools: ConfigRef::resolve("toolConfigRef", spec.tool_config_ref, reader),
            telemetry: ConfigRef::resolve("telemetryConfigRef", spec.telemetry_config_ref, reader),
            external_auth: resolve!(external_auth_config_ref),
            auth_server: resolve!(auth_server_ref),
            oidc: ConfigRef::resolve("oidcConfigRef", spec.oidc_config_ref, reader),
            authz: resolve!(authz_config_ref),
            policies: None,
            certificates: None,
            required_secrets: Vec::new(),
            secrets: HashMap::new(),
            deployment: reader.get::<Deployments>(&name).map(|entry| entry.cached.facts),
            live_config: live_config(reader, &objects::run_config(&name)),
            pods: live_pods(reader, &PodFacts::proxy(app, &name)),
            owner: owner.clone(),
            identity,
            settings,
        };
        let policies = spec.authz_config.and_then(|authz| authz.config_map.as_ref());
        if let Some(policies) = policies {
            proxy.policies = reader.content::<Texts>(&policies.name).await?;
        }
        proxy.certificates = proxy.oidc.certificates(reader).await?;
        proxy.required_secrets = proxy.shared_secrets().into_iter().chain(own_secrets).collect();
        for (_, secret) in &proxy.required_secrets {
            let keys = reader.content::<Keys<Secrets>>(&secret.name).await?;
            proxy.secrets.insert(secret.name.clone(), keys);
        }
        Ok(proxy)
    }

    pub(crate) fn spec(&self) -> ProxySpec<'_> {
        self.owner.proxy_spec()
    }

    pub(crate) fn generation(&self) -> i64 {
        self.owner.metadata().generation.unwrap_or_default()
    }

    /// The ConfigMap with the policies that the object itself carries.
    pub(crate) fn inline_authz_name(&self) -> String {
        inline_authz(&self.identity.name)
    }

    pub(crate) fn run_config_name(&self) -> String {
        objects::run_config(&self.identity.name)
    }

    /// The authorization server to run, from either reference.
    pub(crate) fn embedded_server(&self) -> Option<&EmbeddedAuthServer> {
        let references = [&self.auth_server, &self.external_auth];
        references.into_iter().find_map(|auth| embedded_server(object(auth)?))
    }

    /// The Secret keys that the proxy needs and that do not exist.
    pub(crate) fn missing_secrets(&self) -> impl Iterator<Item = FieldError> {
        self.required_secrets.iter().filter_map(|(field, secret)| {
            let keys = self.secrets.get(&secret.name).and_then(Option::as_deref);
            missing_key(secret, keys).map(|message| FieldError::new(field.clone(), message))
        })
    }

    fn shared_secrets(&self) -> Vec<(FieldPath, SecretKeyRef)> {
        let auth = object(&self.external_auth);
        let auth = auth.map(|auth| config_refs::external_auth::secrets(&auth.spec)).unwrap_or_default();
        let server = self.embedded_server().map(config_refs::auth_server::secrets).unwrap_or_default();
        let reference = if self.auth_server.is_some() { "authServerRef" } else { "externalAuthConfigRef" };
        let password = self.spec().session_storage.and_then(|storage| storage.password_ref.as_ref());
        let auth = auth.into_iter().map(|secret| ("externalAuthConfigRef", secret));
        let server = server.into_iter().map(|(_, secret)| (reference, secret));
        let password = password.map(|secret| ("sessionStorage.passwordRef", secret));
        let all = auth.chain(server).chain(password).map(|(field, secret)| (field.into(), secret));
        let all = self.oidc.secrets().chain(all);
        all.map(|(field, secret)| (field, secret.clone())).collect()
    }
}

/// The ConfigMap with the policies in the spec of a workload.
pub(crate) fn inline_authz(workload: &str) -> String {
    format!("{workload}-authz-inline")
}

/// The authorization server that the object describes.
pub(crate) fn embedded_server(auth: &MCPExternalAuthConfig) -> Option<&EmbeddedAuthServer> {
    let server = auth.spec.embedded_auth_server.as_ref();
    server.filter(|_| auth.spec.type_ == ExternalAuthType::EmbeddedAuthServer)
}

/// The facts about a live ConfigMap with the configuration of pods.
pub(crate) fn live_config(reader: &mut Reader, name: &str) -> Option<Arc<ConfigFacts>> {
    reader.get::<ConfigMaps>(name)?.cached.facts
}

/// The pods of a workload that are not being deleted.
pub(crate) fn live_pods(reader: &mut Reader, workload: &str) -> Vec<LivePod> {
    let pods = reader.by_index::<Pods>(workload).into_iter();
    let pods = pods.map(|(name, entry)| LivePod { name, meta: entry.meta, state: entry.cached.state });
    pods.filter(|pod| pod.state != PodState::Terminating).collect()
}
