//! Logins and refreshes in a second.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use skep_bench_harness::{Measured, Program, print_row};
use tokio::task::JoinSet;

use crate::{flow::Client, peer::Peer, started::Started};

/// The clients of each connection, which take turns, so that the limits for one client are not what is measured.
const CLIENTS: usize = 16;
/// How long they have to register. A server whose limit is one for all of them has fewer, but one for each connection.
const REGISTRATION: Duration = Duration::from_secs(30);

/// What a client does again and again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    LogIn,
    Refresh,
}

pub(crate) async fn print(
    programs: &[Program],
    connections: usize,
    turns: u32,
    time: Duration,
) -> Result<()> {
    print_row(
        &[
            "",
            "logins/s",
            "p50 ms",
            "p99 ms",
            "CPU ms",
            "refreshes/s",
            "p50 ms",
            "p99 ms",
            "CPU ms",
            "clients",
        ]
        .map(Into::into),
    );
    for program in programs {
        let started = Started::new(program).await?;
        let mut clients = register(&started, connections).await.with_context(|| program.name.clone())?;
        let mut cells = vec![program.name.clone()];
        for work in [Work::LogIn, Work::Refresh] {
            // What is refreshed is there, also where a round was too short for every client.
            for client in clients.iter_mut().flatten().filter(|_| work == Work::Refresh) {
                client.log_in_once("user").await.with_context(|| program.name.clone())?;
            }
            let mut rounds = Vec::new();
            for _ in 0..turns {
                let before = started.running.cpu()?;
                let measured;
                (clients, measured) =
                    round(clients, work, time).await.with_context(|| program.name.clone())?;
                let used = started.running.cpu()?.saturating_sub(before);
                rounds.push((measured, used));
            }
            rounds.sort_by(|(one, _), (other, _)| one.rate().total_cmp(&other.rate()));
            let (measured, used) = rounds.swap_remove(rounds.len() / 2);
            let milliseconds = |time: Duration| format!("{:.2}", time.as_secs_f64() * 1e3);
            cells.push(format!("{:.0}", measured.rate()));
            cells.extend([milliseconds(measured.at(0.5)), milliseconds(measured.at(0.99))]);
            cells.push(milliseconds(used.div_f64(measured.count().max(1) as f64)));
        }
        cells.push(clients.iter().map(Vec::len).sum::<usize>().to_string());
        print_row(&cells);
    }
    Ok(())
}

/// The clients of each connection.
async fn register(started: &Started, connections: usize) -> Result<Vec<Vec<Client>>> {
    let mut all: Vec<Vec<Client>> = (0..connections).map(|_| Vec::new()).collect();
    let begin = Instant::now();
    for number in 0..CLIENTS {
        for (connection, clients) in all.iter_mut().enumerate() {
            let mut peer = Peer::connect(started.running.address, connection * CLIENTS + number).await?;
            let id = loop {
                match Client::register(&mut peer).await? {
                    Some(id) => break Some(id),
                    None if number > 0 && begin.elapsed() > REGISTRATION => break None,
                    None => tokio::time::sleep(Duration::from_millis(200)).await,
                }
            };
            clients.extend(id.map(|id| Client::new(peer, id)));
        }
    }
    Ok(all)
}

/// All connections work for this time.
async fn round(
    clients: Vec<Vec<Client>>,
    work: Work,
    time: Duration,
) -> Result<(Vec<Vec<Client>>, Measured)> {
    let start = Instant::now();
    let mut workers = JoinSet::new();
    for (number, mut clients) in clients.into_iter().enumerate() {
        workers.spawn(async move {
            let mut times = Vec::new();
            'time: loop {
                for (index, client) in clients.iter_mut().enumerate() {
                    if start.elapsed() >= time {
                        break 'time;
                    }
                    let before = Instant::now();
                    match work {
                        Work::LogIn => client.log_in(&format!("user-{number}-{index}")).await?,
                        Work::Refresh => client.refresh().await?,
                    }
                    times.push(before.elapsed());
                }
            }
            anyhow::Ok((clients, times))
        });
    }
    let (mut all, mut times) = (Vec::new(), Vec::new());
    while let Some(worker) = workers.join_next().await {
        let (clients, of_worker) = worker??;
        all.push(clients);
        times.extend(of_worker);
    }
    Ok((all, Measured::new(start.elapsed(), times)))
}
