//! Everything that a VirtualMCPServer's children and status depend on, looked up once.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use skep_api::{
    auth_server::EmbeddedAuthServer,
    kinds::{
        EmbeddingServer, MCPExternalAuthConfig, MCPGroup, MCPServerEntry, OutgoingAuthSource,
        VirtualMCPCompositeToolDefinition, VirtualMCPServer, VirtualMCPServerSpec,
    },
    refs::{OidcConfigRef, SecretKeyRef, TelemetryConfigRef, ToolConfigRef},
    strategy, vmcp,
    workload::SessionProvider,
};
use skep_config::{FieldPath, objects};
use skep_world::{ReadError, Reader};

use super::backends::{Member, members};
use crate::{
    build::Identity,
    config_refs::{self, ConfigRef, authz::Policies, ca_bundle::CaBundle},
    proxy_workload::{LivePod, live_config, live_pods},
    reconcile::Resolve,
    resources::{
        ConfigMaps, Deployments, Keys, PlatformSecrets, ResolvedRef, Secrets,
        facts::{ConfigFacts, DeploymentFacts, PodFacts},
        kind_of, missing_key,
    },
    settings::Settings,
};

/// The label `app` of virtual MCP servers.
const APP: &str = "virtualmcpserver";

/// The inputs of a VirtualMCPServer.
pub struct Inputs {
    pub(super) object: Arc<VirtualMCPServer>,
    pub(super) identity: Identity,
    pub(super) settings: Arc<Settings>,
    pub(super) group: ResolvedRef<MCPGroup>,
    /// The group's members: MCPServers, then MCPRemoteProxies, then MCPServerEntries, each sorted by name.
    pub(super) members: Vec<Member>,
    pub(super) oidc: ConfigRef<OidcConfigRef>,
    pub(super) policies: Policies,
    pub(super) telemetry: ConfigRef<TelemetryConfigRef>,
    pub(super) embedding: Option<ResolvedRef<EmbeddingServer>>,
    /// In the order of the spec.
    pub(super) composite_tools: Vec<ResolvedRef<VirtualMCPCompositeToolDefinition>>,
    /// By name.
    pub(super) tool_configs: BTreeMap<String, ConfigRef<ToolConfigRef>>,
    /// Those that the object refers to, and those that members refer to.
    pub(super) external_auths: BTreeMap<String, ResolvedRef<MCPExternalAuthConfig>>,
    /// The Secret keys that are referred to and that do not exist, each with what to do.
    missing_secrets: Vec<(SecretKeyRef, String)>,
    /// The ConfigMaps with the certificates of entries, with their keys if they exist.
    certificates: HashMap<String, Option<Arc<Keys<ConfigMaps>>>>,
    pub(super) platform_secrets: PlatformSecrets,
    pub(super) deployment: Option<DeploymentFacts>,
    /// The live ConfigMap with the server's configuration.
    pub(super) live_config: Option<Arc<ConfigFacts>>,
    pub(super) pods: Vec<LivePod>,
}

impl Resolve<VirtualMCPServer> for Inputs {
    async fn resolve(
        object: Arc<VirtualMCPServer>,
        settings: &Arc<Settings>,
        reader: &mut Reader,
    ) -> Result<Self, ReadError> {
        let identity = Identity::new(kind_of::<VirtualMCPServer>(), APP, &object.metadata);
        let (name, spec) = (identity.name.clone(), &object.spec);
        let incoming = &spec.incoming_auth;
        let embedding = spec.embedding_server_ref.as_ref();
        let members = members(reader, &spec.group_ref.name);
        let composite = spec.config.iter().flat_map(|config| &config.composite_tool_refs);
        let mut inputs = Self {
            group: ResolvedRef::resolve(reader, &spec.group_ref.name),
            oidc: ConfigRef::resolve("incomingAuth.oidcConfigRef", incoming.oidc_config_ref.as_ref(), reader),
            policies: Policies::resolve(
                "incomingAuth",
                incoming.authz_config_ref.as_ref(),
                incoming.authz_config.as_ref(),
                reader,
            )
            .await?,
            telemetry: ConfigRef::resolve("telemetryConfigRef", spec.telemetry_config_ref.as_ref(), reader),
            embedding: embedding.map(|server| ResolvedRef::resolve(reader, &server.name)),
            composite_tools: composite
                .map(|reference| ResolvedRef::resolve(reader, &reference.name))
                .collect(),
            tool_configs: tool_configs(spec, reader),
            external_auths: external_auths(spec, &members)
                .map(|name| (name.to_owned(), ResolvedRef::resolve(reader, name)))
                .collect(),
            missing_secrets: Vec::new(),
            certificates: HashMap::new(),
            platform_secrets: PlatformSecrets::read(reader, [account(&name)]),
            deployment: reader.get::<Deployments>(&name).map(|entry| entry.cached.facts),
            live_config: live_config(reader, &objects::vmcp_config(&name)),
            pods: live_pods(reader, &PodFacts::proxy(APP, &name)),
            members,
            identity,
            settings: settings.clone(),
            object: object.clone(),
        };
        let bundles = inputs.members.iter().filter_map(Member::entry);
        let bundles = bundles.filter_map(|(_, entry)| CaBundle::new(entry.spec.ca_bundle_ref.as_ref()));
        let bundles: Vec<String> = bundles.map(|bundle| bundle.config_map.to_owned()).collect();
        for name in bundles {
            let keys = reader.content::<Keys<ConfigMaps>>(&name).await?;
            inputs.certificates.insert(name, keys);
        }
        for secret in inputs.secrets() {
            let message = missing_key::<Secrets>(reader, &secret.name, &secret.key).await?;
            inputs.missing_secrets.extend(message.map(|message| (secret, message)));
        }
        Ok(inputs)
    }
}

