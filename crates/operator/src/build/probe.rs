//! Probes and ports of a container.

use k8s_openapi::{
    api::core::v1::{ContainerPort, HTTPGetAction, Probe},
    apimachinery::pkg::util::intstr::IntOrString,
};
use skep_config::ports;

/// A request to a numbered port, first after `delay` and then every `period` seconds.
pub(crate) fn http_probe(path: &str, port: i32, delay: i32, period: i32) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.into()),
            port: IntOrString::Int(port),
            ..HTTPGetAction::default()
        }),
        initial_delay_seconds: Some(delay),
        period_seconds: Some(period),
        ..Probe::default()
    }
}

/// The port that a container serves requests on.
pub(crate) fn container_port(port: i32) -> ContainerPort {
    ContainerPort {
        name: Some(ports::HTTP.into()),
        container_port: port,
        // Part of the key that identifies the port for the API server.
        protocol: Some("TCP".into()),
        ..ContainerPort::default()
    }
}
