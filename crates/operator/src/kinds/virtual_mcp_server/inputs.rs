//! Everything that a VirtualMCPServer's children and status depend on, looked up once.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use skep_api::{
    auth_server::EmbeddedAuthServer,
    kinds::{
        EmbeddingServer, MCPAuthzConfig, MCPExternalAuthConfig, MCPGroup, MCPOIDCConfig, MCPTelemetryConfig,
        MCPToolConfig, OutgoingAuthSource, VirtualMCPCompositeToolDefinition, VirtualMCPServer,
        VirtualMCPServerSpec,
    },
    refs::SecretKeyRef,
    vmcp,
    workload::SessionProvider,
};
use skep_config::objects;
use skep_world::{ReadError, Reader, Watched};

use super::{
    backends::{Member, members},
    findings::{Found, findings},
    ways::{Ways, ways},
};
use crate::{
    build::Identity,
    facts::{ConfigFacts, DeploymentFacts, PodFacts},
    parts,
    proxied::{LivePod, live_config, live_pods},
    reference::{Reference, object},
    settings::Settings,
    watched::{
        AuthzConfigs, CompositeTools, ConfigMaps, CustomResource, Deployments, EmbeddingServers,
        ExternalAuthConfigs, Groups, OidcConfigs, Secrets, TelemetryConfigs, ToolConfigs, VirtualServers,
    },
};

/// The label `app` of virtual MCP servers.
const APP: &str = "virtualmcpserver";

type References<K> = BTreeMap<String, Reference<K>>;

/// What was found.
pub struct Inputs {
    pub(super) object: Arc<VirtualMCPServer>,
    pub(super) identity: Identity,
    pub(super) settings: Arc<Settings>,
    pub(super) group: Reference<MCPGroup>,
    /// The group's members: MCPServers, then MCPRemoteProxies, then MCPServerEntries, each sorted by name.
    pub(super) members: Vec<Member>,
    pub(super) oidc: Option<Reference<MCPOIDCConfig>>,
    pub(super) authz: Option<Reference<MCPAuthzConfig>>,
    pub(super) telemetry: Option<Reference<MCPTelemetryConfig>>,
    pub(super) embedding: Option<Reference<EmbeddingServer>>,
    /// In the order in which they are named.
    pub(super) composite_tools: Vec<Reference<VirtualMCPCompositeToolDefinition>>,
    pub(super) tool_configs: References<MCPToolConfig>,
    /// Those that the object names, and those that members name.
    pub(super) external_auths: References<MCPExternalAuthConfig>,
    /// The ConfigMap with policies, if the object names one, with its data if it is there.
    pub(super) policies: Option<Arc<BTreeMap<String, String>>>,
    /// The Secrets that the pods need, with their keys. One that is not there has none.
    secrets: HashMap<String, Option<Arc<Vec<String>>>>,
    pub(super) deployment: Option<DeploymentFacts>,
    /// The ConfigMap with the server's configuration.
    pub(super) live_config: Option<Arc<ConfigFacts>>,
    pub(super) pods: Vec<LivePod>,
    /// How the server authenticates to its backends.
    pub(super) ways: Ways,
    /// What all of this amounts to.
    pub(super) found: Found,
}

impl Inputs {
    pub(super) async fn resolve(
        object: Arc<VirtualMCPServer>,
        settings: Arc<Settings>,
        reader: &mut Reader,
    ) -> Result<Self, ReadError> {
        let identity = Identity::new(VirtualServers::KIND, APP, &object.metadata);
        let (name, spec) = (identity.name.clone(), &object.spec);
        macro_rules! follow {
            ($reference:expr, $kind:ty) => {
                $reference.as_ref().map(|reference| Reference::follow::<$kind>(reader, &reference.name))
            };
        }
        let members = members(reader, &spec.group_ref.name);
        let composite = spec.config.iter().flat_map(|config| &config.composite_tool_refs);
        let mut inputs = Self {
            group: Reference::follow::<Groups>(reader, &spec.group_ref.name),
            oidc: follow!(spec.incoming_auth.oidc_config_ref, OidcConfigs),
            authz: follow!(spec.incoming_auth.authz_config_ref, AuthzConfigs),
            telemetry: follow!(spec.telemetry_config_ref, TelemetryConfigs),
            embedding: follow!(spec.embedding_server_ref, EmbeddingServers),
            composite_tools: composite
                .map(|reference| Reference::follow::<CompositeTools>(reader, &reference.name))
                .collect(),
            tool_configs: follow_all::<ToolConfigs>(reader, tool_configs(spec)),
            external_auths: follow_all::<ExternalAuthConfigs>(reader, external_auths(spec, &members)),
            policies: None,
            secrets: HashMap::new(),
            deployment: reader.get::<Deployments>(&name).map(|entry| entry.kept.facts),
            live_config: live_config(reader, &objects::vmcp_config(&name)),
            pods: live_pods(reader, &PodFacts::proxy(APP, &name)),
            ways: Ways::default(),
            found: Found::default(),
            members,
            identity,
            settings,
            object: object.clone(),
        };
        let policies = inputs.spec().incoming_auth.authz_config.as_ref();
        if let Some(source) = policies.and_then(|policies| policies.config_map.as_ref()) {
            inputs.policies = reader.content::<ConfigMaps>(&source.name).await?;
        }
        for name in inputs.secret_names() {
            let keys = reader.content::<Secrets>(&name).await?;
            inputs.secrets.insert(name, keys);
        }
        inputs.ways = ways(&inputs);
        inputs.found = findings(&inputs);
        Ok(inputs)
    }

