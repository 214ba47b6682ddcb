//! Memory that strangers can make a server take: by clients that they register, and logins that they begin.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context, Result};
use skep_bench_harness::{Program, print_row};
use tokio::task::JoinSet;

use crate::{flow::Client, peer::Peer, started::Started};

const CONNECTIONS: usize = 16;
/// What one address registers, and the logins that it begins, so that its own limit is not what is measured.
const OF_AN_ADDRESS: usize = 5;
/// Addresses before these are those of the other tables.
const FIRST: usize = 10_000;

pub(crate) async fn print(programs: &[Program], clients: usize, logins: usize, rest: Duration) -> Result<()> {
    print_row(&["", "idle", "clients", "accepted", "logins", "accepted", "later"].map(Into::into));
    for program in programs {
        let started = Started::new(program).await?;
        let address = started.running.address;
        let mut cells = vec![program.name.clone(), started.megabytes()?];
        let registered = register(address, clients).await.with_context(|| program.name.clone())?;
        cells.extend([started.megabytes()?, registered.len().to_string()]);
        let begun = begin(address, logins, registered).await.with_context(|| program.name.clone())?;
        cells.extend([started.megabytes()?, begun.to_string()]);
        if !rest.is_zero() {
            tokio::time::sleep(rest).await;
            cells.push(started.megabytes()?);
        }
        print_row(&cells);
    }
    Ok(())
}

/// Registers clients from as many addresses as that needs. Returns those that the server accepts.
async fn register(server: SocketAddr, clients: usize) -> Result<Vec<String>> {
    let mut workers = JoinSet::new();
    for worker in 0..CONNECTIONS {
        workers.spawn(async move {
            let mut ids = Vec::new();
            for number in (worker..clients.div_ceil(OF_AN_ADDRESS)).step_by(CONNECTIONS) {
                let mut peer = Peer::connect(server, FIRST + number).await?;
                for _ in 0..OF_AN_ADDRESS {
                    ids.extend(Client::register(&mut peer).await?);
                }
            }
            anyhow::Ok(ids)
        });
    }
    let mut ids = Vec::new();
    while let Some(worker) = workers.join_next().await {
        ids.extend(worker??);
    }
    Ok(ids)
}

/// Begins logins of these clients in turn. Returns how many the server accepts.
async fn begin(server: SocketAddr, logins: usize, ids: Vec<String>) -> Result<usize> {
    let mut workers = JoinSet::new();
    for worker in 0..CONNECTIONS {
        let ids = ids.clone();
        workers.spawn(async move {
            let mut begun = 0;
            for number in (worker..logins).step_by(CONNECTIONS) {
                let id = ids.get(number % ids.len().max(1)).context("no client is registered")?;
                let peer = Peer::connect(server, FIRST + number / OF_AN_ADDRESS).await?;
                begun += usize::from(Client::new(peer, id.clone()).begin().await.is_ok());
            }
            anyhow::Ok(begun)
        });
    }
    let mut begun = 0;
    while let Some(worker) = workers.join_next().await {
        begun += worker??;
    }
    Ok(begun)
}
