//! A server in a container, from its start to its removal.

use std::{io, sync::Arc, time::Duration};

use http::Method;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use skep_proxy::{
    limits,
    runtime::{Attach, BoxRead, BoxWrite, Input, log},
};
use tokio::{
    io::{duplex, split},
    sync::{Mutex, oneshot},
    task::JoinHandle,
    time::timeout,
};
use tracing::{Instrument, info};

use super::{
    ContainerSpec,
    api::{EngineError, query},
    streams,
};

/// How much of its output is buffered.
const BUFFER: usize = 64 << 10;

/// A server that runs in a container, one at a time.
pub(in super::super) struct Container {
    spec: Arc<ContainerSpec>,
    /// The removal of the previous container.
    last: Mutex<Option<JoinHandle<()>>>,
}

impl Container {
    pub(in super::super) fn new(spec: Arc<ContainerSpec>) -> Self {
        Self { spec, last: Mutex::new(None) }
    }
}

impl Attach for Container {
    async fn attach(&self) -> io::Result<(BoxRead, BoxWrite)> {
        let mut last = self.last.lock().await;
        if let Some(end) = last.take() {
            end.await.ok();
        }
        let id = create(&self.spec).await?;
        let stream = match start(&self.spec, &id).await {
            Ok(stream) => stream,
            Err(problem) => {
                self.spec.engine.remove(&id).await;
                return Err(problem.into());
            }
        };
        let (from, input) = split(stream);
        let (output, output_end) = duplex(BUFFER);
        let (errors, errors_end) = duplex(BUFFER);
        tokio::spawn(log(errors).in_current_span());
        let (done, is_done) = oneshot::channel::<()>();
        let (ended, is_ended) = oneshot::channel::<()>();
        let spec = self.spec.clone();
        let life = async move {
            // No longer needed, or exited. After that it is detached, and its input is closed.
            tokio::select! {
                _ = is_done => {}
                _ = streams::demultiplex(from, output_end, errors_end) => {}
            }
            end(&spec, &id).await;
            drop(ended);
        };
        *last = Some(tokio::spawn(life.in_current_span()));
        Ok((Box::new(output), Box::new(Input::new(input, done, is_ended))))
    }
}

async fn create(spec: &ContainerSpec) -> Result<String, EngineError> {
    let path = format!("/containers/create?{}", query(&[("name", &spec.name())]));
    let created = spec.engine.api.request(Method::POST, &path, Some(spec.body())).await?;
    let id = created["Id"].as_str().filter(|id| !id.is_empty());
    id.map(ToOwned::to_owned).ok_or_else(|| EngineError::new("the container engine returned no container id"))
}

/// Attaches to it and then starts it, so that no output is lost.
async fn start(spec: &ContainerSpec, id: &str) -> Result<TokioIo<Upgraded>, EngineError> {
    let api = &spec.engine.api;
    let all = "stream=true&stdin=true&stdout=true&stderr=true";
    let stream = api.upgrade(&format!("/containers/{id}/attach?{all}")).await?;
    api.request(Method::POST, &format!("/containers/{id}/start"), None).await?;
    Ok(stream)
}

/// Shuts it down as MCP specifies: its input is closed, then it gets SIGTERM, then SIGKILL. Then it is removed.
async fn end(spec: &ContainerSpec, id: &str) {
    let api = &spec.engine.api;
    // A server that speaks HTTP does not read its input.
    let patience = if spec.is_stdio { limits::STDIO_END_TIME } else { Duration::ZERO };
    let path = format!("/containers/{id}/wait");
    let ended = timeout(patience, api.request(Method::POST, &path, None)).await;
    match ended {
        Ok(Ok(ended)) => info!(status = ended["StatusCode"].as_i64(), "the server's container exited"),
        Ok(Err(_)) => {}
        Err(_) => {
            let seconds = limits::STDIO_END_TIME.as_secs();
            api.request(Method::POST, &format!("/containers/{id}/stop?t={seconds}"), None).await.ok();
        }
    }
    spec.engine.remove(id).await;
}
