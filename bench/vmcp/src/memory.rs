//! Memory: idle, after calls, and with many sessions that are never ended.

use std::time::Duration;

use anyhow::{Context, Result};
use skep_bench_harness::{Client, Program, print_row};
use tokio::task::JoinSet;

use crate::{SETUPS, calls::call, setup::Virtual};

/// How many calls there are before memory is measured again.
const CALLS: usize = 20_000;
const CONNECTIONS: usize = 16;

pub(crate) async fn print(contenders: &[Program], sessions: usize, rest: Duration) -> Result<()> {
    print_row(&["", "idle", "20,000 calls", "sessions", "later"].map(Into::into));
    let mut rows = Vec::new();
    for setup in SETUPS.into_iter().filter(|setup| !setup.slow) {
        for contender in contenders {
            let backends = setup.start().await?;
            let program = Virtual::start(contender, &backends).await?;
            // It reads the lists of its backends by itself, and releases what only its start needed.
            tokio::time::sleep(Duration::from_secs(8)).await;
            let mut cells = vec![format!("{}: {}", setup.title, contender.name), megabytes(&program)?];
            let client = Client::new(program.running.address, None);
            use_sessions(&client, CONNECTIONS, CALLS / CONNECTIONS)
                .await
                .with_context(|| contender.name.clone())?;
            cells.push(megabytes(&program)?);
            use_sessions(&client, sessions, 1).await.with_context(|| contender.name.clone())?;
            cells.push(megabytes(&program)?);
            if rest.is_zero() {
                print_row(&cells);
            } else {
                rows.push((cells, program, backends));
            }
        }
    }
    // All of them rest at the same time.
    tokio::time::sleep(rest).await;
    for (mut cells, program, _) in rows {
        cells.push(megabytes(&program)?);
        print_row(&cells);
    }
    Ok(())
}

fn megabytes(program: &Virtual) -> Result<String> {
    Ok(format!("{:.1}", program.running.rss()? as f64 / 1e6))
}

/// Starts sessions, calls a tool in each, and leaves them open.
async fn use_sessions(client: &Client, sessions: usize, calls: usize) -> Result<()> {
    let mut callers = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let client = client.clone();
        callers.spawn(async move {
            let mut connection = client.connect().await?;
            for _ in 0..sessions.div_ceil(CONNECTIONS) {
                connection.start_session().await?;
                connection.initialized().await?;
                for _ in 0..calls {
                    connection.send(&call("b0_ask_0")).await?;
                }
            }
            anyhow::Ok(())
        });
    }
    while let Some(caller) = callers.join_next().await {
        caller??;
    }
    Ok(())
}
