//! A proxy under mixed load for a long time: what it holds must not grow.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Result, ensure};
use bytes::Bytes;
use skep_bench_harness::{Client, Running, ensure_flat};
use tokio::{io::AsyncWriteExt, net::TcpStream, task::JoinSet, time::sleep};

use crate::{contender::Contender, load::CALL, server::Server};

const MINUTE: Duration = Duration::from_secs(60);
/// How long a caller waits between two requests.
const PAUSE: Duration = Duration::from_millis(10);
/// How long the proxy may take to close the connections of clients that left.
const CLOSED_WITHIN: Duration = Duration::from_secs(90);
/// How many connections to the server it may keep for later.
const KEPT: usize = 16;

pub(crate) async fn run(command: &str, minutes: u64) -> Result<()> {
    let (server, _) = Running::own(&["--serve", Server::ALL[0].name()]).await?;
    let (proxy, config) = Contender::plain("skep", command).start(server.address).await?;
    let open_before = proxy.open_files()?;
    let counts = Arc::new(Counts::default());
    let mut callers = JoinSet::new();
    for caller in 0..8 {
        callers.spawn(call_for_ever(proxy.address, counts.clone(), caller));
    }
    println!(
        "{:>6} {:>9} {:>9} {:>9} {:>9}  {}",
        "minute", "requests", "sessions", "streams", "rejected", TITLE
    );
    let mut memory = Vec::new();
    for minute in 1..=minutes {
        sleep(MINUTE).await;
        memory.push(proxy.rss()?);
        println!("{minute:>6} {counts}  {}", held(&proxy)?);
    }
    callers.shutdown().await;
    for _ in 0..CLOSED_WITHIN.as_secs() {
        if proxy.open_files()? <= open_before + KEPT {
            break;
        }
        sleep(Duration::from_secs(1)).await;
    }
    println!("{:>47}  {}", "without clients", held(&proxy)?);
    if let Some(folder) = config.parent() {
        std::fs::remove_dir_all(folder).ok();
    }
    let open = proxy.open_files()?;
    ensure!(open <= open_before + KEPT, "{open} files and connections are open, {open_before} were before");
    ensure_flat(&memory)
}

const TITLE: &str = "memory MB  allocated MB  open files";

fn held(proxy: &Running) -> Result<String> {
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let (memory, allocated) = (megabytes(proxy.rss()?), megabytes(proxy.allocated()?));
    Ok(format!("{memory:>9.1}  {allocated:>12.1}  {:>10}", proxy.open_files()?))
}

/// What the callers have done.
#[derive(Default)]
struct Counts {
    requests: AtomicU64,
    sessions: AtomicU64,
    streams: AtomicU64,
    /// Requests that are meant to be rejected.
    rejected: AtomicU64,
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { requests, sessions, streams, rejected } = self;
        let [requests, sessions, streams, rejected] =
            [requests, sessions, streams, rejected].map(|count| count.load(Ordering::Relaxed));
        write!(f, "{requests:>9} {sessions:>9} {streams:>9} {rejected:>9}")
    }
}

/// Starts session after session, calls in each, listens to some, and ends none. A lost connection is replaced.
async fn call_for_ever(address: SocketAddr, counts: Arc<Counts>, caller: u64) {
    let mut round = caller;
    loop {
        round += 1;
        let result = match round % 8 {
            0 => listen(address, &counts).await,
            1 => disturb(address, &counts, round).await,
            _ => call(address, &counts).await,
        };
        if let Err(error) = result {
            eprintln!("a round failed: {error:#}");
        }
        sleep(PAUSE).await;
    }
}

/// A session with calls.
async fn call(address: SocketAddr, counts: &Counts) -> Result<()> {
    let mut connection = Client::new(address, None).connect().await?;
    connection.start_session().await?;
    connection.initialized().await?;
    counts.sessions.fetch_add(1, Ordering::Relaxed);
    for _ in 0..10 {
        connection.send(&CALL).await?;
        counts.requests.fetch_add(1, Ordering::Relaxed);
        sleep(PAUSE).await;
    }
    Ok(())
}

/// A session whose stream the client leaves after a moment.
async fn listen(address: SocketAddr, counts: &Counts) -> Result<()> {
    let mut connection = Client::new(address, None).connect().await?;
    connection.start_session().await?;
    connection.initialized().await?;
    let status = connection.listen().await?;
    ensure!(status.is_success(), "the stream of a session: {status}");
    counts.streams.fetch_add(1, Ordering::Relaxed);
    sleep(PAUSE * 20).await;
    Ok(())
}

/// What a broken client sends: no JSON, a message of half a megabyte, or half a request.
async fn disturb(address: SocketAddr, counts: &Counts, round: u64) -> Result<()> {
    counts.rejected.fetch_add(1, Ordering::Relaxed);
    let mut connection = Client::new(address, None).connect().await?;
    match round % 3 {
        0 => drop(connection.send(&Bytes::from_static(b"{\"jsonrpc\": ")).await),
        1 => drop(connection.send(&Bytes::from(vec![b' '; 512 * 1024])).await),
        _ => {
            let mut stream = TcpStream::connect(address).await?;
            stream
                .write_all(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
                .await?;
        }
    }
    Ok(())
}
