//! Child processes that never outlive the test.
//!
//! A test may end by a panic, by Ctrl-C or by SIGKILL, and none of these runs a destructor. So each program has a
//! shell beside it that waits for its own standard input to close, which the kernel does when the test process has
//! ended, and then kills the program. (`PR_SET_PDEATHSIG` would do the same, but needs unsafe code and ends with the
//! thread, not with the process.)

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// Starts the program, prints its process id, and kills it once standard input ends.
/// Signals from the terminal are for the test process; the shell follows it.
const GUARD: &str = r#"
trap '' INT TERM HUP
log=$1; shift
"$@" </dev/null >>"$log" 2>&1 &
echo $!
exec >/dev/null
cat
kill -KILL $! 2>/dev/null
wait
"#;

/// An API server spends two fifths of its processor time with collecting garbage, unless it may have more of it. Only programs in Go read
/// these variables.
const GARBAGE_COLLECTION: [(&str, &str); 2] = [("GOGC", "400"), ("GOMEMLIMIT", "2GiB")];

/// A running program.
pub struct Process {
    name: String,
    pid: Pid,
    guard: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program whose output goes to `NAME.log` in the given folder.
    pub fn start<A: AsRef<OsStr>>(
        program: &Path,
        args: impl IntoIterator<Item = A>,
        folder: &Path,
    ) -> Result<Self> {
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let log = folder.join(format!("{name}.log"));
        File::options()
            .create(true)
            .append(true)
            .open(&log)
            .with_context(|| format!("cannot write {log:?}"))?;
        let mut guard = Command::new("sh")
            .args(["-c", GUARD, "guard"])
            .arg(&log)
            .arg(program)
            .args(args)
            .envs(GARBAGE_COLLECTION)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        let stdout = guard.stdout.take().context("the guard has no output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let pid = line.trim().parse().ok().and_then(Pid::from_raw);
        let pid = pid.with_context(|| format!("cannot start {name}: the shell printed {line:?}"))?;
        Ok(Self { name, pid, guard, log })
    }

    /// Whether the program still runs.
    pub fn is_running(&self) -> bool {
        is_running(self.pid())
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Fails with the last lines of its output if the program exited.
    pub fn check(&self) -> Result<()> {
        if self.is_running() {
            return Ok(());
        }
        let output = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = output.lines().collect();
        bail!("{} ended:\n{}", self.name, lines[lines.len().saturating_sub(15)..].join("\n"))
    }

    /// Terminates the program, and waits until it has ended.
    pub fn stop(self) -> Result<()> {
        kill_process(self.pid, Signal::TERM).ok();
        let deadline = Instant::now() + Duration::from_secs(30);
        while self.is_running() {
            if Instant::now() > deadline {
                bail!("{} did not end within 30 s of SIGTERM", self.name);
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

/// Dropping it ends the program at once, as a crash would.
impl Drop for Process {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        self.guard.wait().ok();
    }
}

/// Whether a process runs. A zombie does not.
pub fn is_running(pid: u32) -> bool {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        // The state comes after the name, which is in parentheses and may itself contain some.
        Ok(stat) => !stat.rsplit(") ").next().unwrap_or_default().starts_with('Z'),
        // Not Linux.
        Err(_) if !Path::new("/proc/self").exists() => {
            i32::try_from(pid).ok().and_then(Pid::from_raw).is_some_and(|pid| test_kill_process(pid).is_ok())
        }
        Err(_) => false,
    }
}
