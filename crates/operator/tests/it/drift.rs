//! Each drift alone: every field that the operator owns in a child, changed by hand and removed by hand, is put back
//! by one write.

use std::time::Duration;

use kube::core::DynamicObject;
use serde_json::{Value, json};
use skep_api::kinds::{MCPOIDCConfig, MCPServer};
use skep_converge::Kind;
use skep_operator::watched::{ConfigMaps, Deployments, RoleBindings, Roles, ServiceAccounts, Services};
use skep_testkit::fixtures::{TestOidcConfig, TestServer};
use skep_world::Watched;
use tokio::time::timeout;

use crate::fixture::Fixture;

const MANAGER: &str = "skep-mcpserver";

/// The JSON pointers to the values that the operator owns, one for each leaf.
fn owned_leaves(object: &DynamicObject) -> Vec<String> {
    let entries = object.metadata.managed_fields.iter().flatten();
    let mut entries = entries.filter(|entry| entry.manager.as_deref() == Some(MANAGER));
    let fields = &entries.next().expect("the operator has applied it").fields_v1.as_ref().unwrap().0;
    let mut leaves = Vec::new();
    walk(&serde_json::to_value(object).unwrap(), fields, "", &mut leaves);
    leaves
}

fn walk(value: &Value, fields: &Value, path: &str, leaves: &mut Vec<String>) {
    let fields = fields.as_object().unwrap();
    if fields.is_empty() {
        return whole(value, path, leaves);
    }
    for (key, inner) in fields {
        if let Some(name) = key.strip_prefix("f:") {
            let escaped = name.replace('~', "~0").replace('/', "~1");
            if let Some(value) = value.get(name) {
                walk(value, inner, &format!("{path}/{escaped}"), leaves);
            }
        } else if let Some(keys) = key.strip_prefix("k:") {
            let keys: serde_json::Map<String, Value> = serde_json::from_str(keys).unwrap();
            let matches = |item: &Value| keys.iter().all(|(key, wanted)| item.get(key) == Some(wanted));
            if let Some(index) = value.as_array().unwrap().iter().position(matches) {
                let mut own = Vec::new();
                walk(&value[index], inner, &format!("{path}/{index}"), &mut own);
                // Under another key it is another element, which is not ours.
                let is_key = |leaf: &String| keys.keys().any(|key| *leaf == format!("{path}/{index}/{key}"));
                leaves.extend(own.into_iter().filter(|leaf| !is_key(leaf)));
            }
        }
    }
}

/// A value that is owned as a whole: each scalar in it.
fn whole(value: &Value, path: &str, leaves: &mut Vec<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            whole(value, &format!("{path}/{}", key.replace('~', "~0").replace('/', "~1")), leaves);
        }),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, item)| whole(item, &format!("{path}/{i}"), leaves))
        }
        _ => leaves.push(path.into()),
    }
}

fn other(value: &Value) -> Value {
    match value {
        Value::String(text) if text.starts_with('/') => json!(format!("{text}x")),
        Value::String(text) => json!(format!("x{text}")),
        Value::Number(number) => json!(number.as_i64().unwrap() + 1),
        Value::Bool(flag) => json!(!flag),
        value => panic!("no other value for {value}"),
    }
}

/// What is comparable of an object: all but what each write changes.
fn content(object: &DynamicObject) -> Value {
    let mut value = serde_json::to_value(object).unwrap();
    for key in ["managedFields", "resourceVersion", "generation"] {
        value["metadata"].as_object_mut().unwrap().remove(key);
    }
    value
}

/// The object right after the change, before anybody can have put it back.
async fn patched(fixture: &Fixture, kind: Kind, name: &str, operation: &Value) -> Option<DynamicObject> {
    let path = format!("{}/{name}?fieldManager=somebody", kind.path(Some(fixture.test.name())));
    let request = http::Request::patch(path).header("content-type", "application/json-patch+json");
    let request = request.body(serde_json::to_vec(&json!([operation])).unwrap()).unwrap();
    match fixture.test.client().request(request).await {
        Ok(object) => Some(object),
        // What cannot be changed by hand cannot drift.
        Err(kube::Error::Api(status)) if status.code == 422 => None,
        Err(error) => panic!("{operation}: {error}"),
    }
}

