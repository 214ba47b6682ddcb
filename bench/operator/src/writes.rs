//! What an operator writes for a server, prepared so that the bare client only has to send it.

use std::env;

use anyhow::{Context, Result, anyhow};
use http::Request;
use kube::{Client, core::DynamicObject};
use serde_json::json;
use skep_api::kinds::MCPServer;
use skep_converge::Child;
use skep_operator::{
    reconcile::Controller,
    render::render,
    resources::{field_manager, kind_of},
    settings::Settings,
};

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
        let rendered = render(vec![server], settings).await?.pop();
        let rendered = rendered.context("an MCPServer is rendered to nothing")?;
        let children = rendered.children.map_err(|problems| anyhow!("{}", problems[0]))?;
        let mut applies: Vec<(String, String)> = children.iter().map(|child| apply(child, "")).collect();
        let status = Child::status(kind_of::<MCPServer>(), namespace.into(), name.into(), rendered.status);
        applies.push(apply(&status, "/status"));
        Ok(Self { name: name.into(), namespace: namespace.into(), applies })
    }

    /// Sends them one after another, as an operator does, with the finalizer first.
    pub(crate) async fn send(&self, client: &Client, created: &DynamicObject) -> Result<()> {
        let uid = created.metadata.uid.as_deref().unwrap_or_default();
        let path = format!("{}/{}", kind_of::<MCPServer>().path(Some(&self.namespace)), self.name);
        let path = format!("{path}?fieldManager={}", field_manager::<MCPServer>());
        let version = &created.metadata.resource_version;
        let body = json!({"metadata": {"finalizers": MCPServer::FINALIZER.map(|finalizer| [finalizer.0]), "resourceVersion": version}});
        patch(client, "application/merge-patch+json", &path, body.to_string()).await?;
        for (path, body) in &self.applies {
            patch(client, "application/apply-patch+yaml", path, body.replace(UID, uid)).await?;
        }
        Ok(())
    }
}

fn apply(child: &Child, subresource: &str) -> (String, String) {
    let path = format!("{}/{}{subresource}", child.kind.path(Some(&child.namespace)), child.name);
    (format!("{path}?fieldManager={}&force=true", field_manager::<MCPServer>()), child.body().to_string())
}

async fn patch(client: &Client, content: &str, path: &str, body: String) -> Result<()> {
    let request = Request::patch(path).header("content-type", content).body(body.into_bytes())?;
    client.request_text(request).await.with_context(|| format!("cannot write {path}"))?;
    Ok(())
}
