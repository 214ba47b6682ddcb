//! Environment variables that the operator sets and the proxy reads.

/// The generation of the MCPServer that a proxy was started for. It overrides that of the RunConfig file, which is
/// mounted live and may already be of a newer one.
pub const MCPSERVER_GENERATION: &str = "THV_MCPSERVER_GENERATION";
/// The password of the Redis that keeps sessions and counts calls.
pub const SESSION_REDIS_PASSWORD: &str = "THV_SESSION_REDIS_PASSWORD";
/// The client secret for introspecting callers' tokens.
pub const OIDC_CLIENT_SECRET: &str = "TOOLHIVE_OIDC_CLIENT_SECRET";
/// The client secret for exchanging callers' tokens.
pub const TOKEN_EXCHANGE_CLIENT_SECRET: &str = "TOOLHIVE_TOKEN_EXCHANGE_CLIENT_SECRET";
/// The user of an authorization server at its Redis.
pub const AUTH_SERVER_REDIS_USERNAME: &str = "TOOLHIVE_AUTH_SERVER_REDIS_USERNAME";
/// The password of an authorization server at its Redis.
pub const AUTH_SERVER_REDIS_PASSWORD: &str = "TOOLHIVE_AUTH_SERVER_REDIS_PASSWORD";
/// The token that clients of an authorization server must present to register.
pub const CLIENT_REGISTRATION_TOKEN: &str = "SKEP_CLIENT_REGISTRATION_TOKEN";

/// The name of the VirtualMCPServer that a virtual MCP server runs for.
pub const VMCP_NAME: &str = "VMCP_NAME";
/// The namespace of that VirtualMCPServer.
pub const VMCP_NAMESPACE: &str = "VMCP_NAMESPACE";
/// The client secret with which a virtual MCP server introspects callers' tokens.
pub const VMCP_OIDC_CLIENT_SECRET: &str = "VMCP_OIDC_CLIENT_SECRET";
/// The secret that the replicas of a virtual MCP server share. What they store of workflows is encrypted with it.
pub const VMCP_SESSION_KEY: &str = "VMCP_SESSION_HMAC_SECRET";

/// The source of the secrets that a proxy's RunConfig names. In a cluster: [`SECRETS_FROM_ENVIRONMENT`].
pub const SECRETS_PROVIDER: &str = "TOOLHIVE_SECRETS_PROVIDER";
/// The [`SECRETS_PROVIDER`] that is the environment: see [`secret`].
pub const SECRETS_FROM_ENVIRONMENT: &str = "environment";
/// The prefix of the variables with such secrets.
pub const SECRET_PREFIX: &str = "TOOLHIVE_SECRET_";

/// Whether the issuer of callers' tokens may be reached over plain HTTP (`true`), whatever the RunConfig says.
pub const INSECURE_DISABLE_URL_VALIDATION: &str = "INSECURE_DISABLE_URL_VALIDATION";
/// Whether the address of the issuer's keys must be configured (`true`): it is not discovered.
pub const SKIP_OIDC_DISCOVERY: &str = "TOOLHIVE_SKIP_OIDC_DISCOVERY";

/// Attributes of the service on all traces and metrics, a standard of OpenTelemetry.
pub const OTEL_RESOURCE_ATTRIBUTES: &str = "OTEL_RESOURCE_ATTRIBUTES";

/// The prefix of the variables with secret headers for the telemetry collector: see [`otel_header`].
pub const OTEL_HEADER_PREFIX: &str = "TOOLHIVE_OTEL_HEADER_";

/// The runtime with which a proxy runs servers. In a cluster: [`KUBERNETES`].
pub const RUNTIME: &str = "TOOLHIVE_RUNTIME";
/// The [`RUNTIME`] that is the cluster the proxy itself runs in.
pub const KUBERNETES: &str = "kubernetes";
/// Whether the cluster is OpenShift, which assigns users and groups itself. Without it, the API server is queried.
pub const OPENSHIFT: &str = "OPERATOR_OPENSHIFT";
/// The namespace of the pod.
pub const POD_NAMESPACE: &str = "POD_NAMESPACE";
/// The ServiceAccount that may read which calls a proxy or a virtual MCP server gets, as a subject of tokens:
/// `system:serviceaccount:NAMESPACE:NAME`. Without it, none are recorded. The operator reads it, too, for all of them.
pub const CALLS_READER: &str = "SKEP_CALLS_READER";
/// Whether a proxy logs more.
pub const DEBUG: &str = "TOOLHIVE_DEBUG";
/// Whether the operator or a proxy logs plain text (`true`) instead of JSON.
pub const UNSTRUCTURED_LOGS: &str = "UNSTRUCTURED_LOGS";
/// A writable folder, for programs that write to the home folder.
pub const HOME: &str = "HOME";
/// A writable folder, for programs that follow the XDG specification.
pub const XDG_CONFIG_HOME: &str = "XDG_CONFIG_HOME";

