//! The file that tells an MCPServer's proxy what to do.

use std::collections::BTreeMap;

use skep_api::{
    auth_server::EmbeddedAuthServer,
    kinds::{ExternalAuthType, MCPExternalAuthConfig, PermissionProfileType, ProxyMode, Transport},
    rate_limit::{RateLimitBucket, RateLimiting},
    workload::SessionProvider,
};
use skep_config::{
    RunConfig, env, labels, paths,
    run_config::{self, Audit, Oidc, PermissionProfile, RateLimits, Scaling, SessionRedis},
};

use super::inputs::Inputs;
use crate::{
    driver::Blocked,
    parts::{self, external_auth::ExternalAuth},
    reference::object,
};

/// The RunConfig of the proxy.
pub(super) fn run_config(inputs: &Inputs) -> Result<RunConfig, Blocked> {
    let spec = inputs.spec();
    let identity = &inputs.identity;
    let transport = transport(spec.transport());
    let mcp_port = port(spec.mcp_port());
    let mut config = RunConfig {
        mcpserver_generation: inputs.generation(),
        image: spec.image.clone(),
        cmd_args: spec.args.clone(),
        name: identity.name.clone(),
        container_name: identity.name.clone(),
        base_name: identity.name.clone(),
        transport,
        host: inputs.settings.proxy_host.clone(),
        port: port(spec.proxy_port()),
        target_port: mcp_port,
        proxy_mode: Some(proxy_mode(inputs)),
        env_vars: env_vars(inputs),
        volumes: volumes(inputs),
        container_labels: container_labels(inputs),
        trust_proxy_headers: spec.trust_proxy_headers.unwrap_or_default(),
        endpoint_prefix: spec.endpoint_prefix.clone().unwrap_or_default(),
        scaling_config: scaling(inputs),
        ..RunConfig::default()
    };
    permissions(inputs, &mut config)?;
    config.oidc_config = oidc(inputs);
    if let Some(server) = auth_server(inputs) {
        let server = parts::auth_server::auth_server(server, config.oidc_config.as_ref(), identity);
        let server = server.map_err(Blocked::new)?;
        if let Some(oidc) = &mut config.oidc_config {
            parts::auth_server::announce_scopes(&server, oidc);
        }
        config.embedded_auth_server_config = Some(server);
    }
    if let Some(oidc) = &config.oidc_config {
        config.thv_ca_bundle.clone_from(&oidc.ca_cert_path);
        config.jwks_auth_token_file.clone_from(&oidc.auth_token_file);
    }
    config.authz_config = authz(inputs)?;
    if spec.audit.as_ref().and_then(|audit| audit.enabled).unwrap_or_default() {
        config.audit_config = Some(Audit::standard());
    }
    if let (Some(reference), Some(telemetry)) = (&spec.telemetry_config_ref, object(&inputs.telemetry)) {
        config.telemetry_config = Some(parts::telemetry::telemetry(&telemetry.spec, reference, identity));
    }
    if let Some(auth) = object(&inputs.external_auth) {
        match parts::external_auth::external_auth(&auth.spec).map_err(Blocked::new)? {
            ExternalAuth::TokenExchange(exchange) => config.token_exchange_config = Some(exchange),
            ExternalAuth::RemoteAuth(remote) => config.remote_auth_config = Some(*remote),
            ExternalAuth::AwsSts(_) => {
                let message = "externalAuthConfigRef: awsSts signs requests to a remote server, and an MCPServer has none: use an MCPRemoteProxy";
                return Err(Blocked::new(message));
            }
            ExternalAuth::AuthServer(_) | ExternalAuth::Nothing => {}
        }
    }
    if let Some(limits) = &spec.rate_limiting {
        config.rate_limit_config = Some(rate_limits(limits)?);
        config.rate_limit_namespace.clone_from(&identity.namespace);
    }
    if let Some(tools) = object(&inputs.tools) {
        config.tools_filter = parts::tools::tools_filter(&tools.spec);
        config.tools_override = parts::tools::tools_override(&tools.spec);
    }
    if let Some(webhooks) = object(&inputs.webhooks) {
        config.validating_webhooks = parts::webhooks::validating(&webhooks.spec);
        config.mutating_webhooks = parts::webhooks::mutating(&webhooks.spec);
    }
    config.middleware_configs = parts::middleware::middleware(&config).map_err(Blocked::new)?;
    Ok(config)
}

