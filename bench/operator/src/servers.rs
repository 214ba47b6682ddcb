//! The MCPServers that contenders reconcile: creating them, and waiting until all objects exist.

use std::{
    collections::HashSet,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use futures::{TryStreamExt, future::try_join_all};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Service};
use kube::{
    Api, Client,
    api::{ListParams, PostParams},
    core::{ApiResource, DynamicObject},
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use serde_json::json;
use skep_api::kinds::MCPServer;

use crate::AT_ONCE;

/// The names of the servers.
pub(crate) fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("server-{number:05}")).collect()
}

/// The MCPServers of a namespace, with any status.
pub(crate) fn api(client: Client, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client, namespace, &resource())
}

fn resource() -> ApiResource {
    ApiResource::erase::<MCPServer>(&())
}

/// A plain server: an image with the transport stdio, and nothing else.
fn plain(name: &str) -> DynamicObject {
    let spec = json!({"spec": {"image": "registry.example/mcp:1", "transport": "stdio"}});
    DynamicObject::new(name, &resource()).data(spec)
}

/// Creates a server, and returns it as the API server stores it.
pub(crate) async fn create(api: &Api<DynamicObject>, name: &str) -> Result<DynamicObject> {
    let created = api.create(&PostParams::default(), &plain(name)).await;
    created.with_context(|| format!("cannot create the MCPServer {name}"))
}

/// A minimal server with the API server's defaults.
pub(crate) async fn defaulted(api: &Api<DynamicObject>) -> Result<DynamicObject> {
    let params = PostParams { dry_run: true, ..PostParams::default() };
    let server = api.create(&params, &plain("defaulted")).await;
    server.context("cannot get the defaults of an MCPServer")
}

/// Does something for each item, with so many at once as an operator has workers.
pub(crate) async fn for_each<T>(items: &[T], work: impl AsyncFn(&T) -> Result<()>) -> Result<()> {
    let next = AtomicUsize::new(0);
    let worker = || async {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            work(item).await?;
        }
        Ok(())
    };
    try_join_all((0..AT_ONCE).map(|_| worker())).await.map(drop)
}

/// Waits until each server's status is about its spec, and each has its Deployment and its Service. Returns since when.
///
/// The statuses come from a watch, which is cheap for the API server, and the rest is checked once all have a status.
pub(crate) async fn complete(client: Client, namespace: &str, count: usize) -> Result<Instant> {
    let mut reported = HashSet::new();
    let events = watcher(api(client.clone(), namespace), watcher::Config::default()).default_backoff();
    let mut events = std::pin::pin!(events);
    while reported.len() < count {
        let Some(event) = events.try_next().await.context("cannot watch MCPServers")? else {
            bail!("the watch of MCPServers has ended");
        };
        if let Event::Apply(server) | Event::InitApply(server) = event {
            let observed = server.data["status"]["observedGeneration"].as_i64();
            if observed.is_some() && observed == server.metadata.generation {
                reported.insert(server.metadata.name);
            }
        }
    }
    loop {
        let since = Instant::now();
        if count_of(&client, namespace, ApiResource::erase::<Deployment>(&())).await? >= count
            && count_of(&client, namespace, ApiResource::erase::<Service>(&())).await? >= count
        {
            return Ok(since);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn count_of(client: &Client, namespace: &str, kind: ApiResource) -> Result<usize> {
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &kind);
    let listed = api.list_metadata(&ListParams::default()).await;
    Ok(listed.context("cannot list the objects")?.items.len())
}
