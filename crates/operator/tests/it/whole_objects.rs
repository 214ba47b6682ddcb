//! Objects that other programs create for ours, with ours as their controller, so that they are deleted with it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use k8s_openapi::api::core::v1::Secret;
use kube::core::DynamicObject;
use serde_json::{Value, json};
use skep_converge::Kind;
use skep_operator::resources::{
    ConfigMaps, Deployments, RoleBindings, Roles, Secrets, ServiceAccounts, Services, StatefulSets,
};
use skep_testkit::repository;
use skep_world::Watched;

use crate::{
    fixture::{Fixture, conditions},
    kinds::{Groups, Registries, Servers, all_kinds, names_of_children},
};

/// What another program may create, with every label by which the operator finds its own.
fn foreign() -> [(Kind, Value); 8] {
    let labels = json!({
        "toolhive": "true", "app": "o", "toolhive-name": "o", "app.kubernetes.io/managed-by": "toolhive-operator",
        "app.kubernetes.io/instance": "o",
    });
    let template = json!({
        "metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "theirs"}]},
    });
    let pods =
        json!({"selector": {"matchLabels": {"app": "o"}}, "template": template, "serviceName": "theirs"});
    let mut deployment = json!({"spec": pods.clone()});
    deployment["spec"].as_object_mut().unwrap().remove("serviceName");
    let api_group = "rbac.authorization.k8s.io";
    let mut all = [
        (ConfigMaps::kind(), json!({"data": {"a": "b"}})),
        (Deployments::kind(), deployment),
        (RoleBindings::kind(), json!({"roleRef": {"apiGroup": api_group, "kind": "Role", "name": "theirs"}})),
        (Roles::kind(), json!({"rules": []})),
        (Secrets::kind(), json!({"stringData": {"a": "b"}})),
        (ServiceAccounts::kind(), json!({})),
        (Services::kind(), json!({"spec": {"ports": [{"port": 80}]}})),
        (StatefulSets::kind(), json!({"spec": pods})),
    ];
    for (_, object) in &mut all {
        object["metadata"]["labels"] = labels.clone();
    }
    all
}

/// Writes an object as another program: by a plain write, or by server-side apply.
async fn write_as_another(fixture: &Fixture, kind: Kind, object: &Value, applies: bool) {
    let path = kind.path(Some(fixture.test.name()));
    let request = if applies {
        let name = object["metadata"]["name"].as_str().unwrap();
        http::Request::patch(format!("{path}/{name}?fieldManager=dashboards"))
            .header("content-type", "application/apply-patch+yaml")
    } else {
        http::Request::post(format!("{path}?fieldManager=dashboards"))
    };
    let request = request.body(object.to_string().into_bytes()).unwrap();
    let written = fixture.test.client().request::<Value>(request).await;
    written.unwrap_or_else(|error| panic!("{} {object}: {error}", kind.kind));
}

/// What the objects of [`spec`] refer to.
async fn create_referents(fixture: &Fixture) {
    for (name, key) in [("hugging-face", "token"), ("postgres", "pgpass")] {
        let secret = json!({"metadata": {"name": name}, "stringData": {key: "x"}});
        fixture.test.create_object(&serde_json::from_value::<Secret>(secret).unwrap()).await;
    }
    fixture.create(Groups::kind(), "all", json!({})).await;
}

/// The spec of an object of this kind, and for those with children of one that gets all of them.
fn spec(kind: Kind) -> Value {
    let authz = json!({"type": "inline", "inline": {"policies": ["permit(principal, action, resource);"]}});
    match kind.kind {
        "EmbeddingServer" => json!({"model": "m", "image": "registry.example/tei:1"}),
        "MCPRegistry" => {
            json!({"configYAML": "a: 1\n", "pgpassSecretRef": {"name": "postgres", "key": "pgpass"}})
        }
        "MCPRemoteProxy" => json!({"remoteUrl": "https://mcp.example", "authzConfig": authz}),
        "MCPServer" => json!({"image": "registry.example/mcp:1", "authzConfig": authz}),
        "VirtualMCPServer" => json!({
            "groupRef": {"name": "all"}, "incomingAuth": {"type": "anonymous"},
        }),
        _ => specimen(kind),
    }
}

/// One object of each kind, and for those with children one that gets them.
async fn create_owners(fixture: &Fixture) -> Vec<DynamicObject> {
    create_referents(fixture).await;
    let mut owners = Vec::new();
    for kind in all_kinds() {
        let name = format!("o-{}", kind.kind.to_lowercase());
        fixture.create(kind, &name, spec(kind)).await;
        owners.push(fixture.settle_any(kind, &name).await);
    }
    owners
}

