//! The Service in front of a proxy.

use k8s_openapi::{
    api::core::v1::{Service, ServicePort, ServiceSpec},
    apimachinery::pkg::util::intstr::IntOrString,
};
use skep_api::{
    kinds::ServiceType,
    workload::{MetadataOverrides, SessionAffinity},
};
use skep_config::ports;

use super::{Identity, identity::added};

/// The address of a Service within the cluster.
pub(crate) fn service_url(name: &str, namespace: &str, port: i32) -> String {
    format!("http://{name}.{namespace}.svc.cluster.local:{port}")
}

/// The Service of that name, which sends requests to the pods. Without a type, how it is published is left to others.
pub(crate) fn proxy_service(
    identity: &Identity,
    name: &str,
    port: i32,
    affinity: SessionAffinity,
    type_: Option<ServiceType>,
    overrides: Option<&MetadataOverrides>,
) -> Service {
    let mut metadata = identity.metadata(name);
    metadata.labels = added(identity.labels(), overrides.map(|overrides| &overrides.labels));
    metadata.annotations = added([].into(), overrides.map(|overrides| &overrides.annotations));
    Service {
        metadata,
        spec: Some(ServiceSpec {
            selector: Some(identity.labels()),
            type_: type_.map(|type_| type_.as_str().into()),
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
