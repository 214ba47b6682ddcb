//! The file that tells an MCPRemoteProxy's proxy what to do.

use skep_api::workload::RemoteTransport;
use skep_config::{
    RunConfig, env,
    run_config::{PermissionProfile, ProxyMode, Scaling, Transport},
};

use super::inputs::Inputs;
use crate::{driver::Blocked, parts};

/// The RunConfig of the proxy.
pub(super) fn run_config(inputs: &Inputs) -> Result<RunConfig, Blocked> {
    let (spec, proxied) = (inputs.spec(), &inputs.proxied);
    let name = spec.transport().as_str();
    let (transport, proxy_mode) = match spec.transport() {
        RemoteTransport::Sse => (Transport::Sse, ProxyMode::Sse),
        RemoteTransport::StreamableHttp => (Transport::StreamableHttp, ProxyMode::StreamableHttp),
    };
    let headers = spec.header_forward.as_ref();
    let scaling = |session_redis| Scaling { backend_replicas: None, session_redis: Some(session_redis) };
    let mut config = RunConfig {
        remote_url: spec.remote_url.clone(),
        transport,
        proxy_mode: Some(proxy_mode),
        env_vars: [(env::MCP_TRANSPORT.to_owned(), name.to_owned())].into(),
        permission_profile: Some(PermissionProfile::network()),
        header_forward: headers
            .and_then(|headers| parts::header_forward::header_forward(headers, &proxied.identity.name)),
        scaling_config: proxied.session_redis().map(scaling),
        ..proxied.run_config(name)?
    };
    config.middleware_configs = parts::chain::middleware(&config).map_err(Blocked::new)?;
    Ok(config)
}
