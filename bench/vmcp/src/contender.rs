//! What is measured: programs in front of backends.

use std::{fmt::Write, fs, net::SocketAddr, path::PathBuf};

use anyhow::{Context, Result};
use skep_bench_harness::{Running, free_port};

/// A program to measure.
pub(crate) struct Contender {
    pub(crate) name: String,
    /// Its command line, with placeholders.
    pub(crate) command: String,
}

/// How many backends there are.
#[derive(Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) title: &'static str,
    pub(crate) backends: usize,
    /// Whether one of them is slow.
    pub(crate) slow: bool,
}

/// The backends of a setup.
pub(crate) struct Backends {
    pub(crate) addresses: Vec<SocketAddr>,
    _process: Running,
}

impl Setup {
    pub(crate) async fn start(self) -> Result<Backends> {
        let count = self.backends.to_string();
        let mut arguments = vec!["--serve", &count];
        arguments.extend(self.slow.then_some("--slow"));
        let (process, line) = Running::own(&arguments).await?;
        let addresses = line.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        Ok(Backends { addresses, _process: process })
    }
}

/// A program that runs, until this is dropped.
pub(crate) struct Virtual {
    pub(crate) running: Running,
    config: PathBuf,
}

impl Contender {
    /// Starts the program in front of these backends.
    pub(crate) async fn start(&self, backends: &Backends) -> Result<Virtual> {
        let port = free_port()?;
        let config = std::env::temp_dir().join(format!("skep-bench-vmcp-{port}.yaml"));
        fs::write(&config, configuration(&backends.addresses)?)?;
        let replacements = [("config", &*config.display().to_string()), ("port", &port.to_string())];
        let running = Running::start(&self.command, &replacements, port).await;
        let running = running.with_context(|| format!("{}: {}", self.name, self.command))?;
        Ok(Virtual { running, config })
    }
}

impl Drop for Virtual {
    fn drop(&mut self) {
        fs::remove_file(&self.config).ok();
    }
}

fn configuration(backends: &[SocketAddr]) -> Result<String> {
    let mut text = String::from(
        "name: bench\ngroupRef: bench\nincomingAuth: {type: anonymous}\noutgoingAuth: {source: inline}\n\
         aggregation:\n  conflictResolution: prefix\n  conflictResolutionConfig: {prefixFormat: '{workload}_'}\nbackends:\n",
    );
    for (index, address) in backends.iter().enumerate() {
        writeln!(text, "  - {{name: b{index}, url: 'http://{address}/mcp', transport: streamable-http}}")?;
    }
    Ok(text)
}

/// One line of a table.
pub(crate) fn print_row(cells: &[String]) {
    let (first, rest) = cells.split_first().map_or(("", cells), |(first, rest)| (first.as_str(), rest));
    let rest: String = rest.iter().map(|cell| format!("{cell:>12}")).collect();
    println!("{first:<28}{rest}");
}
