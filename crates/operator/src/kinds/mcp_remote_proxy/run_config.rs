//! The RunConfig of an MCPRemoteProxy's proxy.

use skep_api::workload::RemoteTransport;
use skep_config::{
    FieldError, RunConfig, env,
    run_config::{PermissionProfile, ProxyMode, Scaling, Transport},
};

use super::inputs::Inputs;
use crate::{config_refs, proxy_workload::ValidParts};

/// The RunConfig of the proxy.
pub(super) fn run_config(inputs: &Inputs, valid: ValidParts) -> Result<RunConfig, FieldError> {
    let (spec, proxy) = (inputs.spec(), &inputs.proxy);
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
            .and_then(|headers| config_refs::header_forward::header_forward(headers, &proxy.identity.name)),
        scaling_config: proxy.session_redis().map(scaling),
        ..proxy.run_config(name, valid)
    };
    config.middleware_configs = config_refs::chain::middleware(&config)?;
    Ok(config)
}