/// The spec of the first object with which the API itself is tested.
fn specimen(kind: Kind) -> Value {
    let folder = repository("crates/api/tests/it/specimens").join(kind.kind);
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let object: Value = serde_saphyr::from_str(&fs::read_to_string(&files[0]).unwrap()).unwrap();
    object["spec"].clone()
}

async fn create_foreign(fixture: &Fixture, owner: &DynamicObject) {
    let (types, metadata) = (owner.types.as_ref().unwrap(), &owner.metadata);
    for (kind, object) in foreign() {
        for applies in [false, true] {
            let mut object = object.clone();
            object["apiVersion"] = json!(kind.api_version());
            object["kind"] = json!(kind.kind);
            let verb = if applies { "applied" } else { "created" };
            object["metadata"]["name"] = json!(format!("{verb}-for-{}", metadata.name.as_deref().unwrap()));
            object["metadata"]["ownerReferences"] = json!([{
                "apiVersion": types.api_version, "kind": types.kind, "name": metadata.name, "uid": metadata.uid,
                "controller": true, "blockOwnerDeletion": true,
            }]);
            write_as_another(fixture, kind, &object, applies).await;
        }
    }
}

/// The version of each object that another program created.
async fn versions(fixture: &Fixture) -> BTreeMap<String, String> {
    let mut versions = BTreeMap::new();
    for (kind, _) in foreign() {
        for object in fixture.objects(kind).await {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
            if text("name").contains("-for-") {
                versions.insert(format!("{} {}", kind.kind, text("name")), text("resourceVersion"));
            }
        }
    }
    versions
}

#[tokio::test]
async fn what_another_controller_creates_for_an_object_of_ours_is_never_touched() {
    let fixture = Fixture::new().await;
    let owners = create_owners(&fixture).await;
    fixture.until_idle().await;
    let recording = fixture.record();
    for owner in &owners {
        create_foreign(&fixture, owner).await;
    }
    let before = versions(&fixture).await;
    assert_eq!(before.len(), owners.len() * foreign().len() * 2);
    fixture.until_idle().await;
    let fixture = fixture.restart().await;
    fixture.until_idle().await;
    assert_eq!(recording.writes().await, [] as [&str; 0]);
    assert_eq!(versions(&fixture).await, before);

    // Not even when a child of ours is deleted: it is found among theirs.
    let change = json!({"spec": {"serviceAccount": "mine"}});
    fixture.patch_any(Servers::kind(), "o-mcpserver", change).await;
    fixture.settle_any(Servers::kind(), "o-mcpserver").await;
    assert!(fixture.object(ServiceAccounts::kind(), "o-mcpserver-sa").await.is_none(), "ours is deleted");
    let has_children = fixture.object(Deployments::kind(), "o-mcpregistry-api").await;
    assert!(has_children.is_some(), "{} has children", Registries::kind().kind);
    assert_eq!(versions(&fixture).await, before);
    fixture.operator.stop().await;
}

/// ToolHive's operator gave its children fixed names, and no record of what it applied.
#[tokio::test]
async fn what_toolhive_created_under_its_own_names_is_deleted_when_it_is_not_desired() {
    let fixture = Fixture::new().await.stopped().await;
    let spec = json!({"image": "registry.example/mcp:1", "serviceAccount": "mine"});
    fixture.create(Servers::kind(), "fetch", spec).await;
    let owner = fixture.object(Servers::kind(), "fetch").await.unwrap();
    let names = [
        (ServiceAccounts::kind(), "fetch-sa", true),
        (ConfigMaps::kind(), "fetch-authz-inline", true),
        (ServiceAccounts::kind(), "fetch-dashboard", false),
        (ConfigMaps::kind(), "fetch-sa", false),
    ];
    for (kind, name, _) in names {
        let metadata = json!({"name": name, "ownerReferences": [{
            "apiVersion": Servers::kind().api_version(), "kind": Servers::kind().kind, "name": "fetch",
            "uid": owner.metadata.uid, "controller": true,
        }]});
        let object = json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": metadata});
        write_as_another(&fixture, kind, &object, false).await;
    }
    let fixture = fixture.restart().await;
    fixture.settle("fetch").await;
    for (kind, name, is_toolhives) in names {
        let is_deleted = fixture.object(kind, name).await.is_none();
        assert_eq!(is_deleted, is_toolhives, "{} {name}", kind.kind);
    }
    fixture.operator.stop().await;
}

/// The kind and name of every child, sorted.
fn sorted(children: impl IntoIterator<Item = (Kind, String)>) -> BTreeSet<(&'static str, String)> {
    children.into_iter().map(|(kind, name)| (kind.kind, name)).collect()
}

