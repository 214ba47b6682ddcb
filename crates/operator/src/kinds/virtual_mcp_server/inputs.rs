//! Everything that a VirtualMCPServer's children and status depend on, looked up once.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use skep_api::{
    auth_server::EmbeddedAuthServer,
    kinds::{
        ApiKind, EmbeddingServer, MCPAuthzConfig, MCPExternalAuthConfig, MCPGroup, MCPOIDCConfig,
        MCPServerEntry, MCPTelemetryConfig, MCPToolConfig, OutgoingAuthSource,
        VirtualMCPCompositeToolDefinition, VirtualMCPServer, VirtualMCPServerSpec,
    },
    refs::SecretKeyRef,
    strategy, vmcp,
    workload::SessionProvider,
};
use skep_config::objects;
use skep_world::{ReadError, Reader};

use super::backends::{Member, members};
use crate::{
    build::Identity,
    config_refs::{self, ca_bundle::CaBundle},
    proxy_workload::{LivePod, live_config, live_pods},
    resources::{
        ConfigMaps, Deployments, Keys, PlatformSecrets, ResolvedRef, Secrets, Texts,
        facts::{ConfigFacts, DeploymentFacts, PodFacts},
        kind_of, missing_key, object,
    },
    settings::Settings,
};

/// The label `app` of virtual MCP servers.
const APP: &str = "virtualmcpserver";

type ResolvedRefs<K> = BTreeMap<String, ResolvedRef<K>>;

/// The inputs of a VirtualMCPServer.
pub struct Inputs {
    pub(super) object: Arc<VirtualMCPServer>,
    pub(super) identity: Identity,
    pub(super) settings: Arc<Settings>,
    pub(super) group: ResolvedRef<MCPGroup>,
    /// The group's members: MCPServers, then MCPRemoteProxies, then MCPServerEntries, each sorted by name.
    pub(super) members: Vec<Member>,
    pub(super) oidc: Option<ResolvedRef<MCPOIDCConfig>>,
    pub(super) authz: Option<ResolvedRef<MCPAuthzConfig>>,
    pub(super) telemetry: Option<ResolvedRef<MCPTelemetryConfig>>,
    pub(super) embedding: Option<ResolvedRef<EmbeddingServer>>,
    /// In the order of the spec.
    pub(super) composite_tools: Vec<ResolvedRef<VirtualMCPCompositeToolDefinition>>,
    pub(super) tool_configs: ResolvedRefs<MCPToolConfig>,
    /// Those that the object refers to, and those that members refer to.
    pub(super) external_auths: ResolvedRefs<MCPExternalAuthConfig>,
    /// The data of the ConfigMap with policies, if the spec names one that exists.
    pub(super) policies: Option<Arc<Texts>>,
    /// The Secrets that the pods need, with their keys if they exist.
    secrets: HashMap<String, Option<Arc<Keys<Secrets>>>>,
    /// The ConfigMaps with the certificates of entries, with their keys if they exist.
    certificates: HashMap<String, Option<Arc<Keys<ConfigMaps>>>>,
    pub(super) platform_secrets: PlatformSecrets,
    pub(super) deployment: Option<DeploymentFacts>,
    /// The live ConfigMap with the server's configuration.
    pub(super) live_config: Option<Arc<ConfigFacts>>,
    pub(super) pods: Vec<LivePod>,
}

