//! A namespace, and proxies in it that run a server.

use std::time::Duration;

use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::Service, rbac::v1::PolicyRule};
use kube::{
    Client,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use skep_config::RunConfig;
use skep_proxy::runtime::kubernetes::{Kubernetes, Outcome, Platform, Server};
use skep_testkit::{Namespace, User};

/// How long anything may take before it counts as not happening.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A group, a resource in it, and verbs on it.
type Rule = (&'static str, &'static str, &'static [&'static str]);

const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];

/// The permissions of an MCPServer's proxy: the rules of its Role.
const ALLOWED: [Rule; 6] = [
    ("apps", "statefulsets", WRITE),
    ("", "services", WRITE),
    ("", "pods", READ),
    ("", "pods/log", &["get"]),
    ("", "pods/attach", &["create", "get"]),
    ("", "configmaps", READ),
];

fn policy((group, resource, verbs): Rule) -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec![group.into()]),
        resources: Some(vec![resource.into()]),
        verbs: verbs.iter().map(ToString::to_string).collect(),
        ..PolicyRule::default()
    }
}

/// A namespace with a user that has the permissions of a proxy.
pub(crate) struct Fixture {
    pub(crate) test: Namespace,
    pub(crate) proxy: User,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        let test = skep_testkit::namespace().await;
        let proxy = test.user("proxy");
        test.grant(&proxy, ALLOWED.map(policy).into()).await;
        Self { test, proxy }
    }

    /// The runtime of a proxy.
    pub(crate) fn kubernetes(&self) -> Kubernetes {
        self.through(self.proxy.client())
    }

    /// The same with this client.
    pub(crate) fn through(&self, client: Client) -> Kubernetes {
        Kubernetes::new(client, self.test.name(), Platform::Kubernetes)
    }

    /// Runs a server like a proxy that has just started.
    pub(crate) async fn run(&self, config: &RunConfig) -> Server {
        self.kubernetes().run(config).await.unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) async fn stateful_set(&self) -> StatefulSet {
        self.test.api().get("files").await.unwrap()
    }

    /// The image of the live StatefulSet.
    pub(crate) async fn image(&self) -> String {
        image(&self.stateful_set().await)
    }

    pub(crate) async fn service(&self, name: &str) -> Service {
        self.test.api().get(name).await.unwrap()
    }

    /// Changes the StatefulSet as another field manager.
    pub(crate) async fn patch_as(&self, manager: &str, patch: Value) {
        let params = PatchParams { field_manager: Some(manager.into()), ..PatchParams::default() };
        let api = self.test.api::<StatefulSet>();
        api.patch("files", &params, &Patch::Merge(patch)).await.unwrap();
    }
}

/// The RunConfig of a server, with these changes.
pub(crate) fn config(changes: Value) -> RunConfig {
    let mut config = json!({
        "name": "files", "container_name": "files", "transport": "streamable-http", "image": "files:1",
        "target_port": 8080, "container_labels": {"toolhive": "true", "toolhive-name": "files"},
    });
    config.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    RunConfig::parse(&config.to_string()).unwrap()
}

/// The same of a generation, whose number is also the image's.
pub(crate) fn of_generation(generation: i64) -> RunConfig {
    config(json!({"mcpserver_generation": generation, "image": format!("files:{generation}")}))
}

pub(crate) fn image(live: &StatefulSet) -> String {
    live.spec.as_ref().unwrap().template.spec.as_ref().unwrap().containers[0].image.clone().unwrap()
}

pub(crate) fn is_held_back(server: &Server) -> bool {
    matches!(server.outcome(), Outcome::HeldBack(_))
}
