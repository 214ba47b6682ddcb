//! Images through a container engine of this machine, Docker or Podman: the few parts of Docker's Engine API that it takes to
//! run a server, which Podman speaks as well.
//!
//! The containers carry a label with a file that is locked for as long as this process lives. Those whose file nobody holds
//! any more were left behind by a process that was killed, and the next one removes them.

mod container;
mod image;
mod mark;
mod recipe;
mod socket;
mod streams;
mod wire;

use std::{path::PathBuf, sync::Arc, time::Duration};

use futures::future::join_all;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::sleep;
use tracing::warn;

pub(super) use self::{container::Container, recipe::Recipe, socket::sockets};
use self::{
    mark::{HOST, LOCK, Mark},
    wire::{Problem, Wire},
};

/// How often a container is tried to be removed.
const TRIES: u32 = 10;
/// How long it takes from one time to the next.
const PAUSE: Duration = Duration::from_millis(200);

/// An engine that answers.
pub(super) struct Engine {
    wire: Wire,
    mark: Mark,
}

impl Engine {
    /// The first of these that answers, and how many containers that others left behind were removed.
    pub(super) async fn connect(sockets: &[PathBuf]) -> Result<(Arc<Self>, usize), String> {
        let mut problems = Vec::new();
        for socket in sockets {
            match Wire::connect(socket).await {
                Ok(wire) => {
                    let mark = Mark::new().map_err(|error| format!("cannot mark containers: {error}"))?;
                    let engine = Self { wire, mark };
                    let removed = engine.remove_leftovers().await;
                    return Ok((Arc::new(engine), removed));
                }
                Err(problem) => problems
                    .push(format!("the container engine at {} does not answer: {problem}", socket.display())),
            }
        }
        Err(format!("{}: start it, and see that you may use it", problems.join("; ")))
    }

    /// Removes every container of this process, however it is.
    pub(super) async fn remove_own(&self) {
        let ids = self.containers(&format!("{LOCK}={}", self.mark.lock())).await;
        join_all(ids.iter().map(|container| self.remove(&container.id))).await;
    }

    /// Removes the containers of processes that are gone, and says how many it has removed.
    async fn remove_leftovers(&self) -> usize {
        let containers = self.containers(&format!("{HOST}={}", self.mark.host())).await;
        let left: Vec<_> = containers.iter().filter(|container| self.mark.is_left(&container.lock)).collect();
        let removed = join_all(left.iter().map(|container| self.remove(&container.id))).await;
        removed.into_iter().filter(|removed| *removed).count()
    }

    async fn containers(&self, label: &str) -> Vec<Found> {
        let filters = json!({"label": [label]}).to_string();
        let query = wire::query(&[("all", "true"), ("filters", &filters)]);
        let found = self.wire.asked(Method::GET, &format!("/containers/json?{query}"), None).await;
        let Ok(Value::Array(found)) = found else { return Vec::new() };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        found.iter().map(|one| Found { id: text(&one["Id"]), lock: text(&one["Labels"][LOCK]) }).collect()
    }

    /// Removes a container, with the volumes that it alone has, and says whether it did. One that is gone already will do.
    async fn remove(&self, id: &str) -> bool {
        let path = format!("/containers/{id}?force=true&v=true");
        let mut tries = 1;
        loop {
            match self.wire.asked(Method::DELETE, &path, None).await {
                Ok(_) | Err(Problem { status: Some(StatusCode::NOT_FOUND | StatusCode::CONFLICT), .. }) => {
                    return true;
                }
                // Podman fails to stop a container that ends by itself at that moment, and then leaves it.
                Err(Problem { status: Some(StatusCode::INTERNAL_SERVER_ERROR), .. }) if tries < TRIES => {
                    tries += 1;
                    sleep(PAUSE).await;
                }
                Err(problem) => {
                    warn!(%problem, container = id, "a container cannot be removed");
                    return false;
                }
            }
        }
    }
}

/// A container of a skep.
struct Found {
    id: String,
    lock: String,
}
