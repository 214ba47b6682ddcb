//! Containers of a local engine, Docker or Podman: the few parts of Docker's Engine API that are needed to run a server, which
//! Podman implements as well.
//!
//! The containers have a label with a file that is locked while this process lives. Containers whose file is not locked belong to
//! a process that was killed, and the next process removes them.

mod api;
mod container;
mod container_spec;
mod credentials;
mod endpoint;
mod image;
mod mark;
mod streams;

use std::{path::PathBuf, sync::Arc, time::Duration};

use futures::future::join_all;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::sleep;
use tracing::warn;

use self::{
    api::{EngineApi, EngineError},
    mark::{HOST, LOCK, Mark},
};
pub(super) use self::{
    container::Container,
    container_spec::ContainerSpec,
    endpoint::{Endpoint, endpoints},
};

/// The maximum number of attempts to remove a container.
const TRIES: u32 = 10;
/// The delay between attempts.
const PAUSE: Duration = Duration::from_millis(200);

/// A connected engine.
pub(super) struct Engine {
    api: EngineApi,
    mark: Mark,
}

impl Engine {
    /// Connects to the first engine that responds, and removes abandoned containers. Returns how many were removed.
    pub(super) async fn connect(endpoints: &[Endpoint]) -> Result<(Arc<Self>, usize), String> {
        let mut problems = Vec::new();
        for endpoint in endpoints {
            match EngineApi::connect(endpoint).await {
                Ok(api) => {
                    let mark = Mark::new().map_err(|error| format!("cannot mark containers: {error}"))?;
                    let engine = Self { api, mark };
                    let removed = engine.remove_leftovers().await;
                    return Ok((Arc::new(engine), removed));
                }
                Err(problem) => {
                    problems.push(format!("the container engine at {endpoint} does not respond: {problem}"));
                }
            }
        }
        Err(format!("{}: start it, and check your permissions", problems.join("; ")))
    }

    /// Whether its containers have the files and the ports of another machine.
    pub(super) fn is_remote(&self) -> bool {
        self.api.is_remote()
    }

    /// Removes every container of this process, in any state.
    pub(super) async fn remove_own(&self) {
        let ids = self.containers(&format!("{LOCK}={}", self.mark.lock())).await;
        join_all(ids.iter().map(|container| self.remove(&container.id))).await;
    }

    /// Removes the containers of processes that have ended, and returns how many.
    async fn remove_leftovers(&self) -> usize {
        let containers = self.containers(&format!("{HOST}={}", self.mark.host())).await;
        let left: Vec<_> =
            containers.iter().filter(|container| self.mark.is_abandoned(&container.lock)).collect();
        let removed = join_all(left.iter().map(|container| self.remove(&container.id))).await;
        removed.into_iter().filter(|removed| *removed).count()
    }

    async fn containers(&self, label: &str) -> Vec<OwnedContainer> {
        let filters = json!({"label": [label]}).to_string();
        let query = api::query(&[("all", "true"), ("filters", &filters)]);
        let listed = self.api.request(Method::GET, &format!("/containers/json?{query}"), None).await;
        let Ok(Value::Array(containers)) = listed else { return Vec::new() };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        containers
            .iter()
            .map(|one| OwnedContainer { id: text(&one["Id"]), lock: text(&one["Labels"][LOCK]) })
            .collect()
    }

    /// Removes a container with its anonymous volumes, and returns whether it is removed.
    async fn remove(&self, id: &str) -> bool {
        let path = format!("/containers/{id}?force=true&v=true");
        let mut tries = 1;
        loop {
            match self.api.request(Method::DELETE, &path, None).await {
                Ok(_)
                | Err(EngineError { status: Some(StatusCode::NOT_FOUND | StatusCode::CONFLICT), .. }) => {
                    return true;
                }
                // Podman fails to stop a container that exits at that moment, and then keeps it.
                Err(EngineError { status: Some(StatusCode::INTERNAL_SERVER_ERROR), .. }) if tries < TRIES => {
                    tries += 1;
                    sleep(PAUSE).await;
                }
                Err(problem) => {
                    warn!(%problem, container = id, "cannot remove a container");
                    return false;
                }
            }
        }
    }
}

/// A container of some skep run.
struct OwnedContainer {
    id: String,
    lock: String,
}

/// The folder with the settings of Docker's command line.
fn docker_config(set: &impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let own = || set("HOME").map(|home| PathBuf::from(home).join(".docker"));
    set("DOCKER_CONFIG").map(PathBuf::from).or_else(own)
}