/// Whose tokens the proxy accepts.
pub(super) fn oidc(inputs: &Inputs) -> Option<Oidc> {
    let spec = inputs.spec();
    let (reference, config) = (spec.oidc_config_ref.as_ref()?, object(&inputs.oidc)?);
    Some(parts::oidc::oidc(&config.spec, reference, &inputs.identity, spec.proxy_port()))
}

/// The authorization server to run, by whichever reference names one.
pub(super) fn auth_server(inputs: &Inputs) -> Option<&EmbeddedAuthServer> {
    [&inputs.auth_server, &inputs.external_auth].into_iter().find_map(|auth| embedded_server(object(auth)?))
}

/// The authorization server that the object describes.
pub(super) fn embedded_server(auth: &MCPExternalAuthConfig) -> Option<&EmbeddedAuthServer> {
    let server = auth.spec.embedded_auth_server.as_ref();
    server.filter(|_| auth.spec.type_ == ExternalAuthType::EmbeddedAuthServer)
}

fn transport(transport: Transport) -> run_config::Transport {
    match transport {
        Transport::Stdio => run_config::Transport::Stdio,
        Transport::StreamableHttp => run_config::Transport::StreamableHttp,
        Transport::Sse => run_config::Transport::Sse,
    }
}

fn proxy_mode(inputs: &Inputs) -> run_config::ProxyMode {
    let spec = inputs.spec();
    match (spec.transport(), spec.proxy_mode()) {
        (Transport::Stdio, ProxyMode::Sse) | (Transport::Sse, _) => run_config::ProxyMode::Sse,
        (Transport::Stdio, ProxyMode::StreamableHttp) | (Transport::StreamableHttp, _) => {
            run_config::ProxyMode::StreamableHttp
        }
    }
}

/// The API allows no other numbers.
fn port(port: i32) -> u16 {
    port.try_into().unwrap_or_default()
}

/// The server's own variables, with those that tell it how it is spoken to.
fn env_vars(inputs: &Inputs) -> BTreeMap<String, String> {
    let spec = inputs.spec();
    let users = spec.env.iter().map(|variable| (variable.name.clone(), variable.value.clone()));
    let mut all: BTreeMap<String, String> = users.collect();
    all.insert(env::MCP_TRANSPORT.into(), spec.transport().as_str().into());
    if spec.transport() != Transport::Stdio {
        for name in [env::MCP_PORT, env::FASTMCP_PORT] {
            all.insert(name.into(), spec.mcp_port().to_string());
        }
    }
    all
}

fn volumes(inputs: &Inputs) -> Vec<String> {
    let volumes = inputs.spec().volumes.iter();
    volumes
        .map(|volume| {
            let mode = if volume.read_only.unwrap_or_default() { ":ro" } else { "" };
            format!("{}:{}{mode}", volume.host_path, volume.mount_path)
        })
        .collect()
}

fn container_labels(inputs: &Inputs) -> BTreeMap<String, String> {
    let (name, spec) = (&inputs.identity.name, inputs.spec());
    BTreeMap::from([
        (labels::TOOLHIVE.to_owned(), labels::TRUE.to_owned()),
        (labels::NAME.to_owned(), name.clone()),
        (labels::BASE_NAME.to_owned(), name.clone()),
        (labels::TRANSPORT.to_owned(), spec.transport().as_str().to_owned()),
        (labels::PORT.to_owned(), spec.proxy_port().to_string()),
    ])
}

