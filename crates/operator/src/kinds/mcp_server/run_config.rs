//! The file that tells an MCPServer's proxy what to do.

use std::collections::BTreeMap;

use skep_api::{
    kinds::{PermissionProfileType, ProxyMode, Transport},
    rate_limit::{RateLimitBucket, RateLimiting},
};
use skep_config::{
    RunConfig, env, paths,
    run_config::{self, PermissionProfile, RateLimits, Scaling},
};

use super::inputs::Inputs;
use crate::{driver::Blocked, parts, reference::object};

/// The RunConfig of the proxy.
pub(super) fn run_config(inputs: &Inputs) -> Result<RunConfig, Blocked> {
    let (spec, proxied) = (inputs.spec(), &inputs.proxied);
    let mut config = RunConfig {
        mcpserver_generation: proxied.generation(),
        image: spec.image.clone(),
        cmd_args: spec.args.clone(),
        transport: transport(spec.transport()),
        // The API allows no other numbers.
        target_port: spec.mcp_port().try_into().unwrap_or_default(),
        proxy_mode: Some(proxy_mode(inputs)),
        env_vars: env_vars(inputs),
        volumes: volumes(inputs),
        scaling_config: scaling(inputs),
        ..proxied.run_config(spec.transport().as_str())?
    };
    permissions(inputs, &mut config)?;
    if config.aws_sts_config.is_some() {
        let message = "externalAuthConfigRef: awsSts signs requests to a remote server, and an MCPServer has none: use an MCPRemoteProxy";
        return Err(Blocked::new(message));
    }
    if let Some(limits) = &spec.rate_limiting {
        config.rate_limit_config = Some(rate_limits(limits)?);
        config.rate_limit_namespace.clone_from(&proxied.identity.namespace);
    }
    if let Some(webhooks) = object(&inputs.webhooks) {
        config.validating_webhooks = parts::webhooks::validating(&webhooks.spec);
        config.mutating_webhooks = parts::webhooks::mutating(&webhooks.spec);
    }
    config.middleware_configs = parts::chain::middleware(&config).map_err(Blocked::new)?;
    Ok(config)
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
    let session_redis = inputs.proxied.session_redis();
    let backend_replicas = inputs.spec().backend_replicas;
    (session_redis.is_some() || backend_replicas.is_some())
        .then_some(Scaling { backend_replicas, session_redis })
}
