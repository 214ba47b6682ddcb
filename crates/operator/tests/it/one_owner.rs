//! The status of a configuration has one owner: it lists the workloads that use it, which block its deletion.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use skep_converge::Kind;
use skep_testkit::json::{condition, with_fields};
use skep_world::Watched;

use crate::{
    fixture::Fixture,
    kinds::{
        AuthzConfigs, Entries, ExternalAuthConfigs, Groups, OidcConfigs, RemoteProxies, Servers, ToolConfigs,
        VirtualServers, all_kinds,
    },
    references::references,
};

/// The kinds of configuration, each with a spec that is valid.
fn configurations() -> Vec<(Kind, Value)> {
    let is_config = |kind: &Kind| skep_api::kinds::config_kinds().any(|name| name == kind.kind);
    let spec = |kind: Kind| {
        let (_, object) = references().into_iter().find(|(other, _)| *other == kind)?;
        Some((kind, object["spec"].clone()))
    };
    let spec = |kind: Kind| spec(kind).unwrap_or_else(|| panic!("add an {} to references()", kind.kind));
    all_kinds().into_iter().filter(is_config).map(spec).collect()
}

/// The spec of an MCPOIDCConfig.
fn oidc_config() -> Value {
    let mut all = configurations().into_iter();
    all.find(|(kind, _)| *kind == OidcConfigs::kind()).unwrap().1
}

#[test]
fn every_kind_of_reference_to_a_configuration_is_tried() {
    let referrers = referrers();
    for (field, _) in references_to_configurations() {
        for workload in kinds_with(field) {
            let is_tried = |(_, kind, spec): &Referrer| {
                kind.kind == workload && spec("NAME").to_string().contains(&format!("\"{field}\""))
            };
            assert!(referrers.iter().any(is_tried), "{workload} {field}: add it to nested_referrers()");
        }
    }
}

/// The fields that refer to a configuration, each with its kind.
fn references_to_configurations() -> impl Iterator<Item = (&'static str, Kind)> {
    let kind = |name: &str| configurations().into_iter().map(|(kind, _)| kind).find(|kind| kind.kind == name);
    skep_api::refs::REFERENCES.iter().filter_map(move |(field, name)| Some((*field, kind(name)?)))
}

/// The schema of the spec of every kind.
fn schemas() -> impl Iterator<Item = (String, Value)> {
    let crds = skep_api::crd::crds().unwrap().into_iter();
    crds.map(|crd| {
        let name = crd.spec.names.kind.clone();
        let schema = skep_api::crd::to_json(&crd).unwrap();
        (name, schema["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"].clone())
    })
}

/// The kinds whose spec has a field of this name, at any depth.
fn kinds_with(field: &str) -> Vec<String> {
    let has = |(_, schema): &(String, Value)| schema.to_string().contains(&format!("\"{field}\":{{"));
    schemas().filter(has).map(|(kind, _)| kind).collect()
}

/// The kind of a configuration, that of a workload, and the workload's spec around the configuration's name.
type Referrer = (Kind, Kind, Box<dyn Fn(&str) -> Value>);

/// Every kind of reference to a configuration.
fn referrers() -> Vec<Referrer> {
    let mut all = nested_referrers();
    let schemas: BTreeMap<String, Value> = schemas().collect();
    for (field, config) in references_to_configurations() {
        for (workload, spec) in workloads() {
            let schema = &schemas[workload.kind]["properties"][field];
            if schema.is_null() {
                continue;
            }
            let has_audience = !schema["properties"]["audience"].is_null();
            let reference = move |name: &str| match has_audience {
                true => json!({"name": name, "audience": "a"}),
                false => json!({"name": name}),
            };
            let spec = move |name: &str| with_fields(spec.clone(), json!({field: reference(name)}));
            all.push((config, workload, Box::new(spec)));
        }
    }
    all
}

/// The kinds that refer to configurations, each with a spec that does not.
fn workloads() -> Vec<(Kind, Value)> {
    let entry =
        json!({"remoteUrl": "https://mcp.example/mcp", "transport": "sse", "groupRef": {"name": "g"}});
    vec![
        (Servers::kind(), server(json!({}))),
        (RemoteProxies::kind(), remote(json!({}))),
        (Entries::kind(), entry),
        (VirtualServers::kind(), virtual_server(json!({}))),
    ]
}

