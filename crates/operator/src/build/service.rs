//! The Service in front of a proxy.

use k8s_openapi::{
    api::core::v1::{Service, ServicePort, ServiceSpec},
    apimachinery::pkg::util::intstr::IntOrString,
};
use skep_api::workload::{MetadataOverrides, SessionAffinity};
use skep_config::ports;

use super::{Identity, identity::added};

/// The Service of that name, which sends requests to the proxy's pods.
pub(crate) fn proxy_service(
    identity: &Identity,
    name: &str,
    port: i32,
    affinity: SessionAffinity,
    overrides: Option<&MetadataOverrides>,
) -> Service {
    let mut metadata = identity.metadata(name);
    metadata.labels = added(identity.labels(), overrides.map(|overrides| &overrides.labels));
    metadata.annotations = added([].into(), overrides.map(|overrides| &overrides.annotations));
    Service {
        metadata,
        spec: Some(ServiceSpec {
            selector: Some(identity.labels()),
            session_affinity: Some(affinity.as_str().into()),
            ports: Some(vec![ServicePort {
                name: Some(ports::HTTP.into()),
                port,
                // Part of the key by which the API server knows the port.
                protocol: Some("TCP".into()),
                target_port: Some(IntOrString::Int(port)),
                ..ServicePort::default()
            }]),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}