/// For an MCP server: its transport.
pub const MCP_TRANSPORT: &str = "MCP_TRANSPORT";
/// For an MCP server: the port to listen on.
pub const MCP_PORT: &str = "MCP_PORT";
/// For an MCP server made with FastMCP: the port to listen on.
pub const FASTMCP_PORT: &str = "FASTMCP_PORT";
/// For an MCP server: the address to listen on.
pub const MCP_HOST: &str = "MCP_HOST";

/// The variable that holds the secret of that name.
pub fn secret(name: &str) -> String {
    format!("{SECRET_PREFIX}{name}")
}

/// The name of the secret that is the value of a header, which `owner` adds to requests.
pub fn header_secret(header: &str, owner: &str) -> String {
    format!("HEADER_FORWARD_{}_{}", suffix(header), suffix(owner))
}

/// The variable with the headers that a virtual MCP server adds to requests to an entry.
pub fn entry_headers(entry: &str) -> String {
    format!("TOOLHIVE_HEADER_FORWARD_{}", suffix(entry))
}

/// The variable that holds the client secret of an MCPExternalAuthConfig for exchanging tokens.
pub fn token_exchange_secret(auth: &str) -> String {
    format!("{TOKEN_EXCHANGE_CLIENT_SECRET}_{}", suffix(auth))
}

/// The variable that holds the value of an MCPExternalAuthConfig's header.
pub fn header_injection_value(auth: &str) -> String {
    format!("TOOLHIVE_HEADER_INJECTION_VALUE_{}", suffix(auth))
}

/// The variable that holds the client secret of an MCPExternalAuthConfig at the identity provider.
pub fn xaa_idp_secret(auth: &str) -> String {
    format!("TOOLHIVE_XAA_IDP_CLIENT_SECRET_{}", suffix(auth))
}

/// The variable that holds the client secret of an MCPExternalAuthConfig at another application.
pub fn xaa_target_secret(auth: &str) -> String {
    format!("TOOLHIVE_XAA_TARGET_CLIENT_SECRET_{}", suffix(auth))
}

/// The variable that holds the client secret of an MCPExternalAuthConfig for the on-behalf-of flow.
pub fn obo_secret(auth: &str) -> String {
    format!("TOOLHIVE_OBO_CLIENT_SECRET_{}", suffix(auth))
}

/// The variable that holds a secret header for the telemetry collector.
pub fn otel_header(header: &str) -> String {
    format!("{OTEL_HEADER_PREFIX}{}", suffix(header))
}

/// The variable that holds the client secret of an authorization server at an upstream provider.
pub fn upstream_client_secret(provider: &str) -> String {
    format!("TOOLHIVE_UPSTREAM_CLIENT_SECRET_{}", suffix(provider))
}

/// The variable that holds the token with which an authorization server registers itself at an upstream provider.
pub fn upstream_registration_token(provider: &str) -> String {
    format!("TOOLHIVE_UPSTREAM_DCR_INITIAL_ACCESS_TOKEN_{}", suffix(provider))
}

/// The variable that holds the secret of a delegate client of an authorization server, by its place in the list.
pub fn delegate_client_secret(index: usize) -> String {
    format!("TOOLHIVE_DELEGATE_CLIENT_SECRET_{index}")
}

/// A name in the form of a variable's name.
fn suffix(name: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    name.chars().map(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_parts_of_variables() {
        assert_eq!(upstream_client_secret("corp-idp"), "TOOLHIVE_UPSTREAM_CLIENT_SECRET_CORP_IDP");
        assert_eq!(header_secret("X-Api.Key", "files_2"), "HEADER_FORWARD_X_API_KEY_FILES_2");
        assert_eq!(otel_header("ä"), "TOOLHIVE_OTEL_HEADER__");
    }

    #[test]
    fn a_secret_keeps_its_name() {
        assert_eq!(secret("my-token"), "TOOLHIVE_SECRET_my-token");
    }
}