/// The references that are not fields of the spec itself.
fn nested_referrers() -> Vec<Referrer> {
    fn referrer(config: Kind, spec: fn(&str) -> Value) -> Referrer {
        (config, VirtualServers::kind(), Box::new(move |name| virtual_server(spec(name))))
    }
    vec![
        referrer(
            AuthzConfigs::kind(),
            |name| json!({"incomingAuth": {"type": "anonymous", "authzConfigRef": {"name": name}}}),
        ),
        referrer(ExternalAuthConfigs::kind(), |name| {
            let auth = json!({"type": "externalAuthConfigRef", "externalAuthConfigRef": {"name": name}});
            json!({"outgoingAuth": {"default": auth}})
        }),
        referrer(ExternalAuthConfigs::kind(), |name| {
            let auth = json!({"type": "externalAuthConfigRef", "externalAuthConfigRef": {"name": name}});
            json!({"outgoingAuth": {"backends": {"a": auth}}})
        }),
        referrer(
            OidcConfigs::kind(),
            |name| json!({"incomingAuth": {"type": "oidc", "oidcConfigRef": {"name": name, "audience": "a"}}}),
        ),
        referrer(ToolConfigs::kind(), |name| {
            let tools = json!([{"workload": "a", "toolConfigRef": {"name": name}}]);
            json!({"config": {"aggregation": {"tools": tools}}})
        }),
    ]
}

fn server(fields: Value) -> Value {
    with_fields(json!({"image": "registry.example/mcp:1"}), fields)
}

fn remote(fields: Value) -> Value {
    with_fields(json!({"remoteUrl": "https://mcp.example/mcp"}), fields)
}

fn virtual_server(fields: Value) -> Value {
    with_fields(json!({"groupRef": {"name": "g"}, "incomingAuth": {"type": "anonymous"}}), fields)
}

fn listed(object: &Value) -> Value {
    object["status"]["referencingWorkloads"].clone()
}

#[tokio::test]
async fn every_reference_to_a_configuration_is_listed_and_blocks_its_deletion() {
    let fixture = Fixture::new().await;
    for (kind, spec) in configurations() {
        fixture.create(kind, "shared", spec).await;
    }
    for (number, (config, workload, spec)) in referrers().into_iter().enumerate() {
        let name = format!("w-{number}");
        fixture.create(workload, &name, spec("shared")).await;
        let entry = json!([{"kind": workload.kind, "name": name}]);
        fixture.until_any(config, "shared", "listing its referrer", |object| listed(object) == entry).await;
        fixture.delete(config, "shared").await;
        let held = |object: &Value| condition(object, "DeletionBlocked")["reason"] == "ReferencedByWorkloads";
        fixture.until_any(config, "shared", "held back", held).await;
        fixture.delete(workload, &name).await;
        fixture.until_any(config, "shared", "deleted", Value::is_null).await;
        let spec = configurations().into_iter().find(|(kind, _)| *kind == config).unwrap().1;
        fixture.create(config, "shared", spec).await;
    }
    fixture.operator.stop().await;
}

#[tokio::test]
async fn referrers_are_listed_in_order_and_each_change_costs_one_write() {
    let fixture = Fixture::new().await;
    fixture.create(OidcConfigs::kind(), "company", oidc_config()).await;
    let oidc = |name: &str| json!({"oidcConfigRef": {"name": name, "audience": "a"}});
    fixture.create(Servers::kind(), "b", server(oidc("company"))).await;
    fixture.create(Servers::kind(), "a", server(oidc("company"))).await;
    fixture.create(RemoteProxies::kind(), "z", remote(oidc("company"))).await;
    let all = json!([
        {"kind": "MCPRemoteProxy", "name": "z"}, {"kind": "MCPServer", "name": "a"}, {"kind": "MCPServer", "name": "b"},
    ]);
    fixture.until_any(OidcConfigs::kind(), "company", "listing all", |object| listed(object) == all).await;
    fixture.settle("a").await;
    fixture.settle("b").await;

    let recording = fixture.record();
    fixture.patch("a", json!({"spec": {"oidcConfigRef": {"name": "other"}}})).await;
    let rest = json!([{"kind": "MCPRemoteProxy", "name": "z"}, {"kind": "MCPServer", "name": "b"}]);
    fixture
        .until_any(OidcConfigs::kind(), "company", "without the one that left", |object| {
            listed(object) == rest
        })
        .await;
    fixture.settle("a").await;
    // A change that keeps the references does not affect the configuration.
    fixture.patch("b", json!({"spec": {"image": "registry.example/mcp:2"}})).await;
    fixture.settle("b").await;
    assert_eq!(recording.count("patch", "mcpoidcconfigs", "status").await, 1);
    assert_eq!(recording.count("patch", "mcpoidcconfigs", "").await, 0);
    fixture.operator.stop().await;
}

