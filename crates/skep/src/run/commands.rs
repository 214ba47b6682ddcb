//! `skep ls`, `skep logs`, `skep stop` and `skep rm`: runs that were started before.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{
    args::Output,
    listing::listing,
    record::ServerRecord,
    runs::{Run, RunRecord},
    table::client_name,
};
use crate::output::print;

/// How often a run is looked at.
const PAUSE: Duration = Duration::from_millis(100);
/// How much of a log is read at once.
const CHUNK: usize = 64 << 10;

/// List the servers of every skep run on this machine.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  skep ls\n  skep ls --all -o json")]
pub(crate) struct LsArgs {
    /// Also runs in the background that have ended. Their logs are kept until skep rm.
    #[arg(short, long)]
    all: bool,

    /// What is printed.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

/// Print the output of a run in the background.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  skep logs -f fetch")]
pub(crate) struct LogsArgs {
    /// Its name, as skep ls prints it.
    run: String,

    /// Wait for more until the run ends.
    #[arg(short, long)]
    follow: bool,

    /// Only so many lines from the end.
    #[arg(short = 'n', long, value_name = "LINES")]
    tail: Option<usize>,
}

/// Stop runs, with all their servers.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  skep stop fetch")]
pub(crate) struct StopArgs {
    /// Their names, as skep ls prints them.
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<String>,

    /// How many seconds a run may take to end before it is killed.
    #[arg(short, long, default_value_t = 20)]
    time: u64,
}

/// Remove runs in the background that have ended, with their logs.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  skep rm fetch")]
pub(crate) struct RmArgs {
    /// Their names, as skep ls --all prints them.
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<String>,

