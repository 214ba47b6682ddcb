//! Measured programs, and their resource usage.

use std::{
    fs,
    net::{SocketAddr, TcpListener},
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::TcpStream,
    process::{Child, Command},
};

use crate::usage::{self, Usage};

/// How long a program may take to end.
const END_TIME: Duration = Duration::from_secs(5);

/// A program that runs, until this is dropped.
pub struct Running {
    child: Child,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Running {
    /// This program itself, with these arguments. The first line of its output is its address.
    pub async fn own(arguments: &[&str]) -> Result<(Self, String)> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut child = command.args(arguments).stdout(Stdio::piped()).process_group(0).spawn()?;
        let output = child.stdout.take().context("the server has no output")?;
        let line =
            BufReader::new(output).lines().next_line().await?.context("the server prints no address")?;
        let address = line.split_whitespace().next().unwrap_or_default().parse()?;
        Ok((Self { child, address }, line))
    }

    /// A program by its command line, which listens on this port. What is in braces in the command line is replaced.
    pub async fn start(command: &str, replacements: &[(&str, &str)], port: u16) -> Result<Self> {
        let replaced = replacements.iter().fold(command.to_owned(), |command, (name, value)| {
            command.replace(&format!("{{{name}}}"), value)
        });
        let mut words = replaced.split_whitespace();
        let program = words.next().context("an empty command")?;
        let child = Command::new(program)
            .args(words)
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .process_group(0)
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

    /// The memory that it has with the processes that it started, in bytes.
    pub fn rss(&self) -> Result<u64> {
        Ok(self.usages()?.iter().map(|usage| usage.memory).sum())
    }

    /// The part of its memory that is not a part of files: what it allocated.
    pub fn allocated(&self) -> Result<u64> {
        Ok(self.usages()?.iter().map(|usage| usage.allocated).sum())
    }

    /// How many files and connections it has open, with the processes that it started.
    pub fn open_files(&self) -> Result<usize> {
        let count = |pid| anyhow::Ok(fs::read_dir(format!("/proc/{pid}/fd"))?.count());
        self.processes()?.into_iter().map(count).sum()
    }

    /// The processor time that it has used, with the processes that it started.
    pub fn cpu(&self) -> Result<Duration> {
        Ok(self.usages()?.iter().map(|usage| usage.cpu).sum())
    }

    fn usages(&self) -> Result<Vec<Usage>> {
        self.processes()?.into_iter().map(Usage::of).collect()
    }

    /// It and those that it started: its group, which is named after it.
    fn processes(&self) -> Result<Vec<u32>> {
        let group = self.child.id().context("it has ended")?;
        let all = fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        Ok(all.filter(|pid| usage::group(*pid) == Some(group)).collect())
    }
}

impl Drop for Running {
    /// Lets it end by itself within a limit: `make profile` needs what a program writes at its end.
    fn drop(&mut self) {
        let group = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let Some(group) = group else { return };
        kill_process_group(group, Signal::TERM).ok();
        let deadline = Instant::now() + END_TIME;
        // It stays a zombie, so that its group is not another's before the rest of it is killed.
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        while Instant::now() < deadline && matches!(waitid(WaitId::Pid(group), ended), Ok(None)) {
            thread::sleep(Duration::from_millis(10));
        }
        kill_process_group(group, Signal::KILL).ok();
    }
}

/// A free port.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
