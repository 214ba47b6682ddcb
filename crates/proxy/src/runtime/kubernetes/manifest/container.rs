//! The container that the server runs in.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Container, ContainerPort, EnvVar};
use skep_config::{RunConfig, env, run_config::Transport};

use super::{
    ManifestError,
    ports::{Port, ports},
    security,
};
use crate::runtime::kubernetes::Platform;

/// The container that the patch gives, which may have nothing but a name, with all that makes it the server's.
pub(super) fn container(
    given: Container,
    config: &RunConfig,
    platform: Platform,
) -> Result<Container, ManifestError> {
    let args = given.args.into_iter().flatten().chain(config.cmd_args.iter().cloned());
    let mut container_ports = given.ports.unwrap_or_default();
    if config.transport == Transport::Sse {
        for port in ports(config)? {
            declare(&mut container_ports, port);
        }
    }
    Ok(Container {
        image: Some(config.image.clone()),
        args: non_empty(args.collect()),
        env: Some(given.env.into_iter().flatten().chain(variables(config)).collect()),
        ports: non_empty(container_ports),
        stdin: Some(config.transport == Transport::Stdio),
        tty: Some(false),
        security_context: Some(security::container(given.security_context, platform)),
        ..given
    })
}

/// The variables of the RunConfig and those that name the transport of the server, by their names: in a stable order, or
/// pods would roll without need.
fn variables(config: &RunConfig) -> impl Iterator<Item = EnvVar> {
    let mut variables: BTreeMap<String, String> = config.env_vars.clone();
    variables.insert(env::MCP_TRANSPORT.into(), config.transport.as_str().into());
    if config.transport != Transport::Stdio {
        variables.insert(env::MCP_PORT.into(), config.target_port.to_string());
        variables.insert(env::FASTMCP_PORT.into(), config.target_port.to_string());
        variables.insert(env::MCP_HOST.into(), config.target_host.clone());
    }
    variables.into_iter().map(|(name, value)| EnvVar { name, value: Some(value), value_from: None })
}

/// Removes duplicate variables. The last one stays, as a container would see that one; server-side apply identifies
/// variables by name and rejects a list with duplicates. The RunConfig's come last, so they override the patch's.
pub(super) fn remove_duplicates(variables: &mut Vec<EnvVar>) {
    let mut seen = BTreeSet::new();
    variables.reverse();
    variables.retain(|variable| seen.insert(variable.name.clone()));
    variables.reverse();
}

/// Adds a port, unless the patch declares it already, maybe with a name.
fn declare(declared: &mut Vec<ContainerPort>, port: Port) {
    let number = i32::from(port.number);
    let tcp = |port: &ContainerPort| port.protocol.as_deref().is_none_or(|protocol| protocol == "TCP");
    if !declared.iter().any(|other| other.container_port == number && tcp(other)) {
        let protocol = Some("TCP".into());
        declared.push(ContainerPort { container_port: number, protocol, ..ContainerPort::default() });
    }
}

fn non_empty<T>(items: Vec<T>) -> Option<Vec<T>> {
    (!items.is_empty()).then_some(items)
}
