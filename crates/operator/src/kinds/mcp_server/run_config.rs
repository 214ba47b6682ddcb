//! The RunConfig of an MCPServer's proxy.

use std::collections::BTreeMap;

use skep_api::kinds::{MCPServerSpec, PermissionProfileType, ProxyMode, Transport};
use skep_config::{
    FieldError, RunConfig, env, paths,
    run_config::{self, PermissionProfile, Scaling},
};

use super::inputs::Inputs;
use crate::{config_refs, proxy_workload::ValidParts};

/// The RunConfig of the proxy.
pub(super) fn run_config(
    inputs: &Inputs,
    valid: ValidParts,
    permissions: Permissions,
) -> Result<RunConfig, FieldError> {
    let (spec, proxy) = (inputs.spec(), &inputs.proxy);
    let mut config = RunConfig {
        mcpserver_generation: proxy.generation(),
        image: spec.image.clone(),
        cmd_args: spec.args.clone(),
        transport: transport(spec.transport()),
        // The API allows no other numbers.
        target_port: spec.mcp_port().try_into().unwrap_or_default(),
        proxy_mode: Some(proxy_mode(inputs)),
        env_vars: env_vars(inputs),
        volumes: volumes(inputs),
        scaling_config: scaling(inputs),
        permission_profile_name_or_path: permissions.name_or_path,
        permission_profile: Some(permissions.profile),
        ..proxy.run_config(spec.transport().as_str(), valid)
    };
    if let Some(limits) = &spec.rate_limiting {
        config.rate_limit_config = Some(config_refs::rate_limits::rate_limits(limits));
        config.rate_limit_namespace.clone_from(&proxy.identity.namespace);
    }
    inputs.webhooks.add_to(&mut config);
    config.middleware_configs = config_refs::chain::middleware(&config)?;
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

/// The server's own variables, and those for its transport and port.
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

/// What the server may do.
pub(super) struct Permissions {
    name_or_path: String,
    profile: PermissionProfile,
}

/// The permission profile, with the volumes.
pub(super) fn permissions(spec: &MCPServerSpec) -> Result<Permissions, FieldError> {
    let (name_or_path, mut profile) = match &spec.permission_profile {
        None => (String::new(), PermissionProfile::network()),
        Some(profile) if profile.type_.unwrap_or_default() == PermissionProfileType::ConfigMap => {
            let key = profile.key.as_deref().unwrap_or_default();
            (format!("{}/{key}", paths::PROFILES_FOLDER), PermissionProfile::network())
        }
        Some(profile) => (profile.name.clone(), built_in_profile(&profile.name)?),
    };
    for volume in &spec.volumes {
        let mount = format!("{}:{}", volume.host_path, volume.mount_path);
        if volume.read_only.unwrap_or_default() {
            profile.read.push(mount)
        } else {
            profile.write.push(mount)
        }
    }
    Ok(Permissions { name_or_path, profile })
}

/// The profile of this name that every proxy has.
fn built_in_profile(name: &str) -> Result<PermissionProfile, FieldError> {
    match name {
        "network" => Ok(PermissionProfile::network()),
        "none" => Ok(PermissionProfile::none()),
        other => {
            let message = format!("{other} is not a built-in profile: use none or network");
            Err(FieldError::new("permissionProfile.name", message))
        }
    }
}

fn scaling(inputs: &Inputs) -> Option<Scaling> {
    let session_redis = inputs.proxy.session_redis();
    let backend_replicas = inputs.spec().backend_replicas;
    (session_redis.is_some() || backend_replicas.is_some())
        .then_some(Scaling { backend_replicas, session_redis })
}