impl Inputs {
    pub(super) async fn resolve(
        object: Arc<VirtualMCPServer>,
        settings: Arc<Settings>,
        reader: &mut Reader,
    ) -> Result<Self, ReadError> {
        let identity = Identity::new(kind_of::<VirtualMCPServer>(), APP, &object.metadata);
        let (name, spec) = (identity.name.clone(), &object.spec);
        macro_rules! resolve {
            ($reference:expr) => {
                $reference.as_ref().map(|reference| ResolvedRef::resolve(reader, &reference.name))
            };
        }
        let members = members(reader, &spec.group_ref.name);
        let composite = spec.config.iter().flat_map(|config| &config.composite_tool_refs);
        let mut inputs = Self {
            group: ResolvedRef::resolve(reader, &spec.group_ref.name),
            oidc: resolve!(spec.incoming_auth.oidc_config_ref),
            authz: resolve!(spec.incoming_auth.authz_config_ref),
            telemetry: resolve!(spec.telemetry_config_ref),
            embedding: resolve!(spec.embedding_server_ref),
            composite_tools: composite
                .map(|reference| ResolvedRef::resolve(reader, &reference.name))
                .collect(),
            tool_configs: resolve_all(reader, tool_configs(spec)),
            external_auths: resolve_all(reader, external_auths(spec, &members)),
            policies: None,
            secrets: HashMap::new(),
            certificates: HashMap::new(),
            platform_secrets: PlatformSecrets::read(reader, [account(&name)]),
            deployment: reader.get::<Deployments>(&name).map(|entry| entry.cached.facts),
            live_config: live_config(reader, &objects::vmcp_config(&name)),
            pods: live_pods(reader, &PodFacts::proxy(APP, &name)),
            members,
            identity,
            settings,
            object: object.clone(),
        };
        let policies = inputs.spec().incoming_auth.authz_config.as_ref();
        if let Some(source) = policies.and_then(|policies| policies.config_map.as_ref()) {
            inputs.policies = reader.content::<Texts>(&source.name).await?;
        }
        let bundles = inputs.members.iter().filter_map(Member::entry);
        let bundles = bundles.filter_map(|(_, entry)| CaBundle::new(entry.spec.ca_bundle_ref.as_ref()));
        let bundles: Vec<String> = bundles.map(|bundle| bundle.config_map.to_owned()).collect();
        for name in bundles {
            let keys = reader.content::<Keys<ConfigMaps>>(&name).await?;
            inputs.certificates.insert(name, keys);
        }
        for name in inputs.secret_names() {
            let keys = reader.content::<Keys<Secrets>>(&name).await?;
            inputs.secrets.insert(name, keys);
        }
        Ok(inputs)
    }

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
        missing_key(secret, self.secrets.get(&secret.name).and_then(Option::as_deref))
    }

    /// The Secret keys that the pods need to start, each with the field that refers to it.
    pub(super) fn required_secrets(&self) -> Vec<(String, &SecretKeyRef)> {
        let oidc = object(&self.oidc).map(|oidc| config_refs::oidc::secrets(&oidc.spec)).unwrap_or_default();
        let oidc = oidc.into_iter().map(|secret| ("incomingAuth.oidcConfigRef".to_owned(), secret));
        let server = self.auth_server().map(config_refs::auth_server::secrets).unwrap_or_default();
        let server = server.into_iter().map(|(field, secret)| (format!("authServerConfig.{field}"), secret));
        let password = self.redis_password().map(|secret| ("sessionStorage.passwordRef".to_owned(), secret));
        oidc.chain(server).chain(password).collect()
    }

    fn secret_names(&self) -> Vec<String> {
        let required = self.required_secrets().into_iter().map(|(_, secret)| secret);
        let auths =
            self.external_auths.values().filter_map(|auth| Some((auth.name.as_str(), auth.object()?)));
        let auths =
            auths.flat_map(|(name, auth)| strategy::variables(name, &auth.spec).map(|(_, secret)| secret));
        let headers = self.members.iter().filter_map(Member::entry);
        let headers = headers.flat_map(|(name, entry)| {
            config_refs::entry::secrets(name, &entry.spec).map(|(_, secret)| secret)
        });
        let mut names: Vec<String> =
            required.chain(auths).chain(headers).map(|secret| secret.name.clone()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

pub(super) fn service(server: &str) -> String {
    format!("vmcp-{server}")
}

pub(super) fn account(server: &str) -> String {
    format!("{server}-vmcp")
}

fn resolve_all<'a, K: ApiKind>(reader: &mut Reader, names: impl Iterator<Item = &'a str>) -> ResolvedRefs<K> {
    names.map(|name| (name.to_owned(), ResolvedRef::resolve(reader, name))).collect()
}

fn tool_configs(spec: &VirtualMCPServerSpec) -> impl Iterator<Item = &str> {
    let aggregation = spec.config.iter().filter_map(|config| config.aggregation.as_ref());
    let tools = aggregation.flat_map(|aggregation| &aggregation.tools);
    tools.filter_map(|tools| Some(tools.tool_config_ref.as_ref()?.name.as_str()))
}

fn external_auths<'a>(
    spec: &'a VirtualMCPServerSpec,
    members: &'a [Member],
) -> impl Iterator<Item = &'a str> {
    let own = spec.outgoing_auth.iter().flat_map(|auth| auth.default.iter().chain(auth.backends.values()));
    let own = own.filter_map(|auth| Some(auth.external_auth_config_ref.as_ref()?.name.as_str()));
    own.chain(members.iter().filter_map(Member::external_auth)).filter(|name| !name.is_empty())
}