    pub(super) fn spec(&self) -> &VirtualMCPServerSpec {
        &self.object.spec
    }

    /// What the object says of the serving itself.
    pub(super) fn config(&self) -> vmcp::Config {
        self.spec().config.clone().unwrap_or_default()
    }

    pub(super) fn generation(&self) -> i64 {
        self.object.metadata.generation.unwrap_or_default()
    }

    pub(super) fn auth_server(&self) -> Option<&EmbeddedAuthServer> {
        self.spec().auth_server_config.as_ref()
    }

    /// Whether the server is told its backends, or looks for them itself.
    pub(super) fn source(&self) -> OutgoingAuthSource {
        self.spec().outgoing_auth.as_ref().and_then(|auth| auth.source).unwrap_or_default()
    }

    /// The name of the Service in front of the server.
    pub(super) fn service(&self) -> String {
        format!("vmcp-{}", self.identity.name)
    }

    /// The ServiceAccount that is made for the server, and the Role that it has.
    pub(super) fn account(&self) -> String {
        format!("{}-vmcp", self.identity.name)
    }

    /// The Secret key with the password of Redis. What the object says of sessions stands alone.
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

    /// What must be done so that a Secret key is there, if it is not.
    pub(super) fn missing(&self, secret: &SecretKeyRef) -> Option<String> {
        let SecretKeyRef { name, key } = secret;
        match self.secrets.get(name) {
            Some(Some(keys)) if keys.contains(key) => None,
            Some(Some(_)) => Some(format!("the Secret {name} has no key {key}: add it")),
            _ => Some(format!("there is no Secret {name}: create it with the key {key}")),
        }
    }

    /// The Secret keys without which the pods do not start, each with the field that asks for it.
    pub(super) fn required_secrets(&self) -> Vec<(String, &SecretKeyRef)> {
        let oidc = object(&self.oidc).map(|oidc| parts::oidc::secrets(&oidc.spec)).unwrap_or_default();
        let oidc = oidc.into_iter().map(|secret| ("incomingAuth.oidcConfigRef".to_owned(), secret));
        let server = self.auth_server().map(parts::auth_server::secrets).unwrap_or_default();
        let server = server.into_iter().map(|(field, secret)| (format!("authServerConfig.{field}"), secret));
        let password = self.redis_password().map(|secret| ("sessionStorage.passwordRef".to_owned(), secret));
        oidc.chain(server).chain(password).collect()
    }

    fn secret_names(&self) -> Vec<String> {
        let required = self.required_secrets().into_iter().map(|(_, secret)| secret);
        let auths =
            self.external_auths.values().filter_map(|auth| Some((auth.name.as_str(), auth.object()?)));
        let auths = auths
            .flat_map(|(name, auth)| parts::strategy::variables(name, &auth.spec).map(|(_, secret)| secret));
        let headers = self.members.iter().filter_map(Member::entry);
        let headers = headers
            .flat_map(|(name, entry)| parts::entry::secrets(name, &entry.spec).map(|(_, secret)| secret));
        let mut names: Vec<String> =
            required.chain(auths).chain(headers).map(|secret| secret.name.clone()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

fn follow_all<'a, W>(reader: &mut Reader, names: impl Iterator<Item = &'a str>) -> References<W::Object>
where
    W: CustomResource,
{
    names.map(|name| (name.to_owned(), Reference::follow::<W>(reader, name))).collect()
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
    let own = own.filter_map(|way| Some(way.external_auth_config_ref.as_ref()?.name.as_str()));
    own.chain(members.iter().filter_map(Member::external_auth)).filter(|name| !name.is_empty())
}
