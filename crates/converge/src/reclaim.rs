//! What server-side apply cannot correct by itself.
//!
//! A Service's ports are identified by number, and must have unique names. When another writer changes the number of
//! our port, it becomes an element of theirs, which an apply leaves alone; ours cannot be added, because it has the
//! same name. So that port is first replaced by ours, under the condition that the object has not changed meanwhile. Ports
//! with other names stay.

use k8s_openapi::api::core::v1::Service;
use kube::core::DynamicObject;
use serde_json::{Value, json};

use crate::{Child, Error, Kind};

/// Whether an apply failed because of a port of ours that has another number now.
pub(crate) fn is_possible(child: &Child, error: &Error) -> bool {
    let Error::Request { cause, .. } = error else { return false };
    let kube::Error::Api(status) = cause.as_ref() else { return false };
    let mut causes = status.details.iter().flat_map(|details| &details.causes);
    child.kind == Kind::of::<Service>() && causes.any(|cause| cause.field.starts_with("spec.ports"))
}

/// The merge patch after which an apply of the child succeeds.
pub(crate) fn patch(child: &Child, live: &DynamicObject) -> Value {
    let list = |object: &Value| object["spec"]["ports"].as_array().cloned().unwrap_or_default();
    let ours = list(child.body());
    let is_ours = |port: &Value| {
        let same = |key: &str, other: &Value| port.get(key).is_some() && port.get(key) == other.get(key);
        ours.iter().any(|own| same("name", own) || same("port", own) && same("protocol", own))
    };
    let mut ports = list(&live.data);
    ports.retain(|port| !is_ours(port));
    ports.extend(ours.iter().cloned());
    json!({"metadata": {"resourceVersion": live.metadata.resource_version}, "spec": {"ports": ports}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_others_stay() {
        let port = |name: &str, number: u16| json!({"name": name, "port": number, "protocol": "TCP"});
        let service = |ports: Value| json!({"metadata": {"resourceVersion": "1"}, "spec": {"ports": ports}});
        let ours = service(json!([port("http", 8080)]));
        let child = Child::from_value(Kind::of::<Service>(), "ns".into(), "s".into(), ours);
        let live = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"resourceVersion": "7"},
            "spec": {"ports": [port("http", 9999), port("metrics", 9090)]}});
        let live: DynamicObject = serde_json::from_value(live).unwrap();
        let expected = [port("metrics", 9090), port("http", 8080)];
        assert_eq!(patch(&child, &live)["spec"]["ports"], json!(expected));
        assert_eq!(patch(&child, &live)["metadata"]["resourceVersion"], "7");
    }
}
