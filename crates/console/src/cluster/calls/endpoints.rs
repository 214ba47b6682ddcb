//! Where the pods of servers listen, by the EndpointSlices of their Services.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, SocketAddr},
    pin::pin,
    sync::Arc,
};

use futures::{StreamExt, future::join_all};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::{
    Api, Client, ResourceExt,
    runtime::{WatchStreamExt, watcher},
};
use skep_config::labels;
use tokio::sync::watch;
use tracing::warn;

use crate::{
    Key,
    cluster::service::{SERVICE, is_of_a_pod, service_name},
    limits,
    objects::Object,
};

/// The kinds that have calls.
const KINDS: [&str; 3] = ["MCPServer", "MCPRemoteProxy", "VirtualMCPServer"];

/// A pod of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Endpoint {
    pub(super) key: Key,
    pub(super) address: SocketAddr,
}

/// The EndpointSlices, by namespace and name.
#[derive(Clone, Debug, Default)]
pub(super) struct Slices(BTreeMap<(String, String), Slice>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Slice {
    service: String,
    addresses: Vec<SocketAddr>,
}

/// Keeps the slices up to date, for ever.
pub(super) async fn follow(client: &Client, scopes: &[Option<String>], slices: &watch::Sender<Slices>) {
    join_all(scopes.iter().map(|scope| follow_scope(client.clone(), scope.as_deref(), slices))).await;
}

async fn follow_scope(client: Client, namespace: Option<&str>, slices: &watch::Sender<Slices>) {
    let api: Api<EndpointSlice> = match namespace {
        Some(namespace) => Api::namespaced(client, namespace),
        None => Api::all(client),
    };
    // A slice has the labels of its Service.
    let config = watcher::Config::default().labels(&format!("{}={}", labels::TOOLHIVE, labels::TRUE));
    let mut events = pin!(watcher(api, config).default_backoff());
    // It begins with nothing, so what is not listed any more is only to be dropped when it is listed again.
    let mut listed: Option<BTreeSet<(String, String)>> = None;
    while let Some(event) = events.next().await {
        match event {
            Ok(watcher::Event::Init) => listed = Some(BTreeSet::new()),
            Ok(watcher::Event::InitApply(slice)) => {
                listed.get_or_insert_default().insert(place(&slice));
                slices.send_if_modified(|slices| slices.apply(&slice));
            }
            Ok(watcher::Event::InitDone) => {
                let kept = listed.take().unwrap_or_default();
                let in_scope = |place: &str| namespace.is_none_or(|namespace| place == namespace);
                slices.send_modify(|slices| {
                    slices.0.retain(|place, _| !in_scope(&place.0) || kept.contains(place));
                });
            }
            Ok(watcher::Event::Apply(slice)) => drop(slices.send_if_modified(|slices| slices.apply(&slice))),
            Ok(watcher::Event::Delete(slice)) => {
                slices.send_if_modified(|slices| slices.0.remove(&place(&slice)).is_some());
            }
            Err(error) => warn!(%error, "failed to watch EndpointSlices"),
        }
    }
}

fn place(slice: &EndpointSlice) -> (String, String) {
    (slice.namespace().unwrap_or_default(), slice.name_any())
}

impl Slices {
    /// Takes a slice, and returns whether that changed something.
    fn apply(&mut self, slice: &EndpointSlice) -> bool {
        let service = slice.labels().get(SERVICE).cloned().unwrap_or_default();
        let ports: Vec<u16> =
            slice.ports.iter().flatten().filter_map(|port| u16::try_from(port.port?).ok()).collect();
        let ips = slice.endpoints.iter().flat_map(|endpoint| &endpoint.addresses);
        let ips: Vec<IpAddr> = ips.filter_map(|text| text.parse().ok()).filter(is_of_a_pod).collect();
        // A Service of ours has one port.
        let addresses = ips.iter().flat_map(|ip| ports.first().map(|port| SocketAddr::new(*ip, *port)));
        let new = Slice { service, addresses: addresses.collect() };
        let place = place(slice);
        let changed = self.0.get(&place) != Some(&new);
        self.0.insert(place, new);
        changed
    }
}

/// The pods of these objects, by the Services in their addresses. Users can write slices, so no object has more than its share.
pub(super) fn of_objects(objects: &[Arc<Object>], slices: &Slices) -> BTreeSet<Endpoint> {
    let mut of_service: BTreeMap<(&str, &str), Vec<SocketAddr>> = BTreeMap::new();
    for ((namespace, _), slice) in &slices.0 {
        of_service.entry((namespace, &slice.service)).or_default().extend(&slice.addresses);
    }
    let endpoints = objects.iter().filter(|object| KINDS.contains(&object.key.kind.as_str()));
    let endpoints = endpoints.flat_map(|object| {
        let key = &object.key;
        let uri: Option<http::Uri> = object.summary.url.parse().ok();
        let service =
            uri.as_ref().and_then(http::Uri::host).and_then(|host| service_name(host, &key.namespace));
        let addresses = service.and_then(|service| of_service.get(&(key.namespace.as_str(), service)));
        let endpoint = |address: &SocketAddr| Endpoint { key: key.clone(), address: *address };
        addresses.into_iter().flatten().take(limits::READERS_OF_OBJECT).map(endpoint).collect::<Vec<_>>()
    });
    endpoints.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Objects;

    fn slices(slices: Value) -> Slices {
        let mut all = Slices::default();
        for slice in slices.as_array().unwrap() {
            all.apply(&serde_json::from_value(slice.clone()).unwrap());
        }
        all
    }

    fn slice(namespace: &str, service: &str, addresses: &[&str]) -> Value {
        json!({
            "metadata": {"name": format!("{service}-1"), "namespace": namespace, "labels": {SERVICE: service}},
            "addressType": "IPv4", "ports": [{"port": 8080}],
            "endpoints": addresses.iter().map(|address| json!({"addresses": [address]})).collect::<Vec<_>>(),
        })
    }

    fn objects(url: &str) -> Vec<Arc<Object>> {
        let objects = Objects::default();
        let metadata = json!({"name": "a", "namespace": "n"});
        objects.apply(json!({"kind": "MCPServer", "metadata": metadata, "status": {"url": url}}));
        objects.apply(json!({"kind": "MCPGroup", "metadata": metadata, "status": {"url": url}}));
        objects.all()
    }

    #[test]
    fn every_pod_behind_the_service_of_an_object_is_read_and_no_other() {
        let slices = slices(json!([
            slice("n", "mcp-a-proxy", &["10.0.0.1", "10.0.0.2"]),
            slice("n", "mcp-b-proxy", &["10.0.0.3"]),
            slice("other", "mcp-a-proxy", &["10.0.0.4"]),
        ]));
        let found = |url: &str| {
            let endpoints = of_objects(&objects(url), &slices);
            endpoints.iter().map(|one| format!("{} {}", one.key.kind, one.address)).collect::<Vec<_>>()
        };
        assert_eq!(
            found("http://mcp-a-proxy.n.svc.cluster.local:8080/mcp"),
            ["MCPServer 10.0.0.1:8080", "MCPServer 10.0.0.2:8080"]
        );
        for url in ["http://mcp-a-proxy.other.svc.cluster.local:8080/mcp", "http://evil.example/", ""] {
            assert!(found(url).is_empty(), "{url}");
        }
    }

    #[test]
    fn a_slice_that_a_user_wrote_leads_neither_to_the_console_nor_to_a_node() {
        let hostile = ["127.0.0.1", "169.254.169.254", "0.0.0.0", "224.0.0.1", "255.255.255.255"];
        let slices = slices(json!([slice("n", "mcp-a-proxy", &hostile)]));
        assert!(of_objects(&objects("http://mcp-a-proxy.n.svc:8080/mcp"), &slices).is_empty());
        for address in ["::1", "fe80::1", "::ffff:169.254.169.254"] {
            assert!(!is_of_a_pod(&address.parse().unwrap()), "{address}");
        }
        assert!(is_of_a_pod(&"fd00::1".parse().unwrap()));
    }

    #[test]
    fn one_who_writes_a_slice_with_thousands_of_addresses_takes_no_place_of_others() {
        let hostile: Vec<String> =
            (0..5_000).map(|number| format!("10.1.{}.{}", number / 250, number % 250 + 1)).collect();
        let hostile: Vec<&str> = hostile.iter().map(String::as_str).collect();
        let slices = slices(json!([slice("n", "mcp-a-proxy", &hostile)]));
        let endpoints = of_objects(&objects("http://mcp-a-proxy.n.svc:8080/mcp"), &slices);
        assert_eq!(endpoints.len(), limits::READERS_OF_OBJECT);
        assert!(endpoints.len() * 10 < limits::READERS, "others have places");
    }
}
