//! The Services of a server that speaks HTTP.

use k8s_openapi::{
    api::core::v1::{ClientIPConfig, Service, ServicePort, ServiceSpec, SessionAffinityConfig},
    apimachinery::pkg::{apis::meta::v1::ObjectMeta, util::intstr::IntOrString},
};
use skep_config::{RunConfig, objects, run_config::Transport};

use super::{
    ManifestError, all_labels, name,
    ports::{Port, ports},
    selector,
};

/// How long a client is routed to the same pod, in seconds.
const AFFINITY: i32 = 1800;

/// The Services of the server: one that gives each pod a name, and one that the proxy reaches them through. A stdio
/// server has none.
pub fn services(config: &RunConfig) -> Result<Vec<Service>, ManifestError> {
    if config.transport == Transport::Stdio {
        return Ok(Vec::new());
    }
    let (name, ports) = (name(config)?, ports(config)?);
    let service = |named: String, spec: ServiceSpec| Service {
        metadata: ObjectMeta {
            name: Some(named),
            labels: Some(all_labels(config, name)),
            ..ObjectMeta::default()
        },
        spec: Some(ServiceSpec { selector: Some(selector(name)), ..spec }),
        status: None,
    };
    let headless = ServiceSpec {
        type_: Some("ClusterIP".into()),
        cluster_ip: Some("None".into()),
        // A Service without an address cannot have ports on nodes.
        ports: Some(ports.iter().map(|port| service_port(Port { node: None, ..*port })).collect()),
        ..ServiceSpec::default()
    };
    let on_nodes = ports.iter().any(|port| port.node.is_some());
    let client_ip = Some(ClientIPConfig { timeout_seconds: Some(AFFINITY) });
    let backend = ServiceSpec {
        type_: Some(if on_nodes { "NodePort" } else { "ClusterIP" }.into()),
        session_affinity: Some("ClientIP".into()),
        session_affinity_config: Some(SessionAffinityConfig { client_ip }),
        ports: Some(ports.into_iter().map(service_port).collect()),
        ..ServiceSpec::default()
    };
    Ok(vec![
        service(objects::headless_service(name), headless),
        service(objects::backend_service(name), backend),
    ])
}

fn service_port(port: Port) -> ServicePort {
    let number = i32::from(port.number);
    ServicePort {
        name: Some(format!("port-{number}")),
        port: number,
        protocol: Some("TCP".into()),
        target_port: Some(IntOrString::Int(number)),
        node_port: port.node.map(i32::from),
        app_protocol: None,
    }
}
