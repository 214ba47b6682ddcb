//! The pod that a process runs in.

use std::{collections::BTreeMap, fs};

use skep_config::{paths, run_config::Oidc};

/// The pod that a process runs in, with the files that Kubernetes mounts into every pod.
pub(crate) struct Pod {
    /// The address of the API server.
    pub(crate) api_server: String,
    pub(crate) namespace: String,
}

impl Pod {
    /// The pod of a process with these variables. `None`: it runs in none.
    pub(crate) fn of_environment(variables: &BTreeMap<String, String>) -> Result<Option<Self>, String> {
        let text = |name: &str| variables.get(name).map(String::as_str).filter(|value| !value.is_empty());
        let Some(host) = text("KUBERNETES_SERVICE_HOST") else { return Ok(None) };
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let port = text("KUBERNETES_SERVICE_PORT").unwrap_or("443");
        let namespace = fs::read_to_string(paths::CLUSTER_NAMESPACE)
            .map_err(|error| format!("{}: {error}", paths::CLUSTER_NAMESPACE))?;
        let api_server = format!("https://{host}:{port}");
        Ok(Some(Self { api_server, namespace: namespace.trim().to_owned() }))
    }

    /// How tokens of ServiceAccounts with this audience are verified.
    pub(crate) fn tokens_for(&self, audience: String) -> Oidc {
        Oidc {
            // The issuer has many names. Only the API server signs with these keys, and only for ServiceAccounts.
            audience,
            jwks_url: format!("{}/openid/v1/jwks", self.api_server),
            ca_cert_path: paths::CLUSTER_CA.into(),
            auth_token_file: paths::CLUSTER_TOKEN.into(),
            allow_private_ip: true,
            ..Oidc::default()
        }
    }
}
