//! What the person who installs the operator decides for all objects.

use std::collections::BTreeMap;

use skep_api::refs::SecretKeyRef;
use skep_config::env::{CALLS_READER, OPENSHIFT};
use skep_converge::Restores;

/// The default image of proxies and of virtual MCP servers.
pub const DEFAULT_PROXY_IMAGE: &str = concat!("ghcr.io/skep-mcp/skep:", env!("CARGO_PKG_VERSION"));

/// The default image of registry servers.
pub const DEFAULT_REGISTRY_IMAGE: &str = "ghcr.io/stacklok/thv-registry-api:latest";

/// The settings of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The image of the proxies.
    pub proxy_image: String,
    /// The image of virtual MCP servers.
    pub vmcp_image: String,
    /// The image of the registry servers.
    pub registry_image: String,
    /// The address that proxies listen on.
    pub proxy_host: String,
    /// Secrets with which every pod's image is pulled, after those that the object names.
    pub pull_secrets: Vec<String>,
    /// The Redis of servers that name none.
    pub default_redis: Option<String>,
    /// The password of that Redis, if it requires one.
    pub default_redis_password: Option<SecretKeyRef>,
    /// Whether the image of the proxies starts fast, so that it is probed without a delay. If not, the delays are
    /// those of ToolHive, and the pods of a cluster that is taken over are not replaced.
    pub quick_proxies: bool,
    /// Whether pods that another operator created are replaced where they differ. If not, they are with the next change
    /// of the spec.
    pub takeover_rollouts: bool,
    /// The ServiceAccount that may read the calls of all proxies and virtual MCP servers: that of the console, as the subject
    /// of its tokens.
    pub calls_reader: Option<String>,
    /// The platform of the cluster, if the installation sets it. If not, it is detected once from the API server, if
    /// there is one.
    pub platform: Option<Platform>,
    /// How often what another writer changes again and again is restored at once. No variable sets it.
    pub restores: Restores,
}

/// What kind of cluster it is: Kubernetes, or one that chooses user ids itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Platform {
    /// Plain Kubernetes.
    #[default]
    Kubernetes,
    /// OpenShift, which gives each namespace its user ids.
    OpenShift,
}

impl Default for Settings {
    fn default() -> Self {
        Self::from_env(&BTreeMap::new())
    }
}

impl Settings {
    /// The settings that environment variables give, by the names that charts for this API set.
    pub fn from_env(env: &BTreeMap<String, String>) -> Self {
        let text = |name: &str| env.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
        let list =
            |name| text(name).unwrap_or_default().split(',').map(str::trim).filter(|item| !item.is_empty());
        let is_true = |name| text(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
        Self {
            proxy_image: text("TOOLHIVE_RUNNER_IMAGE").unwrap_or(DEFAULT_PROXY_IMAGE).into(),
            vmcp_image: text("VMCP_IMAGE").unwrap_or(DEFAULT_PROXY_IMAGE).into(),
            registry_image: text("TOOLHIVE_REGISTRY_API_IMAGE").unwrap_or(DEFAULT_REGISTRY_IMAGE).into(),
            proxy_host: text("TOOLHIVE_PROXY_HOST").unwrap_or("0.0.0.0").into(),
            pull_secrets: list("TOOLHIVE_DEFAULT_IMAGE_PULL_SECRETS").map(Into::into).collect(),
            default_redis: text("TOOLHIVE_DEFAULT_REDIS_ADDR").map(Into::into),
            default_redis_password: text("TOOLHIVE_DEFAULT_REDIS_SECRET_NAME").map(|name| SecretKeyRef {
                name: name.into(),
                key: text("TOOLHIVE_DEFAULT_REDIS_SECRET_KEY").unwrap_or("redis-password").into(),
            }),
            quick_proxies: is_true("SKEP_QUICK_PROXIES"),
            takeover_rollouts: is_true("SKEP_TAKEOVER_ROLLOUTS"),
            calls_reader: text(CALLS_READER).map(Into::into),
            // An existing variable decides, even if empty.
            platform: env.contains_key(OPENSHIFT).then(|| match is_true(OPENSHIFT) {
                true => Platform::OpenShift,
                false => Platform::Kubernetes,
            }),
            restores: Restores::default(),
        }
    }

    /// The platform of the cluster. The default, before detection, is plain Kubernetes.
    pub(crate) fn platform(&self) -> Platform {
        self.platform.unwrap_or_default()
    }
}
