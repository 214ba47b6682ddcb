//! Everything that a proxy depends on, looked up once.

use std::sync::Arc;

use skep_api::{
    kinds::{ApiKind, MCPGroup},
    refs::{OidcConfigRef, SecretKeyRef, TelemetryConfigRef, ToolConfigRef},
};
use skep_config::{
    FieldError, FieldPath, objects,
    run_config::{Oidc, SessionRedis},
};
use skep_converge::Meta;
use skep_world::{ReadError, Reader};

use super::spec::{HasProxy, ProxySpec};
use crate::{
    build::Identity,
    config_refs::{ConfigRef, authz::Policies, external_auth::ExternalAuth, session_storage},
    reconcile::{Problem, Validation},
    resources::{
        ConfigMaps, Deployments, Keys, Pods, ResolvedRef,
        facts::{ConfigFacts, DeploymentFacts, PodFacts, PodState},
        kind_of, missing_secrets,
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
    pub(crate) external_auth: ExternalAuth,
    pub(crate) oidc: ConfigRef<OidcConfigRef>,
    pub(crate) policies: Policies,
    /// The keys of the ConfigMap with certificates, if it exists.
    pub(crate) certificates: Option<Arc<Keys<ConfigMaps>>>,
    /// The Secret keys that the proxy needs to start and that do not exist.
    pub(crate) missing_secrets: Vec<FieldError>,
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
        let oidc = ConfigRef::resolve("oidcConfigRef", spec.oidc_config_ref, reader);
        let mut proxy = Self {
            group: spec.group_ref.map(|group| ResolvedRef::resolve(reader, &group.name)),
            tools: ConfigRef::resolve("toolConfigRef", spec.tool_config_ref, reader),
            telemetry: ConfigRef::resolve("telemetryConfigRef", spec.telemetry_config_ref, reader),
            external_auth: ExternalAuth::resolve(spec.external_auth_config_ref, spec.auth_server_ref, reader),
            certificates: oidc.certificates(reader).await?,
            oidc,
            policies: Policies::resolve("", spec.authz_config_ref, spec.authz_config, reader).await?,
            missing_secrets: Vec::new(),
            deployment: reader.get::<Deployments>(&name).map(|entry| entry.cached.facts),
            live_config: live_config(reader, &objects::run_config(&name)),
            pods: live_pods(reader, &PodFacts::proxy(app, &name)),
            owner: owner.clone(),
            identity,
            settings,
        };
        let secrets = proxy.shared_secrets().chain(own_secrets).collect();
        proxy.missing_secrets = missing_secrets(reader, secrets).await?;
        Ok(proxy)
    }

    pub(crate) fn spec(&self) -> ProxySpec<'_> {
        self.owner.proxy_spec()
    }

    pub(crate) fn generation(&self) -> i64 {
        self.owner.metadata().generation.unwrap_or_default()
    }

    pub(crate) fn run_config_name(&self) -> String {
        objects::run_config(&self.identity.name)
    }

    /// How the proxy validates tokens.
    pub(crate) fn oidc_config(&self) -> Option<Oidc> {
        self.oidc.oidc(&self.identity, self.spec().port)
    }

    /// Adds a problem for each missing Secret key: a pod would wait forever for it, so the object waits
    /// instead.
    pub(crate) fn validate_secrets(&self, validation: &mut Validation) {
        for error in &self.missing_secrets {
            validation.fail(Problem::new(error.clone()).transient());
        }
    }

    /// The Redis with the sessions that replicas share.
    pub(crate) fn session_redis(&self) -> Option<SessionRedis> {
        session_storage::redis(self.spec().session_storage, &self.settings)
    }

    fn shared_secrets(&self) -> impl Iterator<Item = (FieldPath, SecretKeyRef)> {
        let password = self.spec().session_storage.and_then(|storage| storage.password_ref.as_ref());
        let password = password.map(|secret| ("sessionStorage.passwordRef".into(), secret));
        let all = self.oidc.secrets().chain(self.external_auth.secrets()).chain(password);
        all.map(|(field, secret)| (field, secret.clone()))
    }
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
