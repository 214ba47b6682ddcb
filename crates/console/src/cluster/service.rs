//! The pods behind the Service of an object.
//!
//! People can write a status, Services and EndpointSlices, and could so lead a request of the console to what it can reach and
//! they cannot. So a Service counts only if the object owns it and the cluster selects its pods: neither a name elsewhere
//! (`ExternalName`) nor addresses that were written by hand. The pod is connected to by its address, because a Service that a
//! name or an address of the cluster leads to may be another one by then.

use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr},
};

use http::Uri;
use k8s_openapi::{
    api::{
        core::v1::Service,
        discovery::v1::{Endpoint, EndpointSlice},
    },
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{Api, Client, ResourceExt, api::ListParams};
use skep_api::GROUP;
use tracing::debug;

use crate::{limits, objects::Object};

/// The label with the name of the Service.
pub(super) const SERVICE: &str = "kubernetes.io/service-name";
/// The label with the writer of a slice.
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// The controller of the cluster. It reverts what others write into slices with its name.
const CONTROLLER: &str = "endpointslice-controller.k8s.io";

/// Finds the pods of objects.
pub(crate) struct Services(Client);

impl Services {
    pub(crate) fn new(client: Client) -> Self {
        Self(client)
    }

    /// A ready pod behind the Service in this address of the object: the same for all requests while it is ready, because
    /// sessions may be in its memory.
    pub(crate) async fn pod(&self, object: &Object, address: &Uri) -> Option<SocketAddr> {
        self.pods(object, address).await.into_iter().next()
    }

    /// The ready pods behind the Service in this address of the object, in the order of their addresses.
    pub(crate) async fn pods(&self, object: &Object, address: &Uri) -> BTreeSet<SocketAddr> {
        let finding = self.find(object, address);
        match tokio::time::timeout(limits::ENDPOINT_TIME, finding).await {
            Ok(Ok(pods)) => pods,
            Ok(Err(error)) => {
                debug!(%error, "failed to find the pods of a server");
                BTreeSet::new()
            }
            Err(_) => BTreeSet::new(),
        }
    }

    async fn find(&self, object: &Object, address: &Uri) -> kube::Result<BTreeSet<SocketAddr>> {
        let namespace = &object.key.namespace;
        let Some(name) = address.host().and_then(|host| service_name(host, namespace)) else {
            return Ok(BTreeSet::new());
        };
        let services: Api<Service> = Api::namespaced(self.0.clone(), namespace);
        let Some(service) = services.get_opt(name).await?.filter(|service| is_own(object, service)) else {
            return Ok(BTreeSet::new());
        };
        let Some(port) = port_name(&service, address.port_u16().unwrap_or(80)) else {
            return Ok(BTreeSet::new());
        };
        let slices: Api<EndpointSlice> = Api::namespaced(self.0.clone(), namespace);
        let params = ListParams::default()
            .labels(&format!("{SERVICE}={name},{MANAGED_BY}={CONTROLLER}"))
            .limit(limits::SLICES);
        let slices = slices.list(&params).await?;
        let own = slices.iter().filter(|slice| has_owner(slice.owner_references(), &service.uid()));
        Ok(own.flat_map(|slice| ready(slice, port)).collect())
    }
}

/// The Service of the namespace that has this host name, if it is one.
pub(super) fn service_name<'a>(host: &'a str, namespace: &str) -> Option<&'a str> {
    let mut labels = host.split('.');
    let name = labels.next().filter(|name| !name.is_empty())?;
    let is_one = labels.next() == Some(namespace)
        && ["svc", "svc.cluster.local"].contains(&labels.collect::<Vec<_>>().join(".").as_str());
    is_one.then_some(name)
}

/// People can write slices themselves. None leads to the console itself, or to the services of a node.
pub(super) fn is_of_a_pod(ip: &IpAddr) -> bool {
    let is_link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local() || ip.is_broadcast(),
        IpAddr::V6(ip) => ip.is_unicast_link_local() || ip.to_ipv4_mapped().is_some(),
    };
    !(ip.is_loopback() || ip.is_unspecified() || ip.is_multicast() || is_link_local)
}

/// Whether the operator created it for this object, and the cluster finds its pods.
fn is_own(object: &Object, service: &Service) -> bool {
    let uid = object.manifest["metadata"]["uid"].as_str().map(str::to_owned);
    let of_kind: Vec<_> = service
        .owner_references()
        .iter()
        .filter(|owner| owner.kind == object.key.kind && owner.api_version.split('/').next() == Some(GROUP))
        .cloned()
        .collect();
    let spec = service.spec.as_ref();
    let has_selector =
        spec.and_then(|spec| spec.selector.as_ref()).is_some_and(|selector| !selector.is_empty());
    let type_ = spec.and_then(|spec| spec.type_.as_deref()).unwrap_or_default();
    has_owner(&of_kind, &uid) && has_selector && ["ClusterIP", "NodePort", "LoadBalancer"].contains(&type_)
}

fn has_owner(owners: &[OwnerReference], uid: &Option<String>) -> bool {
    let is_it = |owner: &OwnerReference| owner.controller == Some(true) && Some(&owner.uid) == uid.as_ref();
    owners.iter().any(is_it)
}

/// The name of the Service's port with this number.
fn port_name(service: &Service, number: u16) -> Option<&str> {
    let mut ports = service.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
    let port = ports.find(|port| port.port == i32::from(number))?;
    Some(port.name.as_deref().unwrap_or_default())
}

/// The ready pods of a slice, at the port with this name.
fn ready<'a>(slice: &'a EndpointSlice, port: &str) -> impl Iterator<Item = SocketAddr> + 'a {
    let mut ports = slice.ports.iter().flatten();
    let port = ports.find(|known| known.name.as_deref().unwrap_or_default() == port);
    let port = port.and_then(|port| u16::try_from(port.port?).ok());
    let is_ready = |endpoint: &&Endpoint| {
        endpoint.conditions.as_ref().is_none_or(|conditions| conditions.ready != Some(false))
    };
    let addresses = slice.endpoints.iter().filter(is_ready).filter_map(|endpoint| endpoint.addresses.first());
    let addresses = addresses.filter_map(|text| text.parse().ok()).filter(is_of_a_pod);
    addresses.filter_map(move |ip| Some(SocketAddr::new(ip, port?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_one_of_the_namespace() {
        assert_eq!(service_name("mcp-a-proxy.n.svc.cluster.local", "n"), Some("mcp-a-proxy"));
        assert_eq!(service_name("mcp-a-proxy.n.svc", "n"), Some("mcp-a-proxy"));
        for host in [
            "mcp-a-proxy.m.svc",
            "evil.example",
            "n.svc",
            ".n.svc",
            "a.n.svc.evil.example",
            "10.0.0.1",
            "a.n",
        ] {
            assert_eq!(service_name(host, "n"), None, "{host}");
        }
    }
}
