//! Programs that are measured, and what the kernel says of them.

use std::{
    fs,
    net::{SocketAddr, TcpListener},
    path::Path,
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::TcpStream,
    process::{Child, Command},
};

/// A program that runs, until this is dropped.
pub(crate) struct Running {
    child: Child,
    pub(crate) address: SocketAddr,
}

/// Processor time is counted in hundredths of a second.
const TICK: f64 = 0.01;

impl Running {
    /// This program as the server.
    pub(crate) async fn server() -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut child = command.arg("--serve").stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let output = child.stdout.take().context("the server has no output")?;
        let line = BufReader::new(output).lines().next_line().await?.context("the server says no address")?;
        Ok(Self { child, address: line.parse()? })
    }

    /// A proxy by its command line, ready to be called.
    pub(crate) async fn proxy(command: &str, config: &Path, server: SocketAddr, port: u16) -> Result<Self> {
        let command = command.replace("{config}", &config.display().to_string());
        let command =
            command.replace("{target}", &server.port().to_string()).replace("{port}", &port.to_string());
        let mut words = command.split_whitespace();
        let program = words.next().context("an empty command")?;
        let child = Command::new(program)
            .args(words)
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let running = Self { child, address: ([127, 0, 0, 1], port).into() };
        for _ in 0..200 {
            if TcpStream::connect(running.address).await.is_ok() {
                return Ok(running);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        bail!("it does not listen on port {port} within ten seconds")
    }

    /// The memory that it has, in bytes.
    pub(crate) fn rss(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid()?))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kilobytes * 1024)
    }

    /// The processor time that it has used.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid()?))?;
        // The name may hold anything, and ends with the last parenthesis.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok());
        let (user, system) = (ticks(11).context("no utime")?, ticks(12).context("no stime")?);
        Ok(Duration::from_secs_f64((user + system) * TICK))
    }

    fn pid(&self) -> Result<u32> {
        self.child.id().context("it has ended")
    }
}

/// A port that nobody listens on.
pub(crate) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