impl Inputs {
    pub(super) fn spec(&self) -> &VirtualMCPServerSpec {
        &self.object.spec
    }

    /// The configuration of the server in the spec.
    pub(super) fn config(&self) -> vmcp::Config {
        self.spec().config.clone().unwrap_or_default()
    }

    pub(super) fn generation(&self) -> i64 {
        self.object.metadata.generation.unwrap_or_default()
    }

    pub(super) fn auth_server(&self) -> Option<&EmbeddedAuthServer> {
        self.spec().auth_server_config.as_ref()
    }

    /// Whether the configuration lists the backends, or the server discovers them.
    pub(super) fn source(&self) -> OutgoingAuthSource {
        self.spec().outgoing_auth.as_ref().and_then(|auth| auth.source).unwrap_or_default()
    }

    /// The name of the Service in front of the server.
    pub(super) fn service(&self) -> String {
        service(&self.identity.name)
    }

    /// The name of the server's ServiceAccount and Role, if they are created for it.
    pub(super) fn account(&self) -> String {
        account(&self.identity.name)
    }

    /// The Secret key with the password of Redis. A spec with sessionStorage ignores the installation's.
    pub(super) fn redis_password(&self) -> Option<&SecretKeyRef> {
        match &self.spec().session_storage {
            Some(storage) => {
                storage.password_ref.as_ref().filter(|_| storage.provider == SessionProvider::Redis)
            }
            None => self
                .settings
                .default_redis_password
                .as_ref()
                .filter(|_| self.settings.default_redis.is_some()),
        }
    }

    /// Whether the certificates of an entry exist, or it needs none. Pods would wait for a file that does not exist, and with them
    /// all other backends.
    pub(super) fn has_certificates(&self, entry: &MCPServerEntry) -> bool {
        let Some(bundle) = CaBundle::new(entry.spec.ca_bundle_ref.as_ref()) else { return true };
        let keys = self.certificates.get(bundle.config_map).and_then(Option::as_deref);
        keys.is_some_and(|keys| keys.contains(bundle.key))
    }

    /// What to do about a Secret key that does not exist.
    pub(super) fn missing(&self, secret: &SecretKeyRef) -> Option<String> {
        let missing = self.missing_secrets.iter().find(|(missing, _)| missing == secret);
        missing.map(|(_, message)| message.clone())
    }

    /// The Secret keys that the pods need to start, each with the field that refers to it.
    pub(super) fn required_secrets(&self) -> impl Iterator<Item = (FieldPath, &SecretKeyRef)> {
        let server = self.auth_server().map(config_refs::auth_server::secrets).unwrap_or_default();
        let server = server.into_iter();
        let server = server.map(|(field, secret)| (FieldPath::from("authServerConfig").join(field), secret));
        let password = self.redis_password().map(|secret| ("sessionStorage.passwordRef".into(), secret));
        self.oidc.secrets().chain(server).chain(password)
    }

    fn secrets(&self) -> Vec<SecretKeyRef> {
        let required = self.required_secrets().map(|(_, secret)| secret);
        let auths =
            self.external_auths.values().filter_map(|auth| Some((auth.name.as_str(), auth.object()?)));
        let auths =
            auths.flat_map(|(name, auth)| strategy::variables(name, &auth.spec).map(|(_, secret)| secret));
        let headers = self.members.iter().filter_map(Member::entry);
        let headers = headers.flat_map(|(name, entry)| {
            config_refs::entry::secrets(name, &entry.spec).map(|(_, secret)| secret)
        });
        required.chain(auths).chain(headers).cloned().collect()
    }
}

pub(super) fn service(server: &str) -> String {
    format!("vmcp-{server}")
}

pub(super) fn account(server: &str) -> String {
    format!("{server}-vmcp")
}

fn tool_configs(
    spec: &VirtualMCPServerSpec,
    reader: &mut Reader,
) -> BTreeMap<String, ConfigRef<ToolConfigRef>> {
    let aggregation = spec.config.iter().filter_map(|config| config.aggregation.as_ref());
    let tools = aggregation.flat_map(|aggregation| &aggregation.tools);
    let fields = tools.filter_map(|tools| tools.tool_config_ref.as_ref());
    let mut resolve = |field| ConfigRef::resolve("config.aggregation.tools", Some(field), reader);
    fields.map(|field| (field.name.clone(), resolve(field))).collect()
}

fn external_auths<'a>(
    spec: &'a VirtualMCPServerSpec,
    members: &'a [Member],
) -> impl Iterator<Item = &'a str> {
    let own = spec.outgoing_auth.iter().flat_map(|auth| auth.default.iter().chain(auth.backends.values()));
    let own = own.filter_map(|auth| Some(auth.external_auth_config_ref.as_ref()?.name.as_str()));
    own.chain(members.iter().filter_map(Member::external_auth)).filter(|name| !name.is_empty())
}
