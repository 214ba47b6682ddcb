//! Each thing that can be wrong with an MCPRemoteProxy: it is told by its condition and by one event, what runs is left as
//! it is, and all is well again once it is mended.

use std::collections::BTreeMap;

use k8s_openapi::api::events::v1::Event;
use kube::{api::ListParams, core::DynamicObject};
use serde_json::{Value, json};
use skep_api::kinds::MCPRemoteProxy;
use skep_converge::Kind;
use skep_operator::watched::{
    AuthzConfigs, ConfigMaps, Deployments, ExternalAuthConfigs, OidcConfigs, RemoteProxies, Secrets,
    TelemetryConfigs, ToolConfigs,
};
use skep_testkit::fixtures::TestRemoteProxy;
use skep_world::Watched;

use crate::{
    fixture::{Fixture, conditions},
    references::{PERMIT, create_references},
};

/// A way in which a spec can be wrong.
struct Row {
    /// What is set in the spec.
    wrong: Value,
    /// The conditions that tell it, as type, status and reason.
    told: Vec<(&'static str, &'static str, &'static str)>,
    /// The reason of the event, if it keeps the proxy from having what it asks for.
    event: Option<&'static str>,
    mend: Mend,
}

/// How it is mended.
enum Mend {
    /// By taking back what was set.
    TakeBack,
    /// By an object that was missing.
    Create(Kind, Value),
}

fn row(wrong: Value, told: &[(&'static str, &'static str)], event: Option<&'static str>) -> Row {
    let told = told.iter().map(|(type_, reason)| (*type_, "False", *reason)).collect();
    Row { wrong, told, event, mend: Mend::TakeBack }
}

impl Row {
    fn until(self, kind: Kind, name: &str, content: Value) -> Self {
        Self { mend: Mend::Create(kind, object(kind, name, content)), ..self }
    }

