//! Paths at which the operator mounts files for the proxy.

/// The folder of the RunConfig file.
pub const RUN_CONFIG_FOLDER: &str = "/etc/runconfig";
/// The name of the RunConfig file, and its key in the ConfigMap.
pub const RUN_CONFIG_FILE: &str = "runconfig.json";
/// The paths at which a proxy searches for its RunConfig file. The first that exists is used.
pub const RUN_CONFIG_SEARCH: [&str; 3] =
    ["/etc/runconfig/runconfig.json", "/etc/toolhive/runconfig.json", "./runconfig.json"];

/// The folder of the configuration of a virtual MCP server.
pub const VMCP_CONFIG_FOLDER: &str = "/etc/vmcp-config";
/// The name of that configuration, and its key in the ConfigMap.
pub const VMCP_CONFIG_FILE: &str = "config.yaml";
/// The name of the configuration of its authorization server, and its key in the ConfigMap.
pub const VMCP_AUTH_SERVER_FILE: &str = "authserver-config.yaml";

/// The files in the ConfigMaps with the configuration of pods.
pub const CONFIG_FILES: [&str; 3] = [RUN_CONFIG_FILE, VMCP_CONFIG_FILE, VMCP_AUTH_SERVER_FILE];

/// The folder of certificate authorities of external servers, with one folder for each MCPServerEntry.
pub const ENTRY_CERTS_FOLDER: &str = "/etc/toolhive/ca-bundles";

/// The folder of authorization policies.
pub const AUTHZ_FOLDER: &str = "/etc/toolhive/authz";
/// The name of the file with authorization policies, and its default key in a ConfigMap.
pub const AUTHZ_FILE: &str = "authz.json";
/// The folder of permission profiles.
pub const PROFILES_FOLDER: &str = "/etc/toolhive/profiles";
/// The folder of the keys and certificates for webhooks, with one folder for each secret.
pub const WEBHOOKS_FOLDER: &str = "/etc/toolhive/webhooks";

/// The folder of certificate authorities for OIDC, with one folder for each ConfigMap.
pub const CERTS_FOLDER: &str = "/config/certs";
/// The folder of certificate authorities for telemetry, with one folder for each ConfigMap.
pub const OTEL_CERTS_FOLDER: &str = "/config/certs/otel";
/// The default key of a certificate authority in a ConfigMap.
pub const CA_FILE: &str = "ca.crt";

/// The certificate authority of the cluster, as Kubernetes mounts it into every pod.
pub const CLUSTER_CA: &str = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
/// The token of a pod's own service account.
pub const CLUSTER_TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";
/// The namespace of a pod's own service account.
pub const CLUSTER_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// The folder of an authorization server's signing keys.
pub const SIGNING_KEYS_FOLDER: &str = "/etc/toolhive/authserver/keys";
/// The folder of the secrets with which it authenticates codes and refresh tokens.
pub const HMAC_FOLDER: &str = "/etc/toolhive/authserver/hmac";
/// The certificate authority of its Redis.
pub const REDIS_CA: &str = "/etc/toolhive/authserver/redis-tls/ca.crt";
/// The certificate authority of the Sentinels of its Redis.
pub const REDIS_SENTINEL_CA: &str = "/etc/toolhive/authserver/redis-tls/sentinel-ca.crt";
/// The key that encrypts tokens in the authorization server's Redis.
pub const REDIS_ENCRYPTION_KEY: &str = "/etc/toolhive/authserver/redis-encryption/key";

/// The file of a signing key within [`SIGNING_KEYS_FOLDER`]. The first one signs.
pub fn signing_key_file(index: usize) -> String {
    format!("key-{index}.pem")
}

/// The path of such a secret. The first one is current.
pub fn hmac_secret(index: usize) -> String {
    format!("{HMAC_FOLDER}/hmac-{index}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mounted_file_is_searched_first() {
        assert_eq!(RUN_CONFIG_SEARCH[0], format!("{RUN_CONFIG_FOLDER}/{RUN_CONFIG_FILE}"));
    }
}
