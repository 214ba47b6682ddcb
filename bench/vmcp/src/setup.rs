//! Programs in front of backends.

use std::{fmt::Write, fs, net::SocketAddr, path::PathBuf};

use anyhow::Result;
use skep_bench_harness::{Program, Running, free_port};

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

impl Virtual {
    /// Starts a program in front of these backends.
    pub(crate) async fn start(program: &Program, backends: &Backends) -> Result<Self> {
        let port = free_port()?;
        let config = std::env::temp_dir().join(format!("skep-bench-vmcp-{port}.yaml"));
        fs::write(&config, configuration(&backends.addresses)?)?;
        let replacements = [("config", &*config.display().to_string()), ("port", &port.to_string())];
        let running = program.start(&replacements, port).await?;
        Ok(Self { running, config })
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
