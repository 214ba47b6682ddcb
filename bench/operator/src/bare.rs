//! The bare client: the same requests as an operator sends, with nothing watched, computed or compared.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use skep_testkit::ControlPlane;
use tokio::time::timeout;

use crate::{patience, servers, writes::Writes};

/// What the bare client did.
#[derive(Clone, Copy)]
pub(crate) struct Figures {
    /// From the first request to the last answer.
    pub(crate) time: Duration,
    /// The writes beside the creation of the servers, from the audit log.
    pub(crate) writes: usize,
}

/// Creates servers and everything that belongs to them, in a namespace of their own.
pub(crate) async fn measure(plane: &ControlPlane, count: usize) -> Result<Figures> {
    let test = plane.namespace().await;
    let (creator, writer) = (test.admin("creator"), test.admin("bare-client"));
    let client = writer.client();
    let api = servers::api(creator.client(), test.name());
    let server = servers::defaulted(&api).await?;
    let mut prepared = Vec::new();
    for name in servers::names(count) {
        prepared.push(Writes::new(&server, test.name(), &name).await?);
    }

    let recording = writer.record();
    let start = Instant::now();
    let work = servers::for_each(&prepared, async |writes: &Writes| {
        let created = servers::create(&api, &writes.name).await?;
        writes.send(&client, &created).await
    });
    timeout(patience(count), work).await.context("the bare client takes too long")??;
    let time = start.elapsed();
    Ok(Figures { time, writes: recording.writes().await.len() })
}