    fn holds(mut self) -> Self {
        self.told.iter_mut().for_each(|(_, status, _)| *status = "True");
        self
    }
}

fn object(kind: Kind, name: &str, content: Value) -> Value {
    let mut object = json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": {"name": name}});
    object.as_object_mut().unwrap().extend(content.as_object().unwrap().clone());
    object
}

const CONFIGURATION: &str = "ConfigurationValid";
const AUTH: (&str, &str) = ("AuthConfigured", "AuthInvalid");
const NOT_APPLIED: Option<&str> = Some("NotApplied");

/// What is wrong with the spec by itself, or with what it names directly.
fn of_the_configuration() -> Vec<Row> {
    let exchange = json!({"spec": {"type": "unauthenticated"}});
    let document =
        json!({"version": "1.0", "type": "cedarv1", "cedar": {"policies": [PERMIT], "entities_json": "[]"}});
    let policies = json!({"data": {"authz.json": document.to_string()}});
    let from_map = |name: &str| json!({"authzConfig": {"type": "configMap", "configMap": {"name": name}}});
    let inline = json!({"type": "inline", "inline": {"policies": [PERMIT], "entitiesJson": "no list"}});
    let header = json!({"headerName": "X-Key", "valueSecretRef": {"name": "later", "key": "k"}});
    vec![
        row(
            json!({"remoteUrl": "https://localhost/mcp"}),
            &[(CONFIGURATION, "RemoteURLInvalid")],
            Some("RemoteURLInvalid"),
        ),
        row(
            json!({"externalAuthConfigRef": {"name": "later"}}),
            &[
                (CONFIGURATION, "ExternalAuthConfigFetchError"),
                AUTH,
                ("ExternalAuthConfigValidated", "ExternalAuthConfigNotFound"),
            ],
            Some("ExternalAuthConfigFetchError"),
        )
        .until(ExternalAuthConfigs::KIND, "later", exchange),
        row(
            json!({"authzConfig": inline}),
            &[(CONFIGURATION, "AuthzPolicySyntaxInvalid"), AUTH],
            Some("AuthzPolicySyntaxInvalid"),
        ),
        row(
            from_map("later"),
            &[(CONFIGURATION, "AuthzConfigMapNotFound"), AUTH],
            Some("AuthzConfigMapNotFound"),
        )
        .until(ConfigMaps::KIND, "later", policies),
        row(
            from_map("nonsense"),
            &[(CONFIGURATION, "AuthzConfigMapInvalid"), AUTH],
            Some("AuthzConfigMapInvalid"),
        ),
        row(
            json!({"headerForward": {"addPlaintextHeaders": {"Host": "x"}}}),
            &[(CONFIGURATION, "HeaderForwardInvalid")],
            Some("HeaderForwardInvalid"),
        ),
        row(
            json!({"headerForward": {"addHeadersFromSecret": [header]}}),
            &[(CONFIGURATION, "HeaderSecretNotFound")],
            Some("HeaderSecretNotFound"),
        )
        .until(Secrets::KIND, "later", json!({"stringData": {"k": "v"}})),
        row(
            json!({"podTemplateSpec": {"spec": {"containers": "many"}}}),
            &[("PodTemplateValid", "InvalidPodTemplateSpec")],
            Some("InvalidPodTemplateSpec"),
        ),
        // Of the right types, but no pod of a Deployment can be so. The API server tells.
        row(
            json!({"podTemplateSpec": {"spec": {"restartPolicy": "Never"}}}),
            &[("Ready", "NotReady")],
            NOT_APPLIED,
        ),
    ]
}

/// What is wrong with a configuration that the spec refers to.
fn of_references() -> Vec<Row> {
    let refers = |field: &str, name: &str| json!({field: {"name": name}});
    let oidc = |name: &str| json!({"oidcConfigRef": {"name": name, "audience": "a"}});
    let tools = |reason, name: &str| {
        row(refers("toolConfigRef", name), &[("ToolConfigValidated", reason)], NOT_APPLIED)
    };
    let otel = |reason, name: &str| {
        row(refers("telemetryConfigRef", name), &[("TelemetryConfigRefValidated", reason)], NOT_APPLIED)
    };
    let external = |reason, name: &str| {
        row(refers("externalAuthConfigRef", name), &[("ExternalAuthConfigValidated", reason)], NOT_APPLIED)
    };
    let server = |reason, name: &str| {
        row(refers("authServerRef", name), &[("AuthServerRefValidated", reason)], NOT_APPLIED)
    };
    let issuer = |reason, name: &str| row(oidc(name), &[("OIDCConfigRefValidated", reason)], NOT_APPLIED);
    let authz = |reason, name: &str| {
        row(refers("authzConfigRef", name), &[("AuthzConfigRefValidated", reason)], NOT_APPLIED)
    };
    vec![
        tools("ToolConfigNotFound", "later").until(
            ToolConfigs::KIND,
            "later",
            json!({"spec": {"toolsFilter": ["a"]}}),
        ),
        tools("ToolConfigInvalid", "bad"),
        otel("TelemetryConfigRefNotFound", "later").until(
            TelemetryConfigs::KIND,
            "later",
            json!({"spec": {}}),
        ),
        otel("TelemetryConfigRefInvalid", "bad"),
        external("InvalidExternalAuthConfig", "bad"),
        external("MultiUpstreamNotSupported", "two"),
        external("InvalidConfig", "login"),
        server("AuthServerRefNotFound", "never"),
        server("AuthServerRefInvalidType", "exchange"),
        server("MultiUpstreamNotSupported", "two"),
        server("AuthServerRefInvalidConfig", "login"),
        issuer("OIDCConfigRefNotFound", "later").until(
            OidcConfigs::KIND,
            "later",
            json!({"spec": {"type": "inline", "inline": {"issuer": "https://a.example"}}}),
        ),
        issuer("OIDCConfigRefNotValid", "bad"),
        authz("AuthzConfigRefNotFound", "later").until(
            AuthzConfigs::KIND,
            "later",
            json!({"spec": {"type": "cedarv1", "config": {"policies": [PERMIT]}}}),
        ),
        authz("AuthzConfigRefNotValid", "bad"),
    ]
}

/// What is told and keeps nothing from running.
fn of_advice() -> Vec<Row> {
    let group =
        |reason, name: &str| row(json!({"groupRef": {"name": name}}), &[("GroupRefValidated", reason)], None);
    let oidc = |name: &str| json!({"oidcConfigRef": {"name": name, "audience": "a"}});
    let inline = json!({"policies": [PERMIT], "primaryUpstreamProvider": "company"});
    vec![
        group("GroupRefNotFound", "never"),
        group("GroupRefNotReady", "group"),
        row(oidc("trusting"), &[("CABundleRefValidated", "CABundleRefNotFound")], None),
        row(oidc("trusting-nonsense"), &[("CABundleRefValidated", "CABundleRefInvalid")], None),
        row(
            json!({"authzConfig": {"type": "inline", "inline": inline}}),
            &[("AuthzPrimaryUpstreamProviderIgnored", "PrimaryUpstreamProviderIgnored")],
            None,
        )
        .holds(),
        row(json!({"replicas": 2}), &[("SessionStorageWarning", "SessionStorageMissingForReplicas")], None)
            .holds(),
    ]
}

/// Configurations that are no good.
async fn create_bad_ones(fixture: &Fixture) {
    let upstream = |name: &str| json!({"name": name, "type": "oidc", "oidcConfig": {"issuerUrl": "https://login.example", "clientId": "c"}});
    let two =
        json!({"issuer": "https://mcp.example", "upstreamProviders": [upstream("one"), upstream("two")]});
    let trusting = |bundle: &str| json!({"issuer": "https://a.example", "caBundleRef": {"configMapRef": {"name": bundle, "key": "ca.crt"}}});
    for (kind, name, content) in [
        (ToolConfigs::KIND, "bad", json!({"spec": {"toolsFilter": ["a,b"]}})),
        (
            TelemetryConfigs::KIND,
            "bad",
            json!({"spec": {"openTelemetry": {"enabled": true, "endpoint": "https://otel.example"}}}),
        ),
        (
            ExternalAuthConfigs::KIND,
            "bad",
            json!({"spec": {"type": "tokenExchange", "tokenExchange": {"tokenUrl": "no url", "audience": "b"}}}),
        ),
        (
            ExternalAuthConfigs::KIND,
            "two",
            json!({"spec": {"type": "embeddedAuthServer", "embeddedAuthServer": two}}),
        ),
        (
            OidcConfigs::KIND,
            "bad",
            json!({"spec": {"type": "inline", "inline": {"issuer": "http://login.example"}}}),
        ),
        (OidcConfigs::KIND, "trusting", json!({"spec": {"type": "inline", "inline": trusting("never")}})),
        (
            OidcConfigs::KIND,
            "trusting-nonsense",
            json!({"spec": {"type": "inline", "inline": trusting("nonsense")}}),
        ),
        (AuthzConfigs::KIND, "bad", json!({"spec": {"type": "cedarv1", "config": {"policies": []}}})),
        (ConfigMaps::KIND, "nonsense", json!({"data": {"authz.json": "type: opa"}})),
    ] {
        fixture.create_any(kind, &object(kind, name, content)).await;
    }
}

/// What a proxy is like at one time.
struct Seen {
    proxy: DynamicObject,
    deployment: DynamicObject,
}

impl Seen {
    fn told(&self) -> BTreeMap<String, (String, String)> {
        conditions(&self.proxy)
    }
}

fn name(number: usize) -> String {
    format!("p-{number}")
}

/// Waits until the operator has nothing more to do, and looks at every proxy.
async fn look(fixture: &Fixture, count: usize) -> Vec<Seen> {
    let mut seen = Vec::new();
    for number in 0..count {
        let name = name(number);
        let current = |object: &DynamicObject| {
            object.data["status"]["observedGeneration"].as_i64() == object.metadata.generation
        };
        fixture.until_any(RemoteProxies::KIND, &name, "reported on", current).await;
    }
    fixture.settle_any(RemoteProxies::KIND, &name(0)).await;
    for number in 0..count {
        let name = name(number);
        seen.push(Seen {
            proxy: fixture.object(RemoteProxies::KIND, &name).await.unwrap(),
            deployment: fixture.object(Deployments::KIND, &name).await.unwrap(),
        });
    }
    seen
}

/// The warnings about each proxy, as reason and note.
async fn warnings(fixture: &Fixture, of: &str) -> Vec<(String, String)> {
    let events = fixture.test.api::<Event>().list(&ListParams::default()).await.unwrap();
    let about =
        |event: &Event| event.regarding.as_ref().and_then(|regarding| regarding.name.as_deref()) == Some(of);
    let warnings =
        events.items.into_iter().filter(|event| event.type_.as_deref() == Some("Warning") && about(event));
    warnings.map(|event| (event.reason.unwrap_or_default(), event.note.unwrap_or_default())).collect()
}

/// The patch that takes back what was set.
fn taken_back(wrong: &Value) -> Value {
    let fields = wrong.as_object().unwrap().keys().map(|field| match field.as_str() {
        "remoteUrl" => (field.clone(), json!("https://mcp.example")),
        _ => (field.clone(), Value::Null),
    });
    json!({"spec": fields.collect::<serde_json::Map<_, _>>()})
}

#[tokio::test]
async fn whatever_is_wrong_is_told_once_and_leaves_what_runs_alone_until_it_is_mended() {
    let fixture = Fixture::new().await;
    create_references(&fixture).await;
    create_bad_ones(&fixture).await;
    let rows: Vec<Row> =
        of_the_configuration().into_iter().chain(of_references()).chain(of_advice()).collect();
    for number in 0..rows.len() {
        fixture.test.create_object(&MCPRemoteProxy::test(&name(number))).await;
    }
    let before = look(&fixture, rows.len()).await;

    for (number, row) in rows.iter().enumerate() {
        fixture.patch_any(RemoteProxies::KIND, &name(number), json!({"spec": row.wrong})).await;
    }
    let wrong = look(&fixture, rows.len()).await;
    for (number, row) in rows.iter().enumerate() {
        let (seen, what) = (&wrong[number], &row.wrong);
        for (type_, status, reason) in &row.told {
            let told = seen.told();
            assert_eq!(told.get(*type_), Some(&((*status).into(), (*reason).into())), "{what}: {told:#?}");
        }
        let told = warnings(&fixture, &name(number)).await;
        let status = &seen.proxy.data["status"];
        let Some(event) = row.event else {
            assert_eq!((&status["phase"], told.len()), (&json!("Pending"), 0), "{what} does not matter");
            continue;
        };
        assert_eq!(status["phase"], "Failed", "{what}");
        let note = format!("{}; what runs goes on as it is", status["message"].as_str().unwrap());
        assert_eq!(told, [(event.to_owned(), note)], "{what} is told once");
        assert_eq!(
            seen.deployment.metadata.resource_version, before[number].deployment.metadata.resource_version,
            "{what} leaves what runs alone"
        );
    }

    for (number, row) in rows.iter().enumerate() {
        match &row.mend {
            Mend::TakeBack => {
                fixture.patch_any(RemoteProxies::KIND, &name(number), taken_back(&row.wrong)).await;
            }
            Mend::Create(kind, object) => drop(fixture.create_any(*kind, object).await),
        }
    }
    let mended = look(&fixture, rows.len()).await;
    for (number, row) in rows.iter().enumerate() {
        let (seen, what) = (&mended[number], &row.wrong);
        assert_eq!(seen.proxy.data["status"]["phase"], "Pending", "{what}: {:#}", seen.proxy.data["status"]);
        let told = warnings(&fixture, &name(number)).await;
        assert_eq!(told.len(), usize::from(row.event.is_some()), "{what} is not told again: {told:#?}");
        let told = seen.told();
        match &row.mend {
            Mend::TakeBack => {
                assert_eq!(told, before[number].told(), "{what}: no trace is left");
                assert_eq!(seen.deployment.data["spec"], before[number].deployment.data["spec"], "{what}");
            }
            Mend::Create(..) => {
                for (type_, _, _) in &row.told {
                    let now = told.get(*type_).map(|(status, _)| status.as_str());
                    assert!(now == Some("True") || (*type_ == AUTH.0 && now.is_none()), "{what}: {told:#?}");
                }
            }
        }
    }
    fixture.operator.stop().await;
}