/// What is not among them would never be taken over from ToolHive, and never be deleted.
#[tokio::test]
async fn the_children_of_an_object_are_exactly_those_that_its_kind_names() {
    let fixture = Fixture::new().await;
    for owner in create_owners(&fixture).await {
        let kind = *all_kinds().iter().find(|kind| kind.kind == owner.types.as_ref().unwrap().kind).unwrap();
        let name = owner.metadata.name.as_deref().unwrap();
        let mut live = Vec::new();
        for (kind, _) in foreign() {
            for object in fixture.objects(kind).await {
                let mut references = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
                if references.any(|reference| reference["uid"] == json!(owner.metadata.uid)) {
                    live.push((kind, object["metadata"]["name"].as_str().unwrap().to_owned()));
                }
            }
        }
        let mut named = names_of_children(kind, name);
        // The proxy makes it.
        named.retain(|(child, _)| kind != Servers::kind() || *child != StatefulSets::kind());
        assert_eq!(sorted(live), sorted(named), "{} {name}", kind.kind);
    }
    fixture.operator.stop().await;
}

/// An object that a user made under the name of a child, with as little as the API server accepts.
async fn create_in_the_way(fixture: &Fixture, kind: Kind, name: &str, applies: bool) -> DynamicObject {
    let (_, mut object) = foreign().into_iter().find(|(other, _)| *other == kind).unwrap();
    object["apiVersion"] = json!(kind.api_version());
    object["kind"] = json!(kind.kind);
    object["metadata"] = json!({"name": name});
    write_as_another(fixture, kind, &object, applies).await;
    fixture.object(kind, name).await.unwrap()
}

/// Whether the operator never writes a child: it makes a Secret once, and adopts what a proxy made.
fn is_never_written(owner: Kind, child: Kind) -> bool {
    child == Secrets::kind() || owner == Servers::kind() && child == StatefulSets::kind()
}

#[tokio::test]
async fn an_object_that_a_user_made_under_the_name_of_a_child_is_not_touched() {
    let fixture = Fixture::new().await;
    create_referents(&fixture).await;
    let mut tried = Vec::new();
    for kind in all_kinds() {
        for number in 0..names_of_children(kind, "").len() {
            for applies in [false, true] {
                let name = format!("{}-{number}-{applies}", kind.kind.to_lowercase());
                let (child, child_name) = names_of_children(kind, &name).remove(number);
                let before = create_in_the_way(&fixture, child, &child_name, applies).await;
                fixture.create(kind, &name, spec(kind)).await;
                tried.push((kind, name, child, child_name, before));
            }
        }
    }
    fixture.until_idle().await;
    for (kind, name, child, child_name, before) in &tried {
        let owner = fixture.settle_any(*kind, name).await;
        let what = format!("{} {child_name}", child.kind);
        assert_eq!(fixture.object(*child, child_name).await.as_ref(), Some(before), "{what}");
        if is_never_written(*kind, *child) {
            continue;
        }
        let status = owner.data["status"].to_string();
        assert!(status.contains(&format!("{what} exists already")), "{what}: {status}");
        assert!(status.contains("skep.dev/adopt=true"), "{what}: {status}");
        assert_eq!(conditions(&owner)["Ready"].0, "False", "{what}");
    }
    let tried: BTreeSet<_> = tried.iter().map(|(_, _, child, ..)| child.kind).collect();
    assert_eq!(tried, BTreeSet::from(foreign().map(|(kind, _)| kind.kind)));
    fixture.operator.stop().await;
}

#[tokio::test]
async fn an_object_in_the_way_is_written_once_its_user_hands_it_over_or_deletes_it() {
    let fixture = Fixture::new().await;
    let settled_with = async |name: &str, change: &str| {
        let runner = format!("{name}-proxy-runner");
        create_in_the_way(&fixture, Roles::kind(), &runner, false).await;
        fixture.create(Servers::kind(), name, json!({"image": "registry.example/mcp:1"})).await;
        let owner = fixture.settle_any(Servers::kind(), name).await;
        assert_eq!(owner.data["status"]["phase"], "Failed");
        match change {
            "delete" => fixture.delete(Roles::kind(), &runner).await,
            _ => {
                let annotation = json!({"metadata": {"annotations": {"skep.dev/adopt": "true"}}});
                fixture.patch_any(Roles::kind(), &runner, annotation).await;
            }
        }
        let uid = owner.metadata.uid.unwrap();
        let is_ours = |role: &Value| role["metadata"]["ownerReferences"][0]["uid"] == json!(uid);
        fixture.until_any(Roles::kind(), &runner, "ours", is_ours).await;
        let owner = fixture.settle_any(Servers::kind(), name).await;
        assert_ne!(owner.data["status"]["phase"], "Failed");
    };
    settled_with("adopted", "annotate").await;
    settled_with("freed", "delete").await;
    fixture.operator.stop().await;
}
