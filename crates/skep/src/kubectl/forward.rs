//! A port of this machine that leads to a pod in front of a server.

use std::{collections::BTreeMap, net::SocketAddr};

use anyhow::{Context, bail};
use k8s_openapi::{
    api::core::v1::{Pod, Service},
    apimachinery::pkg::util::intstr::IntOrString,
};
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, ListParams},
};
use tokio::net::TcpListener;

use crate::cluster::{Cluster, title};

/// The ready pods behind the address of a server.
pub(super) async fn pods(cluster: &Cluster, server: &DynamicObject) -> anyhow::Result<Vec<Pod>> {
    let (service, _) = service(cluster, server).await?;
    let selector: BTreeMap<String, String> = service.spec.and_then(|spec| spec.selector).unwrap_or_default();
    let labels: Vec<String> = selector.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let api: Api<Pod> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    Ok(api.list(&ListParams::default().labels(&labels.join(","))).await?.items)
}

/// The Service of the address in the status, and its port.
async fn service(cluster: &Cluster, server: &DynamicObject) -> anyhow::Result<(Service, u16)> {
    let url = server.data["status"]["url"].as_str().unwrap_or_default();
    let uri: http::Uri = url.parse().unwrap_or_default();
    let Some(name) = uri.host().and_then(|host| host.split('.').next()) else {
        bail!("{} has no address yet: see kubectl skep status", title(server));
    };
    let api: Api<Service> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let service =
        api.get(name).await.with_context(|| format!("the address of {} is {url}", title(server)))?;
    Ok((service, uri.port_u16().unwrap_or(80)))
}

/// Listens on 127.0.0.1, and forwards connections to a ready pod of the server, until the task is dropped.
pub(super) async fn forward(cluster: &Cluster, server: &DynamicObject) -> anyhow::Result<SocketAddr> {
    let (service, port) = service(cluster, server).await?;
    let pods = pods(cluster, server).await?;
    let Some(pod) = pods.iter().find(|pod| is_ready(pod)) else {
        bail!("no pod of {} is ready", title(server));
    };
    let ports = service.spec.and_then(|spec| spec.ports).unwrap_or_default();
    let target = ports.into_iter().find(|one| one.port == i32::from(port)).and_then(|one| one.target_port);
    let port = match target {
        None => port,
        Some(IntOrString::Int(number)) => u16::try_from(number)?,
        Some(IntOrString::String(name)) => named_port(pod, &name).context("the pod has no such port")?,
    };
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    let (api, name): (Api<Pod>, _) =
        (Api::namespaced(cluster.client.clone(), &cluster.namespace), pod.name_any());
    tokio::spawn(async move {
        while let Ok((mut here, _)) = listener.accept().await {
            let Ok(mut forwarded) = api.portforward(&name, &[port]).await else { return };
            let Some(mut there) = forwarded.take_stream(port) else { return };
            tokio::spawn(async move {
                // Either side may close it.
                tokio::io::copy_bidirectional(&mut here, &mut there).await.ok();
                drop(there);
                forwarded.join().await.ok();
            });
        }
    });
    Ok(address)
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn named_port(pod: &Pod, name: &str) -> Option<u16> {
    let containers = &pod.spec.as_ref()?.containers;
    let mut ports = containers.iter().flat_map(|container| container.ports.iter().flatten());
    let port = ports.find(|port| port.name.as_deref() == Some(name))?;
    u16::try_from(port.container_port).ok()
}
