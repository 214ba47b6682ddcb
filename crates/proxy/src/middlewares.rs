//! The middlewares of a proxy, by its RunConfig.

use std::net::IpAddr;

use skep_config::{
    RunConfig,
    run_config::{Middleware, Origin},
};

use crate::ConfigError;

/// The middlewares that the RunConfig lists or describes, outermost first.
pub(crate) fn middlewares(config: &RunConfig) -> Result<Vec<Middleware>, ConfigError> {
    let listed = config.middleware().map_err(|error| ConfigError::new(error.to_string()))?;
    let has_origins = listed.iter().any(|middleware| matches!(middleware, Middleware::Origin(_)));
    let origins = origins(config).filter(|_| !has_origins);
    Ok(origins.into_iter().chain(listed).collect())
}

/// The allowed origins, where the RunConfig names them or the proxy listens on loopback only: then those of this
/// machine, or any page that its user opens could call the proxy. Without a port their origins are unknown.
fn origins(config: &RunConfig) -> Option<Middleware> {
    let mut allowed_origins = config.allowed_origins.clone();
    if allowed_origins.is_empty() && is_loopback(&config.host) && config.port != 0 {
        let hosts = ["localhost", "127.0.0.1", "[::1]"];
        allowed_origins = hosts.map(|host| format!("http://{host}:{}", config.port)).into();
    }
    (!allowed_origins.is_empty()).then_some(Middleware::Origin(Origin { allowed_origins }))
}

/// Whether only this machine reaches the host. An empty one means this machine, too.
fn is_loopback(host: &str) -> bool {
    let address: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    host.is_empty() || host == "localhost" || address.is_some_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_other_origins_cannot_call_a_proxy_on_loopback() {
        let origins = |host: &str, allowed: &[&str]| {
            let allowed_origins = allowed.iter().map(|origin| (*origin).to_owned()).collect();
            let config = RunConfig { host: host.into(), port: 80, allowed_origins, ..RunConfig::default() };
            match origins(&config) {
                Some(Middleware::Origin(origins)) => origins.allowed_origins,
                _ => Vec::new(),
            }
        };
        let own = ["http://localhost:80", "http://127.0.0.1:80", "http://[::1]:80"];
        for host in ["", "localhost", "127.0.0.1", "::1", "[::1]"] {
            assert_eq!(origins(host, &[]), own, "{host}");
        }
        assert!(origins("0.0.0.0", &[]).is_empty());
        assert_eq!(origins("0.0.0.0", &["https://a.example"]), ["https://a.example"]);
    }
}