    /// Stop those that run.
    #[arg(short, long)]
    force: bool,
}

pub(crate) fn ls(args: &LsArgs) -> anyhow::Result<()> {
    let runs = Run::all().into_iter().filter_map(|run| Some((run.is_running(), run.record()?)));
    let runs: Vec<(bool, RunRecord)> = runs.filter(|(is_running, _)| args.all || *is_running).collect();
    match args.output {
        Output::Json => {
            let with_state = |(is_running, record): &(bool, RunRecord)| {
                let mut value = json!(record);
                value["running"] = json!(is_running);
                value
            };
            print(&format!("{}\n", Value::Array(runs.iter().map(with_state).collect())))
        }
        Output::Text => {
            let records: Vec<RunRecord> = runs.into_iter().map(of_ended).collect();
            print(&listing(&records))
        }
    }
}

/// A server that clients can use.
pub(crate) struct RunningServer {
    /// Its name, with letters that clients accept.
    pub(crate) name: String,
    pub(crate) url: String,
    pub(crate) transport: String,
}

/// The servers of all runs that have a URL. Those of the same name in several runs have the name of their run before it.
pub(crate) fn running_servers() -> Vec<RunningServer> {
    let runs = Run::all().into_iter().filter(Run::is_running).filter_map(|run| run.record());
    let servers = runs.flat_map(|run| run.servers.into_iter().map(move |server| (run.name.clone(), server)));
    let servers: Vec<_> = servers.filter(|(_, server)| !server.url.is_empty()).collect();
    let name = |(run, server): &(String, ServerRecord)| {
        let is_unique = servers.iter().filter(|(_, other)| other.name == server.name).count() == 1;
        if is_unique { client_name(&server.name) } else { client_name(&format!("{run}-{}", server.name)) }
    };
    let named = servers.iter().map(|one| RunningServer {
        name: name(one),
        url: one.1.url.clone(),
        transport: one.1.transport.clone(),
    });
    named.collect()
}

/// The servers of a run that has ended have no state.
fn of_ended((is_running, mut record): (bool, RunRecord)) -> RunRecord {
    for server in record.servers.iter_mut().filter(|_| !is_running) {
        server.phase = "Stopped".into();
        server.url.clear();
        server.tools = None;
        server.message.clear();
    }
    record
}

pub(crate) fn logs(args: &LogsArgs) -> anyhow::Result<()> {
    let run = Run::find(&args.run)?;
    let opened = File::open(run.log());
    let mut log = opened.with_context(|| format!("{} runs in a terminal: its output is there", args.run))?;
    if let Some(lines) = args.tail {
        let start = tail_start(&mut log, lines)?;
        log.seek(SeekFrom::Start(start))?;
    }
    loop {
        // Before the rest is read, so that nothing is lost.
        let is_running = run.is_running();
        copy(&mut log)?;
        if !args.follow || !is_running {
            return Ok(());
        }
        thread::sleep(PAUSE);
    }
}

/// Prints the rest of a log.
fn copy(log: &mut File) -> anyhow::Result<()> {
    let mut chunk = vec![0; CHUNK];
    loop {
        match log.read(&mut chunk)? {
            0 => return Ok(()),
            read => print(&String::from_utf8_lossy(&chunk[..read]))?,
        }
    }
}

/// Where the last lines of a log start.
fn tail_start(log: &mut File, lines: usize) -> anyhow::Result<u64> {
    let mut text = Vec::new();
    log.read_to_end(&mut text)?;
    let end = text.strip_suffix(b"\n").unwrap_or(&text);
    let ends = end.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n').map(|(index, _)| index + 1);
    let start = match lines {
        0 => text.len(),
        lines => ends.clone().nth(lines - 1).unwrap_or(0),
    };
    Ok(u64::try_from(start)?)
}

pub(crate) fn stop(args: &StopArgs) -> anyhow::Result<()> {
    for name in &args.runs {
        let run = Run::find(name)?;
        ensure!(run.is_running(), "{name} has ended already");
        end(&run, name, Duration::from_secs(args.time))?;
        print(&format!("{name}\n"))?;
    }
    Ok(())
}

pub(crate) fn rm(args: &RmArgs) -> anyhow::Result<()> {
    for name in &args.runs {
        let run = Run::find(name)?;
        if run.is_running() {
            ensure!(args.force, "{name} is running: stop it before, or use --force");
            end(&run, name, Duration::from_secs(20))?;
        }
        // One in the foreground has removed its folder.
        match run.remove() {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).context(format!("cannot remove {name}"));
            }
            _ => print(&format!("{name}\n"))?,
        }
    }
    Ok(())
}

/// Ends a run. While it holds its lock, its process id is its own.
fn end(run: &Run, name: &str, patience: Duration) -> anyhow::Result<()> {
    let pid = run.record().and_then(|record| i32::try_from(record.pid).ok()).and_then(Pid::from_raw);
    let pid = pid.with_context(|| format!("{name} is still starting: try again"))?;
    for (signal, patience) in [(Signal::TERM, patience), (Signal::KILL, Duration::from_secs(5))] {
        kill_process(pid, signal).with_context(|| format!("cannot stop {name}"))?;
        let start = Instant::now();
        while start.elapsed() < patience {
            if !run.is_running() {
                return Ok(());
            }
            thread::sleep(PAUSE);
        }
    }
    bail!("{name} does not end")
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write};

    use super::*;

    #[test]
    fn the_tail_of_a_log_starts_at_its_last_lines() {
        let path = std::env::temp_dir().join(format!("skep-tail-{}", std::process::id()));
        for (text, lines, expected) in
            [("a\nb\nc\n", 2, "b\nc\n"), ("a\nb", 1, "b"), ("a\n", 9, "a\n"), ("a\n", 0, ""), ("", 1, "")]
        {
            File::create(&path).unwrap().write_all(text.as_bytes()).unwrap();
            let start = usize::try_from(tail_start(&mut File::open(&path).unwrap(), lines).unwrap()).unwrap();
            assert_eq!(&text[start..], expected);
        }
        fs::remove_file(path).unwrap();
    }
}