/// The permissions, with what the volumes need added to them.
fn permissions(inputs: &Inputs, config: &mut RunConfig) -> Result<(), Blocked> {
    let spec = inputs.spec();
    let mut profile = match &spec.permission_profile {
        None => PermissionProfile::network(),
        Some(profile) if profile.type_.unwrap_or_default() == PermissionProfileType::ConfigMap => {
            let key = profile.key.as_deref().unwrap_or_default();
            config.permission_profile_name_or_path = format!("{}/{key}", paths::PROFILES_FOLDER);
            PermissionProfile::network()
        }
        Some(profile) => {
            config.permission_profile_name_or_path.clone_from(&profile.name);
            match profile.name.as_str() {
                "network" => PermissionProfile::network(),
                "none" => PermissionProfile::none(),
                other => {
                    let message = format!(
                        "permissionProfile.name: there is no built-in profile {other}: use none or network"
                    );
                    return Err(Blocked::new(message));
                }
            }
        }
    };
    for volume in &spec.volumes {
        let mount = format!("{}:{}", volume.host_path, volume.mount_path);
        if volume.read_only.unwrap_or_default() {
            profile.read.push(mount)
        } else {
            profile.write.push(mount)
        }
    }
    config.permission_profile = Some(profile);
    Ok(())
}

fn authz(inputs: &Inputs) -> Result<Option<skep_config::Json>, Blocked> {
    if let Some(authz) = object(&inputs.authz) {
        return parts::authz::document(&authz.spec).map(Some).map_err(Blocked::new);
    }
    let Some(authz) = &inputs.spec().authz_config else { return Ok(None) };
    if authz.inline.is_some() {
        return parts::authz::inline_document(authz).map(Some).map_err(Blocked::new);
    }
    let Some(source) = &authz.config_map else { return Ok(None) };
    let data = inputs.config_maps.get(&source.name).and_then(Option::as_ref);
    let Some(data) = data else {
        let message = format!("authzConfig.configMap: there is no ConfigMap {}: create it", source.name);
        return Err(Blocked::new(message));
    };
    let Some(text) = data.get(source.key()) else {
        let message =
            format!("authzConfig.configMap: the ConfigMap {} has no key {}", source.name, source.key());
        return Err(Blocked::new(message));
    };
    parts::authz::config_map_document(authz, text).map(Some).map_err(Blocked::new)
}

fn rate_limits(limits: &RateLimiting) -> Result<RateLimits, Blocked> {
    let tools = limits.tools.iter().map(|tool| {
        Ok(run_config::ToolRateLimit {
            name: tool.name.clone(),
            shared: bucket(tool.shared.as_ref())?,
            per_user: bucket(tool.per_user.as_ref())?,
        })
    });
    Ok(RateLimits {
        shared: bucket(limits.shared.as_ref())?,
        per_user: bucket(limits.per_user.as_ref())?,
        tools: tools.collect::<Result<_, Blocked>>()?,
    })
}

fn bucket(bucket: Option<&RateLimitBucket>) -> Result<Option<run_config::RateLimitBucket>, Blocked> {
    let Some(bucket) = bucket else { return Ok(None) };
    let refill_period =
        bucket.refill_period.to_std().map_err(|error| Blocked::new(format!("rateLimiting: {error}")))?;
    if refill_period.is_zero() {
        return Err(Blocked::new("rateLimiting: refillPeriod must be more than zero, for example 1m"));
    }
    Ok(Some(run_config::RateLimitBucket {
        max_tokens: bucket.max_tokens.try_into().unwrap_or_default(),
        refill_period,
    }))
}

fn scaling(inputs: &Inputs) -> Option<Scaling> {
    let spec = inputs.spec();
    let redis = spec.session_storage.as_ref().filter(|storage| storage.provider == SessionProvider::Redis);
    let session_redis = match redis {
        Some(storage) => Some(SessionRedis {
            address: storage.address.clone().unwrap_or_default(),
            db: storage.db.unwrap_or_default(),
            key_prefix: storage.key_prefix.clone().unwrap_or_default(),
        }),
        // Sessions that are to stay in memory do; those of which nothing is said go to the installation's Redis.
        None if spec.session_storage.is_some() => None,
        None => inputs
            .settings
            .default_redis
            .clone()
            .map(|address| SessionRedis { address, ..SessionRedis::default() }),
    };
    let backend_replicas = spec.backend_replicas;
    (session_redis.is_some() || backend_replicas.is_some())
        .then_some(Scaling { backend_replicas, session_redis })
}
