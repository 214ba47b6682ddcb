//! An operator as a process, and its load on the API server and the machine.

use std::{
    fmt, fs,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use skep_bench_harness::Usage;
use skep_testkit::{ControlPlane, Namespace, User, audit::Request, process::Process};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{sleep, timeout},
};

use crate::{patience, print_progress, servers};

/// How long nothing changes while writes are counted.
pub(crate) const STEADY: Duration = Duration::from_secs(30);
/// How long writes are counted after a restart.
pub(crate) const RESTARTED: Duration = Duration::from_secs(20);
/// How long an operator must not write to count as settled, and how long that may take.
const SETTLED: Duration = Duration::from_secs(2);
const SETTLED_WITHIN: Duration = Duration::from_secs(60);
/// How long an operator may take to get ready.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// What an operator did.
pub(crate) struct Figures {
    /// From the first server's creation until all have what they should.
    pub(crate) time: Duration,
    /// Its writes until it had nothing more to do.
    pub(crate) writes: Vec<Request>,
    /// Its writes while nothing changed.
    pub(crate) steady: usize,
    /// Its writes after a restart with nothing changed.
    pub(crate) restart: usize,
    /// Processor time until it had nothing more to do.
    pub(crate) cpu: Duration,
    /// What it used at the end, before the restart.
    pub(crate) usage: Usage,
    /// What the one that was started again uses.
    pub(crate) restarted: Usage,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { time, writes, steady, restart, cpu, usage, restarted } = self;
        write!(
            f,
            "All was there after {:.1} s with {} writes and {:.1} s of CPU; {steady} writes while nothing changed, \
             {restart} after the restart; {} bytes of memory at the end, {} after the restart",
            time.as_secs_f64(),
            writes.len(),
            cpu.as_secs_f64(),
            usage.memory,
            restarted.memory
        )
    }
}

/// An operator, by its command line.
pub(crate) struct Operator {
    /// What it is called in the report.
    pub(crate) name: &'static str,
    command: String,
}

impl Operator {
    /// An operator that a command line starts.
    pub(crate) fn new(name: &'static str, command: String) -> Self {
        Self { name, command }
    }

    /// Lets it reconcile that many servers in their own namespace, and then leaves it idle.
    pub(crate) async fn measure(&self, plane: &ControlPlane, count: usize) -> Result<Figures> {
        let test = plane.namespace().await;
        let user = test.admin("operator");
        let Started { process, .. } = self.start(&test, &user).await?;
        let recording = user.record();
        let time = timeout(patience(count), make(&test, count)).await;
        process.check()?;
        let time = time.with_context(|| format!("not all was there after {:?}", patience(count)))??;
        settle(&user).await?;
        let writes: Vec<Request> = recording.requests().await.into_iter().filter(Request::is_write).collect();
        let cpu = Usage::of(process.pid())?.cpu;

        print_progress(&format!("{} is left idle for {STEADY:?}", self.name));
        let recording = user.record();
        sleep(STEADY).await;
        let steady = recording.writes().await.len();
        let usage = Usage::of(process.pid())?;

        print_progress(&format!("{} is restarted", self.name));
        process.stop()?;
        let recording = user.record();
        let Started { process, .. } = self.start(&test, &user).await?;
        sleep(RESTARTED).await;
        let restart = recording.writes().await.len();
        let restarted = Usage::of(process.pid())?;
        process.stop()?;
        Ok(Figures { time, writes, steady, restart, cpu, usage, restarted })
    }

    /// Starts it, and waits until it is ready.
    pub(crate) async fn start(&self, test: &Namespace, user: &User) -> Result<Started> {
        let folder = test.folder().join(user.name());
        fs::create_dir_all(&folder)?;
        let [metrics, health] = free_addresses()?;
        let mut args = vec![
            format!("KUBECONFIG={}", user.kubeconfig_file().display()),
            format!("WATCH_NAMESPACE={}", test.name()),
        ];
        args.extend(self.command.split_whitespace().map(Into::into));
        args.push(format!("--metrics-bind-address={metrics}"));
        args.push(format!("--health-probe-bind-address={health}"));
        // env sets the environment and then becomes the program.
        let process = Process::start(Path::new("env"), args, &folder)?;
        let deadline = Instant::now() + READY_WITHIN;
        while !is_ready(health).await {
            process.check().with_context(|| format!("`{}` does not run", self.command))?;
            ensure!(Instant::now() < deadline, "`{}` is not ready after {READY_WITHIN:?}", self.command);
            sleep(Duration::from_millis(50)).await;
        }
        Ok(Started { process, metrics })
    }
}

/// An operator that runs.
pub(crate) struct Started {
    pub(crate) process: Process,
    metrics: SocketAddr,
}

impl Started {
    /// The value of a gauge without labels.
    pub(crate) async fn gauge(&self, name: &str) -> Result<i64> {
        let text = get(self.metrics, "/metrics").await?;
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("skep_operator_{name} ")));
        line.and_then(|value| value.trim().parse().ok()).with_context(|| format!("no metric {name}"))
    }
}

/// Creates the servers, and waits until the operator has done its part.
async fn make(test: &Namespace, count: usize) -> Result<Duration> {
    let api = servers::api(test.admin("creator").client(), test.name());
    let names = servers::names(count);
    let client = test.client();
    let start = Instant::now();
    let create = servers::for_each(&names, async |name: &String| servers::create(&api, name).await.map(drop));
    let ((), end) = tokio::try_join!(create, servers::complete(client, test.name(), count))?;
    Ok(end - start)
}

/// Waits until the user writes no more.
async fn settle(user: &User) -> Result<()> {
    let deadline = Instant::now() + SETTLED_WITHIN;
    loop {
        let recording = user.record();
        sleep(SETTLED).await;
        if recording.writes().await.is_empty() {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "it still writes {SETTLED_WITHIN:?} after all was there");
    }
}

/// Loopback addresses that are free now. They are held together, so that they differ.
fn free_addresses() -> Result<[SocketAddr; 2]> {
    let held = [TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?, TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?];
    Ok([held[0].local_addr()?, held[1].local_addr()?])
}

/// Probes as the kubelet does.
async fn is_ready(address: SocketAddr) -> bool {
    get(address, "/readyz").await.is_ok_and(|response| response.starts_with("HTTP/1.1 200"))
}

/// The response to a request for a path, with its headers.
async fn get(address: SocketAddr, path: &str) -> Result<String> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let exchange = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut response = String::new();
        stream.read_to_string(&mut response).await?;
        anyhow::Ok(response)
    };
    timeout(Duration::from_secs(5), exchange).await.context("no response within five seconds")?
}
