//! The bare client: the same requests as an operator sends, with nothing watched, computed or compared.

use std::{
    fmt,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use skep_testkit::{ControlPlane, Namespace};
use tokio::time::timeout;

use crate::{patience, servers, writes::Writes};

/// What the bare client did.
#[derive(Clone, Copy)]
pub(crate) struct Figures {
    /// From the first request to the last response.
    pub(crate) time: Duration,
    /// The writes beside the creation of the servers, from the audit log.
    pub(crate) writes: usize,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "All was there after {:.1} s", self.time.as_secs_f64())
    }
}

/// Creates servers and everything that belongs to them, in a separate namespace.
pub(crate) async fn measure(plane: &ControlPlane, count: usize) -> Result<Figures> {
    fill(&plane.namespace().await, count).await
}

async fn fill(test: &Namespace, count: usize) -> Result<Figures> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::env;

    use skep_operator::{
        run::{self, Options},
        settings::Settings,
    };
    use tokio::sync::watch;

    #[tokio::test]
    async fn the_operator_has_nothing_to_add_to_what_the_bare_client_wrote() {
        let test = skep_testkit::namespace().await;
        let figures = fill(&test, 3).await.unwrap();
        assert_eq!(figures.writes, 3 * 9);

        let user = test.admin("operator");
        let recording = user.record();
        let (stop, stopped) = watch::channel(false);
        let options = Options {
            namespaces: vec![test.name().into()],
            workers: 1,
            election: None,
            metrics: ([127, 0, 0, 1], 0).into(),
            health: ([127, 0, 0, 1], 0).into(),
            migrate: false,
            unready_after: Options::UNREADY_AFTER,
            observe: false,
            settings: Settings::from_env(&env::vars().collect()),
        };
        let operator = tokio::spawn(run::run(user.config(), options, stopped));
        // Long enough to list everything and to reconcile three servers.
        tokio::time::sleep(Duration::from_secs(5)).await;
        stop.send_replace(true);
        operator.await.unwrap().unwrap();
        assert!(!recording.requests().await.is_empty());
        assert_eq!(recording.writes().await, [] as [&str; 0]);
    }
}
