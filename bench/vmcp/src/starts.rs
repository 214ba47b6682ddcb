//! What a client waits for before its first call: `initialize`, and the list of tools.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bytes::Bytes;
use skep_bench_harness::{Client, Program, print_row};

use crate::{SETUPS, setup::Virtual};

/// How many sessions are started.
pub(crate) const SESSIONS: usize = 21;
/// How often the list is read again.
const AGAIN: usize = 10;

const LIST: Bytes = Bytes::from_static(br#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}"#);

pub(crate) async fn print(contenders: &[Program]) -> Result<()> {
    print_row(&["", "initialize", "first list", "list again", "bytes"].map(Into::into));
    for setup in SETUPS {
        for contender in contenders {
            let backends = setup.start().await?;
            let program = Virtual::start(contender, &backends).await?;
            let client = Client::new(program.running.address, None);
            let started = started(&client).await.with_context(|| contender.name.clone())?;
            let millis = |time: Duration| format!("{:.2} ms", time.as_secs_f64() * 1e3);
            print_row(&[
                format!("{}: {}", setup.title, contender.name),
                millis(started.initialize),
                millis(started.first_list),
                millis(started.list),
                started.bytes.to_string(),
            ]);
        }
    }
    Ok(())
}

struct Started {
    initialize: Duration,
    first_list: Duration,
    list: Duration,
    bytes: usize,
}

/// The medians. The first session is one of them, which finds nothing that is known already.
async fn started(client: &Client) -> Result<Started> {
    let (mut initialize, mut first, mut again) = (Vec::new(), Vec::new(), Vec::new());
    let mut bytes = 0;
    for _ in 0..SESSIONS {
        let mut connection = client.connect().await?;
        let start = Instant::now();
        connection.start_session().await?;
        initialize.push(start.elapsed());
        connection.initialized().await?;
        let start = Instant::now();
        bytes = connection.send(&LIST).await?.len();
        first.push(start.elapsed());
        for _ in 0..AGAIN {
            let start = Instant::now();
            connection.send(&LIST).await?;
            again.push(start.elapsed());
        }
    }
    Ok(Started { initialize: median(initialize), first_list: median(first), list: median(again), bytes })
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
