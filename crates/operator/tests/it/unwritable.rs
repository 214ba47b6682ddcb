//! What cannot be written or read is reported.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::{Method, Request};
use k8s_openapi::api::{core::v1::Service, rbac::v1::Role};
use kube::{
    Client,
    client::{Body, ClientBuilder},
};
use serde_json::{Value, json};
use skep_api::kinds::{MCPOIDCConfig, MCPServer};
use skep_converge::Mode;
use skep_operator::{
    permissions,
    reconcile::Reconciler,
    run::{self, watches},
    settings::Settings,
};
use skep_testkit::{
    User,
    fixtures::{TestOidcConfig, TestServer},
    free_port, until,
};
use skep_world::{Target, Watched};
use tokio::sync::watch;
use tower::{BoxError, filter::FilterLayer};

use crate::{
    fixture::{Fixture, options},
    kinds::{OidcConfigs, Servers},
    observe::{fetched, until_counted},
    same_name::headless_service,
};

#[tokio::test]
async fn a_status_that_is_rejected_is_counted_and_published_and_makes_the_operator_unready() {
    let test = skep_testkit::namespace().await;
    test.create_object(&MCPServer::test("fetch")).await;
    let user = test.user("operator");
    let is_status = |resource: &String| resource.ends_with("/status");
    let mut rules = permissions::rules();
    rules.retain(|rule| !rule.resources.iter().flatten().all(is_status));
    test.grant(&user, rules).await;
    let (metrics, health) = (free_port(), free_port());
    let mut options = options(vec![test.name().into()], Settings::default());
    (options.metrics, options.health) = (([127, 0, 0, 1], metrics).into(), ([127, 0, 0, 1], health).into());
    options.unready_after = Duration::from_secs(2);
    let (stop, stopped) = watch::channel(false);
    let config = user.config();
    let operator = tokio::spawn(async move { run::run(config, options, stopped).await.expect("it runs") });
    until_counted(metrics, r#"skep_operator_rejected_statuses_total{kind="MCPServer"} 1"#).await;
    assert!(fetched(health, "/readyz").await.starts_with("HTTP/1.1 200"), "it may pass");
    let is_ready = async |ready: bool, reason: &str| {
        let answer = fetched(health, "/readyz").await;
        answer.starts_with("HTTP/1.1 200") == ready && answer.contains(reason)
    };
    until("it is not ready", || is_ready(false, "no status could be written for 2s: cannot apply")).await;
    test.object::<Role>(user.name()).patch(&json!({"rules": permissions::rules()})).await;
    until("it is ready again", || is_ready(true, "ok")).await;
    stop.send_replace(true);
    operator.await.unwrap();
    let fixture = Fixture::of(test, user.clone(), user.config(), Settings::default()).stopped().await;
    let events = fixture.events().await;
    assert!(events.iter().any(|(reason, _)| reason == "StatusNotWritten"), "{events:?}");
}

/// A client whose writes of Deployments fail, each with another text.
fn failing_client(user: &User) -> Client {
    let attempts = Arc::new(AtomicUsize::new(1));
    let reject = move |request: Request<Body>| -> Result<Request<Body>, BoxError> {
        if *request.method() == Method::PATCH && request.uri().path().contains("/deployments/") {
            return Err(format!("attempt {} failed", attempts.fetch_add(1, Ordering::Relaxed)).into());
        }
        Ok(request)
    };
    ClientBuilder::try_from(user.config()).unwrap().with_layer(&FilterLayer::new(reject)).build()
}

#[tokio::test]
async fn a_write_that_fails_with_another_text_at_each_retry_is_one_event() {
    let fixture = Fixture::new().await.stopped().await;
    fixture.test.create_object(&MCPServer::test("fetch")).await;
    let (client, namespace) = (failing_client(&fixture.user), fixture.test.name().to_owned());
    let world = watches().start(&client, std::slice::from_ref(&namespace));
    world.listed().await;
    let settings = Arc::new(Settings::default());
    let reconciler = Reconciler::<MCPServer>::new(client, world, settings, Arc::default(), Mode::Write);
    let target =
        Arc::new(Target { kind: Servers::kind(), namespace: namespace.clone().into(), name: "fetch".into() });
    // The first one adds the finalizer alone.
    reconciler.reconcile(&target).await.unwrap();
    let recording = fixture.record();
    for _ in 0..3 {
        reconciler.reconcile(&target).await.unwrap_err();
    }
    let failed = |attempt| {
        format!("cannot apply Deployment {namespace}/fetch: ServiceError: attempt {attempt} failed")
    };
    let message = fixture.test.object::<MCPServer>("fetch").get().await.status.unwrap().message.unwrap();
    assert_eq!(message, failed(3), "the status has the last one");
    let events = recording.requests().await.into_iter().filter(|request| request.resource == "events");
    let notes: Vec<Value> = events.map(|event| event.body.unwrap()["note"].take()).collect();
    assert_eq!(notes, [format!("{}; existing pods keep running", failed(1))]);
}

/// A deletion cannot be undone, so a stale cache does not decide it.
#[tokio::test]
async fn a_referrer_that_the_cache_does_not_have_yet_holds_a_deletion() {
    let fixture = Fixture::new().await;
    fixture.test.create_object(&MCPOIDCConfig::test("company")).await;
    fixture.settle_any(OidcConfigs::kind(), "company").await;
    let fixture = fixture.stopped().await;
    fixture.delete(OidcConfigs::kind(), "company").await;

    let (client, namespace) = (fixture.user.client(), fixture.test.name().to_owned());
    let world = watches().list(&client, std::slice::from_ref(&namespace)).await.unwrap();
    fixture.test.create_object(&MCPServer::test("fetch").streamable_http().with_oidc("company")).await;
    let settings = Arc::new(Settings::default());
    let reconciler = Reconciler::<MCPOIDCConfig>::new(client, world, settings, Arc::default(), Mode::Write);
    let target =
        Arc::new(Target { kind: OidcConfigs::kind(), namespace: namespace.into(), name: "company".into() });
    reconciler.reconcile(&target).await.unwrap();
    let config = fixture.object(OidcConfigs::kind(), "company").await;
    assert!(config.is_some(), "a server refers to it");
    assert!(fixture.object(Servers::kind(), "fetch").await.is_some());
}

#[tokio::test]
async fn a_server_whose_services_would_be_those_of_another_creates_nothing() {
    let fixture = Fixture::new().await;
    fixture.settled(&MCPServer::test("y").streamable_http()).await;
    fixture.test.create_object(&headless_service("y")).await;
    for (name, service, owner) in
        [("y-proxy", "mcp-y-proxy", "MCPServer y"), ("y-headless", "mcp-y-headless", "StatefulSet y")]
    {
        let server = fixture.settled(&MCPServer::test(name).streamable_http()).await;
        let message = server.status.unwrap().message.unwrap();
        let expected = format!(
            "metadata.name: needs Service {service}, which belongs to {owner}: rename one of the two"
        );
        assert_eq!(message, expected);
        let deployment = fixture.object(skep_operator::resources::Deployments::kind(), name).await;
        assert_eq!(json!(deployment), Value::Null);
    }
    fixture.operator.stop().await;
}

/// The Services that a proxy creates belong to the StatefulSet of its server.
#[tokio::test(flavor = "multi_thread")]
async fn the_services_of_its_own_proxy_are_not_those_of_another() {
    let fixture = Fixture::new().await;
    let server = fixture.settled(&MCPServer::test("y").streamable_http()).await;
    for name in ["mcp-y", "mcp-y-headless"] {
        let owner = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "y", "uid": "of-the-set", "controller": true});
        let service: Service = serde_json::from_value(json!({
            "metadata": {"name": name, "labels": {"app": "y", "toolhive": "true"}, "ownerReferences": [owner]},
            "spec": {"ports": [{"port": 80}], "selector": {"app": "y"}},
        }))
        .unwrap();
        fixture.test.create_object(&service).await;
    }
    // Whatever happens next, it is reconciled with them.
    let changed = json!({"spec": {"args": ["--changed"]}});
    fixture.test.object::<MCPServer>("y").patch(&changed).await;
    let after = fixture.settle("y").await;
    assert_eq!(after.status.unwrap().phase, server.status.unwrap().phase);
    fixture.operator.stop().await;
}