#[tokio::test]
async fn a_workload_has_the_hash_and_the_condition_only_while_it_has_the_reference() {
    let fixture = Fixture::new().await;
    fixture.create(OidcConfigs::kind(), "company", oidc_config()).await;
    fixture
        .create(Servers::kind(), "a", server(json!({"oidcConfigRef": {"name": "company", "audience": "a"}})))
        .await;
    fixture.settle("a").await;
    let config = fixture.settle_any(OidcConfigs::kind(), "company").await;
    let server = fixture.settle_any(Servers::kind(), "a").await;
    assert_eq!(server.data["status"]["oidcConfigHash"], config.data["status"]["configHash"]);
    assert!(config.data["status"]["configHash"].is_string());

    fixture.patch_any(OidcConfigs::kind(), "company", json!({"spec": {"inline": {"clientId": "x"}}})).await;
    let hash = config.data["status"]["configHash"].clone();
    fixture
        .until_any(OidcConfigs::kind(), "company", "hashed again", |object| {
            object["status"]["configHash"] != hash
        })
        .await;
    let config = fixture.settle_any(OidcConfigs::kind(), "company").await;
    let arrived = |object: &Value| object["status"]["oidcConfigHash"] == config.data["status"]["configHash"];
    fixture.until_any(Servers::kind(), "a", "using the new one", arrived).await;

    fixture.patch("a", json!({"spec": {"oidcConfigRef": null}})).await;
    let removed = |object: &Value| {
        object["status"]["oidcConfigHash"].is_null() && condition(object, "OIDCConfigRefValidated").is_null()
    };
    fixture.until_any(Servers::kind(), "a", "without the condition", removed).await;
    fixture.operator.stop().await;
}

#[tokio::test]
async fn a_changed_configuration_rolls_the_pods_that_use_it_and_no_others() {
    let fixture = Fixture::new().await;
    let oidc = |name: &str| server(json!({"oidcConfigRef": {"name": name, "audience": "a"}}));
    for name in ["company", "partner"] {
        fixture.create(OidcConfigs::kind(), name, oidc_config()).await;
        fixture.create(Servers::kind(), name, oidc(name)).await;
        fixture.settle(name).await;
    }
    let (before, others) = (fixture.pod_annotations("company").await, fixture.deployment("partner").await);

    let recording = fixture.record();
    let client = json!({"spec": {"inline": {"clientId": "x"}}});
    fixture.patch_any(OidcConfigs::kind(), "company", client).await;
    fixture.settle_any(OidcConfigs::kind(), "company").await;
    fixture.settle("company").await;
    let after = fixture.pod_annotations("company").await;
    let checksum = "toolhive.stacklok.dev/runconfig-checksum";
    assert_ne!(after[checksum], before[checksum]);
    let partner = fixture.deployment("partner").await;
    assert_eq!(partner.metadata.resource_version, others.metadata.resource_version);
    let writes = recording.writes().await;
    assert!(writes.iter().all(|write| !write.contains("partner")), "{writes:#?}");
    fixture.operator.stop().await;
}