async fn put_back(fixture: &Fixture, kind: Kind, name: &str, good: &Value, what: &str) {
    let back = async {
        while content(&fixture.object(kind, name).await.unwrap()) != *good {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(20), back)
        .await
        .unwrap_or_else(|_| panic!("{} {name}: {what} is not put back", kind.kind));
}

/// Tries every owned leaf of one child, and returns how many drifts were made and put back.
async fn try_all(fixture: &Fixture, kind: Kind, name: &str) -> usize {
    let live = fixture.object(kind, name).await.unwrap_or_else(|| panic!("no {} {name}", kind.kind));
    let good = content(&live);
    let recording = fixture.record();
    let mut drifts = 0;
    // With another uid the object would be another's, and that is left alone.
    let leaves = owned_leaves(&live)
        .into_iter()
        .filter(|pointer| !pointer.starts_with("/metadata/ownerReferences/0/uid"));
    for pointer in leaves {
        let value = good.pointer(&pointer).unwrap();
        let operations = [
            json!({"op": "replace", "path": pointer, "value": other(value)}),
            json!({"op": "remove", "path": pointer}),
        ];
        for operation in operations {
            let before = content(&fixture.object(kind, name).await.unwrap());
            assert_eq!(before, good, "no drift to start with");
            let Some(changed) = patched(fixture, kind, name, &operation).await else { continue };
            // A value that the API server fills in again at once is no drift.
            if content(&changed) == good {
                continue;
            }
            drifts += 1;
            put_back(fixture, kind, name, &good, &operation.to_string()).await;
        }
    }
    let writes = recording.requests().await;
    let on_it = writes
        .iter()
        .filter(|request| request.is_write() && request.resource == kind.plural && request.name == name);
    assert_eq!(on_it.count(), drifts, "{} {name}: one write for each drift", kind.kind);
    drifts
}

#[tokio::test]
async fn each_field_that_the_operator_owns_is_put_back_alone_by_one_write() {
    let fixture = Fixture::new().await;
    fixture.test.create_object(&MCPOIDCConfig::test("company")).await;
    let mut server = MCPServer::test("fetch").streamable_http().with_oidc("company").with_rate_limit(5);
    server.spec.resource_overrides = serde_json::from_value(json!({
        "proxyDeployment": {
            "annotations": {"owner": "a"}, "labels": {"cost": "b"}, "env": [{"name": "X", "value": "1"}],
            "imagePullSecrets": [{"name": "pull"}],
            "podTemplateMetadataOverrides": {"annotations": {"vault": "yes"}, "labels": {"mesh": "on"}},
        },
        "proxyService": {"annotations": {"cloud": "c"}, "labels": {"exposed": "no"}},
    }))
    .unwrap();
    server.spec.resources =
        serde_json::from_value(json!({"limits": {"cpu": "0.5", "memory": "128Mi"}})).unwrap();
    fixture.settled(&server).await;
    let mut drifts = 0;
    for (kind, name) in [
        (ServiceAccounts::KIND, "fetch-proxy-runner"),
        (ServiceAccounts::KIND, "fetch-sa"),
        (Roles::KIND, "fetch-proxy-runner"),
        (RoleBindings::KIND, "fetch-proxy-runner"),
        (ConfigMaps::KIND, "fetch-runconfig"),
        (Services::KIND, "mcp-fetch-proxy"),
        (Deployments::KIND, "fetch"),
    ] {
        drifts += try_all(&fixture, kind, name).await;
    }
    assert!(drifts > 120, "only {drifts} drifts could be made");
    fixture.operator.stop().await;
}

#[tokio::test]
async fn a_port_that_somebody_renumbers_gets_its_number_back() {
    let fixture = Fixture::new().await;
    fixture.settled(&MCPServer::test("fetch")).await;
    let (kind, name) = (Services::KIND, "mcp-fetch-proxy");
    let good = content(&fixture.object(kind, name).await.unwrap());
    let renumbered = json!({"op": "replace", "path": "/spec/ports/0/port", "value": 8081});
    patched(&fixture, kind, name, &renumbered).await.unwrap();
    put_back(&fixture, kind, name, &good, "the port").await;
    fixture.operator.stop().await;
}
