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
    Recipe, streams,
    wire::{Problem, query},
};

/// How much of what it writes is held for who reads it.
const BUFFER: usize = 64 << 10;

/// A server that runs in a container, one at a time.
pub(in super::super) struct Container {
    recipe: Arc<Recipe>,
    /// The end of the container that was started last.
    last: Mutex<Option<JoinHandle<()>>>,
}

impl Container {
    pub(in super::super) fn new(recipe: Arc<Recipe>) -> Self {
        Self { recipe, last: Mutex::new(None) }
    }
}

impl Attach for Container {
    async fn attach(&self) -> io::Result<(BoxRead, BoxWrite)> {
        let mut last = self.last.lock().await;
        if let Some(end) = last.take() {
            end.await.ok();
        }
        let id = created(&self.recipe).await?;
        let stream = match started(&self.recipe, &id).await {
            Ok(stream) => stream,
            Err(problem) => {
                self.recipe.engine.remove(&id).await;
                return Err(problem.into());
            }
        };
        let (from, input) = split(stream);
        let (output, output_end) = duplex(BUFFER);
        let (errors, errors_end) = duplex(BUFFER);
        tokio::spawn(log(errors).in_current_span());
        let (done, is_done) = oneshot::channel::<()>();
        let (ended, is_ended) = oneshot::channel::<()>();
        let recipe = self.recipe.clone();
        let life = async move {
            // Done with, or ended by itself. Nobody is attached any more after that, and its input is closed.
            tokio::select! {
                _ = is_done => {}
                _ = streams::apart(from, output_end, errors_end) => {}
            }
            end(&recipe, &id).await;
            drop(ended);
        };
        *last = Some(tokio::spawn(life.in_current_span()));
        Ok((Box::new(output), Box::new(Input::new(input, done, is_ended))))
    }
}

async fn created(recipe: &Recipe) -> Result<String, Problem> {
    let path = format!("/containers/create?{}", query(&[("name", &recipe.name())]));
    let created = recipe.engine.wire.asked(Method::POST, &path, Some(recipe.body())).await?;
    let id = created["Id"].as_str().filter(|id| !id.is_empty());
    id.map(ToOwned::to_owned).ok_or_else(|| Problem::new("the container engine does not name the container"))
}

/// Starts it. Who is attached before that misses nothing.
async fn started(recipe: &Recipe, id: &str) -> Result<TokioIo<Upgraded>, Problem> {
    let wire = &recipe.engine.wire;
    let all = "stream=true&stdin=true&stdout=true&stderr=true";
    let stream = wire.upgraded(&format!("/containers/{id}/attach?{all}")).await?;
    wire.asked(Method::POST, &format!("/containers/{id}/start"), None).await?;
    Ok(stream)
}

/// Ends it as MCP wants it: it may end by itself when its input is closed, is asked to, and then is killed. Then it is removed.
async fn end(recipe: &Recipe, id: &str) {
    let wire = &recipe.engine.wire;
    // One that speaks HTTP does not look at its input.
    let patience = if recipe.is_stdio { limits::STDIO_END_TIME } else { Duration::ZERO };
    let path = format!("/containers/{id}/wait");
    let ended = timeout(patience, wire.asked(Method::POST, &path, None)).await;
    match ended {
        Ok(Ok(ended)) => info!(status = ended["StatusCode"].as_i64(), "the server's container has ended"),
        Ok(Err(_)) => {}
        Err(_) => {
            let seconds = limits::STDIO_END_TIME.as_secs();
            wire.asked(Method::POST, &format!("/containers/{id}/stop?t={seconds}"), None).await.ok();
        }
    }
    recipe.engine.remove(id).await;
}
