//! What a server's process has of the proxy's environment.

use std::ffi::OsStr;

/// What any program needs.
const NAMES: [&str; 9] = ["HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"];

/// What requests to other hosts need: egress proxies, in upper or lower case, and certificate authorities of a company.
const NETWORK: [&str; 10] = [
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "NODE_USE_SYSTEM_CA",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
];

/// What npx and uvx are configured by: registries, caches, and how they are reached. In upper or lower case.
const PREFIXES: [&str; 4] = ["NPM_CONFIG_", "PIP_", "UV_", "XDG_"];

/// Whether a process gets this variable. The proxy has others with secrets that are not for the server.
pub(super) fn is_inherited(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let upper = name.to_ascii_uppercase();
    NAMES.contains(&name)
        || NETWORK.contains(&upper.as_str())
        || PREFIXES.iter().any(|prefix| upper.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_gets_what_it_needs_to_fetch_its_package_and_no_secrets() {
        for (name, expected) in [
            ("PATH", true),
            ("HTTPS_PROXY", true),
            ("no_proxy", true),
            ("NODE_EXTRA_CA_CERTS", true),
            ("npm_config_registry", true),
            ("NPM_CONFIG_CACHE", true),
            ("UV_INDEX_URL", true),
            ("XDG_CACHE_HOME", true),
            ("path", false),
            ("GITHUB_TOKEN", false),
            ("TOOLHIVE_OIDC_CLIENT_SECRET", false),
            ("AWS_SECRET_ACCESS_KEY", false),
        ] {
            assert_eq!(is_inherited(OsStr::new(name)), expected, "{name}");
        }
    }
}