#[tokio::test]
async fn an_invalid_configuration_is_reported_and_the_last_valid_one_stays_in_use() {
    let fixture = Fixture::new().await;
    fixture.create(OidcConfigs::kind(), "company", oidc_config()).await;
    fixture
        .create(Servers::kind(), "a", server(json!({"oidcConfigRef": {"name": "company", "audience": "a"}})))
        .await;
    fixture.settle("a").await;
    let good = fixture.settle_any(OidcConfigs::kind(), "company").await;
    let before = fixture.deployment("a").await.metadata.resource_version;

    let plain = json!({"spec": {"inline": {"issuer": "http://login.example"}}});
    fixture.patch_any(OidcConfigs::kind(), "company", plain).await;
    let invalid = |object: &Value| {
        let valid = condition(object, "Valid");
        valid["reason"] == "ConfigInvalid"
            && valid["message"].as_str().unwrap_or_default().contains("inline.issuer")
    };
    fixture.until_any(OidcConfigs::kind(), "company", "invalid", invalid).await;
    let blocked =
        |object: &Value| condition(object, "OIDCConfigRefValidated")["reason"] == "OIDCConfigRefNotValid";
    fixture.until_any(Servers::kind(), "a", "reported", blocked).await;
    let bad = fixture.settle_any(OidcConfigs::kind(), "company").await;
    assert_eq!(bad.data["status"]["configHash"], good.data["status"]["configHash"]);
    assert_eq!(fixture.deployment("a").await.metadata.resource_version, before);
    fixture.operator.stop().await;
}

#[tokio::test]
async fn a_missing_secret_is_reported_until_it_exists_and_rejects_nothing() {
    let fixture = Fixture::new().await;
    let spec =
        json!({"type": "bearerToken", "bearerToken": {"tokenSecretRef": {"name": "token", "key": "t"}}});
    fixture.create(ExternalAuthConfigs::kind(), "auth", spec).await;
    let reported = |object: &Value| {
        condition(object, "Valid")["status"] == "True"
            && condition(object, "ReferencesResolved")["message"].as_str().is_some_and(|message| {
                message.starts_with("bearerToken.tokenSecretRef: Secret token does not exist")
            })
    };
    fixture.until_any(ExternalAuthConfigs::kind(), "auth", "reported", reported).await;
    let secret = json!({"metadata": {"name": "token"}, "stringData": {"t": "x"}});
    fixture
        .test
        .create_object(&serde_json::from_value::<k8s_openapi::api::core::v1::Secret>(secret).unwrap())
        .await;
    let resolved = |object: &Value| condition(object, "ReferencesResolved").is_null();
    fixture.until_any(ExternalAuthConfigs::kind(), "auth", "resolved", resolved).await;
    fixture.operator.stop().await;
}

#[tokio::test]
async fn a_referrer_created_during_a_deletion_is_always_noticed() {
    let fixture = Fixture::new().await;
    let mut held = 0;
    for round in 0..12 {
        let (config, workload) = (format!("c-{round}"), format!("w-{round}"));
        fixture.create(OidcConfigs::kind(), &config, oidc_config()).await;
        let marked = |object: &Value| object["metadata"]["finalizers"].is_array();
        fixture.until_any(OidcConfigs::kind(), &config, "looked after", marked).await;
        let spec = server(json!({"oidcConfigRef": {"name": config, "audience": "a"}}));
        tokio::join!(
            fixture.delete(OidcConfigs::kind(), &config),
            fixture.create(Servers::kind(), &workload, spec),
        );
        let settled = fixture.settle_any(Servers::kind(), &workload).await;
        let settled = serde_json::to_value(settled).unwrap();
        let reason = condition(&settled, "OIDCConfigRefValidated")["reason"].clone();
        match fixture.object(OidcConfigs::kind(), &config).await {
            Some(_) => {
                held += 1;
                assert_eq!(reason, "OIDCConfigRefValid", "round {round}");
            }
            None => assert_eq!(reason, "OIDCConfigRefNotFound", "round {round}"),
        }
    }
    println!("held back in {held} of 12 rounds");
    fixture.operator.stop().await;
}

