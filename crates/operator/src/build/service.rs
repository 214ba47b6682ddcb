//! The Service in front of a proxy.

use std::collections::BTreeMap;

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

/// Labels, by name.
pub(crate) type Labels = BTreeMap<String, String>;

/// The Service of that name, which sends requests to the pods that have the labels of the selector.
pub(crate) fn port_service(
    identity: &Identity,
    name: &str,
    labels: Labels,
    selector: Labels,
    port: i32,
    overrides: Option<&MetadataOverrides>,
) -> Service {
    let mut metadata = identity.metadata(name);
    metadata.labels = added(labels, overrides.map(|overrides| &overrides.labels));
    metadata.annotations = added([].into(), overrides.map(|overrides| &overrides.annotations));
    let spec = ServiceSpec {
        selector: Some(selector),
        ports: Some(vec![service_port(port)]),
        ..ServiceSpec::default()
    };
    Service { metadata, spec: Some(spec), status: None }
}

/// The port of a Service, which is that of the pods as well.
fn service_port(port: i32) -> ServicePort {
    ServicePort {
        name: Some(ports::HTTP.into()),
        port,
        // Part of the key that identifies the port for the API server.
        protocol: Some("TCP".into()),
        target_port: Some(IntOrString::Int(port)),
        ..ServicePort::default()
    }
}

/// The Service of that name, which sends requests to the proxy's pods. Without a type, how it is published is left to
/// others.
pub(crate) fn proxy_service(
    identity: &Identity,
    name: &str,
    port: i32,
    affinity: SessionAffinity,
    type_: Option<ServiceType>,
    overrides: Option<&MetadataOverrides>,
) -> Service {
    let mut service = port_service(identity, name, identity.labels(), identity.labels(), port, overrides);
    if let Some(spec) = &mut service.spec {
        spec.type_ = type_.map(|type_| type_.as_str().into());
        spec.session_affinity = Some(affinity.as_str().into());
    }
    service
}
