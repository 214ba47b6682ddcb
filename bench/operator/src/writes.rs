//! What an operator writes for a server, prepared so that the bare client only has to send it.

use std::{env, sync::Arc};

use anyhow::{Context, Result, anyhow};
use http::Request;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Client, core::DynamicObject};
use serde_json::json;
use skep_api::kinds::MCPServer;
use skep_converge::Child;
use skep_operator::{
    driver::{Controller, Outcome},
    kinds::McpServers,
    render::render,
    settings::Settings,
    watched::{Deployments, Pods, Servers, StatefulSets},
};
use skep_world::{Target, Watched, World};

/// A placeholder for the uid of a server, which is known only after its creation.
const UID: &str = "00000000-0000-0000-0000-000000000000";

/// The objects and the status of one server, as an operator applies them.
pub(crate) struct Writes {
    /// The name of the server.
    pub(crate) name: String,
    namespace: String,
    applies: Vec<(String, String)>,
}

impl Writes {
    /// The writes for a server of that name that is like `server` in all else.
    pub(crate) async fn new(server: &DynamicObject, namespace: &str, name: &str) -> Result<Self> {
        let mut server = server.clone();
        server.metadata.namespace = Some(namespace.into());
        server.metadata.name = Some(name.into());
        server.metadata.uid = Some(UID.into());
        let settings = Settings::from_env(&env::vars().collect());
        let rendered = render(vec![server.clone()], settings.clone()).await?.pop();
        let rendered = rendered.context("an MCPServer is rendered to nothing")?;
        let children = rendered.children.map_err(|blocked| anyhow!("{}", blocked.message))?;
        let mut applies: Vec<(String, String)> = children.iter().map(|child| apply(child, "")).collect();
        applies.push(apply(&status(server, settings).await?, "/status"));
        Ok(Self { name: name.into(), namespace: namespace.into(), applies })
    }

    /// Sends them one after another, as an operator does, with the finalizer first.
    pub(crate) async fn send(&self, client: &Client, created: &DynamicObject) -> Result<()> {
        let uid = created.metadata.uid.as_deref().unwrap_or_default();
        let path = format!("{}/{}", Servers::KIND.path(Some(&self.namespace)), self.name);
        let path = format!("{path}?fieldManager={}", McpServers::MANAGER);
        let version = &created.metadata.resource_version;
        let body = json!({"metadata": {"finalizers": McpServers::FINALIZER.map(|finalizer| [finalizer.0]), "resourceVersion": version}});
        patch(client, "application/merge-patch+json", &path, body.to_string()).await?;
        for (path, body) in &self.applies {
            patch(client, "application/apply-patch+yaml", path, body.replace(UID, uid)).await?;
        }
        Ok(())
    }
}

fn apply(child: &Child, subresource: &str) -> (String, String) {
    let path = format!("{}/{}{subresource}", child.kind.path(Some(&child.namespace)), child.name);
    (format!("{path}?fieldManager={}&force=true", McpServers::MANAGER), child.body().to_string())
}

/// The status that the operator reports once all objects exist.
async fn status(server: DynamicObject, settings: Settings) -> Result<Child> {
    let target = Target {
        kind: Servers::KIND,
        namespace: server.metadata.namespace.clone().unwrap_or_default().into(),
        name: server.metadata.name.clone().unwrap_or_default().into(),
    };
    let object: MCPServer = serde_json::from_value(serde_json::to_value(server)?)?;
    let world = World::builder().watch::<Deployments>().watch::<StatefulSets>().watch::<Pods>().offline();
    let controller = McpServers::new(Arc::new(settings));
    let inputs = controller.resolve(Arc::new(object), &mut world.reader(Arc::new(target))).await?;
    let now = Time(k8s_openapi::jiff::Timestamp::now());
    Ok(controller.status(&inputs, &Outcome::Converged(Vec::new()), &now))
}

async fn patch(client: &Client, content: &str, path: &str, body: String) -> Result<()> {
    let request = Request::patch(path).header("content-type", content).body(body.into_bytes())?;
    client.request_text(request).await.with_context(|| format!("cannot write {path}"))?;
    Ok(())
}
