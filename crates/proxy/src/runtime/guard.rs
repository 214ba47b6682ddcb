//! Processes of servers end with this process, however it ends.
//!
//! A process that gets SIGKILL cannot end its children. So another one waits for the end of its standard input, which
//! the kernel closes, and then kills the process groups that are left. (`PR_SET_PDEATHSIG` reaches a child and not its
//! own children, depends on a thread, and exists on Linux only.)

use std::{
    collections::BTreeSet,
    io::{self, BufRead, Write},
    os::unix::process::CommandExt,
    process::{ChildStdin, Command, Stdio},
    sync::{Mutex, PoisonError},
};

use rustix::process::{Pid, Signal, kill_process_group};

/// A process that kills the process groups of servers when this one has ended.
pub struct Guard(Mutex<ChildStdin>);

impl Guard {
    /// Starts it. The command must call [`kill_orphans`] with its standard input.
    pub fn start(mut command: Command) -> io::Result<Self> {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Signals from the terminal are not for it.
            .process_group(0)
            .spawn()?;
        let input = process.stdin.take().ok_or_else(|| io::Error::other("it has no standard input"))?;
        Ok(Self(Mutex::new(input)))
    }

    pub(super) fn add(&self, group: Pid) {
        self.send(&format!("+{}\n", group.as_raw_nonzero()));
    }

    /// The group has ended, so that its number may be used for another one.
    pub(super) fn remove(&self, group: Pid) {
        self.send(&format!("-{}\n", group.as_raw_nonzero()));
    }

    fn send(&self, line: &str) {
        let mut input = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // If it was killed, servers run without it.
        input.write_all(line.as_bytes()).ok();
    }
}

/// Reads process groups, as `+GROUP` and `-GROUP`, until the input ends, and kills those that are left.
pub fn kill_orphans(input: impl BufRead) {
    let mut groups = BTreeSet::new();
    for line in input.lines().map_while(Result::ok) {
        let (sign, group) = line.split_at_checked(1).unwrap_or_default();
        let Some(group) = group.parse().ok().and_then(Pid::from_raw) else { continue };
        if sign == "+" {
            groups.insert(group.as_raw_nonzero());
        } else {
            groups.remove(&group.as_raw_nonzero());
        }
    }
    for group in groups.into_iter().filter_map(|group| Pid::from_raw(group.get())) {
        kill_process_group(group, Signal::KILL).ok();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn groups_that_were_not_removed_are_killed() {
        let start = || Command::new("sleep").arg("600").process_group(0).spawn().unwrap();
        let (mut left, mut ended) = (start(), start());
        kill_orphans(format!("+{}\n+{}\nx\n-{}\n", left.id(), ended.id(), ended.id()).as_bytes());
        assert_eq!(left.wait().unwrap().signal(), Some(9));
        assert!(ended.try_wait().unwrap().is_none());
        ended.kill().unwrap();
        ended.wait().unwrap();
    }
}
