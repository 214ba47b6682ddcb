//! A Deployment for an owner, and a writer that is counted.

use std::{
    pin::Pin,
    sync::{Arc, Mutex},
};

use http::{Method, Request};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kube::{
    client::{Body, ClientBuilder},
    core::DynamicObject,
};
use serde_json::{Value, json};
use skep_converge::{Applied, Child, Kind, Meta, Mode, Observed, Restores, Result, Writer};
use skep_testkit::{Namespace, User, audit::Recording};
use tower::{BoxError, buffer::BufferLayer, filter::AsyncFilterLayer};

pub(crate) const MANAGER: &str = "skep-test";
pub(crate) const DEPLOYMENTS: Kind = Kind::of::<Deployment>();

/// A writer before whose first write, dry runs apart, something else happens.
pub(crate) fn interrupted_writer(
    user: &User,
    meanwhile: impl Future<Output = ()> + Send + 'static,
) -> Writer {
    let meanwhile: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(meanwhile);
    let meanwhile = Arc::new(Mutex::new(Some(meanwhile)));
    let interrupt = move |request: Request<Body>| {
        let is_dry_run = request.uri().query().is_some_and(|query| query.contains("dryRun=All"));
        let is_write = request.method() != Method::GET && !is_dry_run;
        let meanwhile = is_write.then(|| meanwhile.lock().unwrap().take()).flatten();
        async move {
            if let Some(meanwhile) = meanwhile {
                meanwhile.await;
            }
            Ok::<_, BoxError>(request)
        }
    };
    let client = ClientBuilder::try_from(user.config()).unwrap().with_layer(&BufferLayer::new(8));
    let client = client.with_layer(&AsyncFilterLayer::new(interrupt)).build();
    Writer::new(client, MANAGER, Mode::Write, Restores::default())
}

/// One test's namespace, with an owner for children and a writer whose requests are recorded.
pub(crate) struct Fixture {
    pub(crate) test: Namespace,
    pub(crate) writer: Writer,
    pub(crate) recording: Recording,
    pub(crate) owner: ConfigMap,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        let test = skep_testkit::namespace().await;
        let user = test.admin("writer");
        let owner = test
            .create_object(&serde_json::from_value(json!({"metadata": {"name": "owner"}})).unwrap())
            .await;
        Self {
            writer: Writer::new(user.client(), MANAGER, Mode::Write, Restores::default()),
            recording: user.record(),
            owner,
            test,
        }
    }

    pub(crate) fn owner_uid(&self) -> String {
        self.owner.metadata.uid.clone().unwrap()
    }

    /// A Deployment of the owner's, with changes.
    pub(crate) fn deployment(&self, change: impl FnOnce(&mut Value)) -> Child {
        let mut body = json!({
            "metadata": {
                "labels": {"app": "web"},
                "ownerReferences": [{
                    "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": self.owner_uid(),
                    "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}, "annotations": {"checksum": "1"}},
                    "spec": {"containers": [{
                        "name": "web",
                        "image": "registry.example/web:1",
                        "env": [{"name": "A", "value": "1"}, {"name": "EMPTY", "value": ""}],
                        "ports": [{"name": "http", "containerPort": 80, "protocol": "TCP"}],
                        "resources": {"limits": {"cpu": "0.5", "memory": "1024Mi"}},
                    }]},
                },
            },
        });
        change(&mut body);
        Child::from_value(DEPLOYMENTS, self.test.name().into(), "web".into(), body)
    }

    pub(crate) async fn live(&self) -> DynamicObject {
        let path = format!("{}/web", DEPLOYMENTS.path(Some(self.test.name())));
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        self.test.client().request(request).await.unwrap()
    }

    /// Applies the child, given the live object as a watch would deliver it.
    pub(crate) async fn converge(&self, child: &Child) -> Applied {
        self.converge_by(&self.writer, child).await.unwrap()
    }

    /// The same by another writer.
    pub(crate) async fn converge_by(&self, writer: &Writer, child: &Child) -> Result<Applied> {
        let live = self.live().await;
        let (meta, observed) = (Meta::of(&live.metadata), Observed::of(&live, MANAGER));
        writer.apply(child, Some((&meta, &observed)), &self.owner_uid()).await
    }

    /// Creates the child.
    pub(crate) async fn create(&self, child: &Child) {
        self.writer.apply(child, None, &self.owner_uid()).await.unwrap();
    }

    /// Another program writes to the Deployment.
    pub(crate) async fn foreign_patch(&self, content: &str, manager: &str, patch: &Value) {
        self.patch_path("", content, manager, patch).await;
    }

    pub(crate) async fn patch_path(&self, subresource: &str, content: &str, manager: &str, patch: &Value) {
        let path = DEPLOYMENTS.path(Some(self.test.name()));
        let path = format!("{path}/web{subresource}?fieldManager={manager}");
        let request = http::Request::patch(path).header("content-type", content);
        let request = request.body(serde_json::to_vec(patch).unwrap()).unwrap();
        self.test.client().request::<Value>(request).await.unwrap();
    }
}
