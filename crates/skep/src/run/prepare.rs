//! From a plan to a RunConfig for this machine.

use std::collections::BTreeMap;

use serde_json::Value;
use skep_config::{
    RunConfig, env,
    run_config::{Middleware, RateLimit},
};
use skep_proxy::{Overrides, load};

use super::{
    auth_server::{self, Addresses, replace_texts},
    expansion::expanded,
    folder::Folder,
    plan::Server,
};

/// The name of the RunConfig within its folder.
const FILE: &str = "/runconfig.json";

/// The RunConfig as in a pod: with its files in the folder, and secrets from the variables of its proxy.
pub(super) fn prepare(
    server: &Server,
    folder: &Folder,
    port: u16,
    target_port: u16,
) -> Result<RunConfig, String> {
    let unwritable = |error| format!("cannot write to {}: {error}", folder.path().display());
    for (path, content) in &server.files {
        folder.write(path, content).map_err(unwritable)?;
    }
    for (path, content) in server.image.iter().flat_map(|image| &image.files) {
        // The server runs as another user.
        folder.write_for_others(&of_container(path), content).map_err(unwritable)?;
    }
    let config = RunConfig { port, ..server.config.clone() };
    let text = config.render().map_err(|error| error.to_string())?;
    let mut value: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let addresses = config.embedded_auth_server_config.as_ref().map(|issuer| Addresses::new(issuer, port));
    replace_texts(&mut value, &|text| {
        moved(text, server, folder, port).or_else(|| addresses.as_ref()?.here(text))
    });
    folder.write(FILE, value.to_string().as_bytes()).map_err(unwritable)?;
    let env = known(&server.env)?;
    // The image of the command line overrides that of the file.
    let overrides = Overrides { env, image: server.config.image.clone(), ..Overrides::default() };
    let mut config = load(&[&folder.place(FILE)], &overrides).map_err(|error| error.to_string())?;
    add_secrets(&mut config, &overrides.env);
    if let (Some(issuer), Some(addresses)) = (&mut config.embedded_auth_server_config, &addresses) {
        *issuer = auth_server::local(issuer, addresses, &overrides.env, folder)?;
    }
    keep_in_memory(&mut config);
    if server.listens() {
        config.target_host = "127.0.0.1".into();
        config.target_port = target_port;
        // A container has its own ports.
        let own_port = server.image.as_ref().map_or(target_port, |image| image.port);
        for name in [env::MCP_PORT, env::FASTMCP_PORT] {
            config.env_vars.insert(name.into(), own_port.to_string());
        }
    }
    for word in &mut config.cmd_args {
        *word = expanded(word, &config.env_vars);
    }
    Ok(config)
}

/// The path of a file of the server's container within the folder, separate from those of the proxy.
pub(super) fn of_container(path: &str) -> String {
    format!("/container{path}")
}

/// The local equivalent of a path of the pod, or of the proxy's URL in the cluster.
fn moved(text: &str, server: &Server, folder: &Folder, port: u16) -> Option<String> {
    let is_folder = |file: &String| file.strip_prefix(text).is_some_and(|rest| rest.starts_with('/'));
    if server.files.contains_key(text) || (text.starts_with("/etc/") && server.files.keys().any(is_folder)) {
        return Some(folder.place(text).to_string_lossy().into_owned());
    }
    (text == server.cluster_origin).then(|| format!("http://127.0.0.1:{port}"))
}

/// The proxies share one environment here, so a proxy cannot read secrets from its own.
fn known(variables: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>, String> {
    let lost = |name: &str| name.starts_with(env::OTEL_HEADER_PREFIX);
    match variables.keys().find(|name| lost(name)) {
        Some(name) => {
            Err(format!("the secret in the proxy's variable {name} works only in a cluster, for now"))
        }
        None => Ok(variables.clone()),
    }
}

/// Each server has one proxy, which shares sessions and rate limits with no other. So no Redis is needed.
fn keep_in_memory(config: &mut RunConfig) {
    config.scaling_config = None;
    for middleware in &mut config.middleware_configs {
        if let Middleware::RateLimit(limits) = middleware {
            limits.redis_addr = RateLimit::IN_MEMORY.into();
        }
    }
}

/// Adds secrets that a pod has in its environment.
fn add_secrets(config: &mut RunConfig, env: &BTreeMap<String, String>) {
    let value = |name: &str| env.get(name).cloned().unwrap_or_default();
    let (oidc, exchange) = (value(env::OIDC_CLIENT_SECRET), value(env::TOKEN_EXCHANGE_CLIENT_SECRET));
    for middleware in &mut config.middleware_configs {
        match middleware {
            Middleware::Auth(auth) => {
                if let Some(config) = &mut auth.oidc_config {
                    config.client_secret.clone_from(&oidc);
                }
            }
            Middleware::TokenExchange(parameters) => {
                parameters.token_exchange_config.client_secret.clone_from(&exchange);
            }
            _ => {}
        }
    }
}
