//! `skep run --detach`: the same process, in the background.

use std::{
    env, fs,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};

use super::{
    args::Args,
    listing::listing,
    runs::{Run, RunFolder, RunRecord},
};
use crate::output::print;

/// How long to wait for servers. npx may have to download one; they start in the background in any case.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often the state is read.
const PAUSE: Duration = Duration::from_millis(100);

/// Starts the run in the background, and waits until its servers are ready or have failed.
pub(super) fn detach(args: &Args) -> anyhow::Result<()> {
    let folder = RunFolder::prepare(&args.run_name(), &args.sources())
        .context("cannot create the folder of the run")?;
    let (name, log) = (folder.name().to_owned(), folder.create_log()?);
    let reads_input = args.files.iter().any(|file| file == Path::new("-"));
    let process = Command::new(env::current_exe()?)
        .arg("run")
        .arg(format!("--background={name}"))
        // Behind the name of the command.
        .args(env::args_os().skip(2))
        .stdin(if reads_input { Stdio::inherit() } else { Stdio::null() })
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .context("cannot start skep run in the background")?;
    let run = folder.hand_over();
    let record = started(&run, process)?;
    let is_pending = record.servers.iter().any(|server| server.phase == "Pending");
    let more = if is_pending { "Some servers are still starting. " } else { "" };
    let console = match record.console.as_str() {
        "" => String::new(),
        url => format!("Console: {url}\n"),
    };
    print(&listing(&[record]))?;
    print(&format!("\n{console}{more}Output: skep logs {name}; stop: skep stop {name}\n"))
}

/// The state of a run once all its servers are ready or have failed, or after a while.
fn started(run: &Run, mut process: Child) -> anyhow::Result<RunRecord> {
    let start = Instant::now();
    loop {
        if process.try_wait()?.is_some() {
            let log = fs::read_to_string(run.log()).unwrap_or_default();
            run.remove().ok();
            bail!("{}", log.trim().trim_start_matches("error: "));
        }
        let record = run.record().filter(|record| record.pid == process.id());
        let is_pending = |record: &RunRecord| record.servers.iter().any(|server| server.phase == "Pending");
        if let Some(record) = record.filter(|record| !is_pending(record) || start.elapsed() > PATIENCE) {
            return Ok(record);
        }
        thread::sleep(PAUSE);
    }
}