#[tokio::test]
async fn a_group_lists_its_members_of_every_kind_and_can_be_deleted_while_it_has_members() {
    let fixture = Fixture::new().await;
    fixture.create(Groups::kind(), "g", json!({})).await;
    let group = json!({"groupRef": {"name": "g"}});
    fixture.create(Servers::kind(), "b", server(group.clone())).await;
    fixture.create(Servers::kind(), "a", server(group.clone())).await;
    fixture.create(RemoteProxies::kind(), "r", remote(group.clone())).await;
    let entry =
        json!({"remoteUrl": "https://mcp.example/mcp", "transport": "sse", "groupRef": {"name": "g"}});
    fixture.create(Entries::kind(), "e", entry).await;
    let full = |object: &Value| {
        let status = &object["status"];
        status["servers"] == json!(["a", "b"])
            && status["serverCount"] == 2
            && status["remoteProxies"] == json!(["r"])
            && status["entries"] == json!(["e"])
            && status["phase"] == "Ready"
    };
    fixture.until_any(Groups::kind(), "g", "full", full).await;
    fixture.until_any(Entries::kind(), "e", "valid", |object| object["status"]["phase"] == "Valid").await;

    // As ToolHive left it.
    fixture
        .patch_any(
            Groups::kind(),
            "g",
            json!({"metadata": {"finalizers": ["toolhive.stacklok.dev/mcpgroup-finalizer"]}}),
        )
        .await;
    let recording = fixture.record();
    fixture.delete(Groups::kind(), "g").await;
    fixture.until_any(Groups::kind(), "g", "deleted", Value::is_null).await;
    for (kind, name) in [(Servers::kind(), "a"), (RemoteProxies::kind(), "r"), (Entries::kind(), "e")] {
        let reported =
            |object: &Value| condition(object, "GroupRefValidated")["reason"] == "GroupRefNotFound";
        fixture.until_any(kind, name, "reported", reported).await;
    }
    let writes = recording.requests().await;
    let of_group =
        |request: &&skep_testkit::audit::Request| request.query.contains("fieldManager=skep-mcpgroup");
    assert_eq!(writes.iter().filter(of_group).filter(|request| request.resource != "mcpgroups").count(), 0);
    fixture.operator.stop().await;
}

/// With every controller running and every kind of reference in place, each writes its own kind's status, its own
/// kind's metadata and its own children, and nothing else.
#[tokio::test]
async fn each_controller_writes_the_status_of_its_own_kind_alone() {
    let fixture = Fixture::new().await;
    let recording = fixture.record();
    fixture.create(Groups::kind(), "g", json!({})).await;
    for (kind, spec) in configurations() {
        fixture.create(kind, "shared", spec).await;
    }
    for (number, (_, workload, spec)) in referrers().into_iter().enumerate() {
        let spec = match workload {
            kind if kind == Servers::kind() || kind == RemoteProxies::kind() => {
                with_fields(spec("shared"), json!({"groupRef": {"name": "g"}}))
            }
            _ => spec("shared"),
        };
        fixture.create(workload, &format!("w-{number}"), spec).await;
    }
    for (kind, spec) in configurations() {
        let label = json!({"metadata": {"labels": {"touched": "yes"}}, "spec": spec});
        fixture.patch_any(kind, "shared", label).await;
        fixture.settle_any(kind, "shared").await;
    }
    let requests = recording.requests().await;
    let kinds: Vec<_> = skep_api::crd::crds().unwrap().into_iter().map(|crd| crd.spec.names).collect();
    let mut checked = 0;
    for request in requests.iter().filter(|request| request.is_write() && request.resource != "events") {
        let manager = request.query.split('&').find_map(|part| part.strip_prefix("fieldManager=skep-"));
        let manager = manager.unwrap_or_else(|| panic!("{request} names no manager: {}", request.query));
        // A Secret with a random value is created once, and never written again. Nothing else is a creation or a PUT.
        let makes_secret = request.verb == "create" && request.resource == "secrets";
        assert!(makes_secret || matches!(request.verb.as_str(), "patch" | "delete"), "{request}");
        let kind = kinds.iter().find(|names| names.plural == request.resource);
        if let Some(kind) = kind {
            assert_eq!(kind.kind.to_lowercase(), manager, "{request}");
        } else {
            assert!(
                matches!(manager, "mcpserver" | "mcpremoteproxy" | "virtualmcpserver"),
                "{request} by {manager}"
            );
        }
        checked += 1;
    }
    assert!(checked > 50, "only {checked} writes were seen");
    fixture.operator.stop().await;
}
