//! What a process uses, from /proc.

use std::{fs, time::Duration};

use anyhow::{Context, Result, ensure};

/// What a process has used until now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usage {
    /// Bytes of memory that it holds.
    pub memory: u64,
    /// Those of them that are not parts of files: what it allocated.
    pub allocated: u64,
    /// The most bytes of memory that it has held.
    pub most_memory: u64,
    /// Processor time, its own and the kernel's for it.
    pub cpu: Duration,
}

impl Usage {
    /// The usage of a process.
    pub fn of(pid: u32) -> Result<Self> {
        let read = |file: &str| {
            fs::read_to_string(format!("/proc/{pid}/{file}"))
                .with_context(|| format!("process {pid} has ended by itself"))
        };
        let (status, stat) = (read("status")?, read("stat")?);
        let kibibytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|line| line.trim_start_matches(':').split_whitespace().next());
            number
                .and_then(|number| number.parse::<u64>().ok())
                .with_context(|| format!("/proc has no {name}"))
        };
        Ok(Self {
            memory: kibibytes("VmRSS")? * 1024,
            allocated: kibibytes("RssAnon")? * 1024,
            most_memory: kibibytes("VmHWM")? * 1024,
            cpu: cpu(&stat).context("/proc has no processor time")?,
        })
    }
}

/// Fails if a process still grows: if it held a tenth more memory in the last quarter of a long run than in the second one. There is a
/// figure for each minute; a run of less than eight minutes is too short to know.
pub fn ensure_flat(memory: &[u64]) -> Result<()> {
    let quarter = memory.len() / 4;
    let most = |from: usize| memory[from..from + quarter].iter().copied().max().unwrap_or_default();
    if quarter < 2 {
        return Ok(());
    }
    let (early, late) = (most(quarter), most(memory.len() - quarter));
    ensure!(late <= early + early / 10, "its memory has grown from {early} to {late} bytes");
    Ok(())
}

/// The group of a process that runs.
pub(crate) fn group(pid: u32) -> Option<u32> {
    number(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?, 5)?.try_into().ok()
}

/// The fields utime and stime.
fn cpu(stat: &str) -> Option<Duration> {
    let ticks = number(stat, 14)? + number(stat, 15)?;
    Some(Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second()))
}

/// A field of /proc/PID/stat, by its number in the manual. The second is the name, which may hold anything.
fn number(stat: &str, field: usize) -> Option<u64> {
    stat.rsplit(") ").next()?.split(' ').nth(field.checked_sub(3)?)?.parse().ok()
}

/// How busy the processors are over this long, in percent.
pub async fn busy(over: Duration) -> Result<u64> {
    let (idle_before, all_before) = machine()?;
    tokio::time::sleep(over).await;
    let (idle, all) = machine()?;
    let (idle, all) = (idle.saturating_sub(idle_before), all.saturating_sub(all_before).max(1));
    Ok(all.saturating_sub(idle) * 100 / all)
}

/// The idle ticks and all ticks of the processors.
fn machine() -> Result<(u64, u64)> {
    let text = fs::read_to_string("/proc/stat").context("/proc is missing: this needs Linux")?;
    let line = text.lines().next().unwrap_or_default();
    let ticks = line.split_whitespace().skip(1).map_while(|ticks| ticks.parse().ok());
    // The first eight counters; the fourth is idle time, and the fifth is time that waits for a disk.
    let ticks: Vec<u64> = ticks.take(8).collect();
    Ok((ticks.iter().skip(3).take(2).sum(), ticks.iter().sum()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_uses_memory_and_time() {
        let usage = Usage::of(std::process::id()).unwrap();
        assert!(usage.memory > 100_000 && usage.most_memory >= usage.memory, "{usage:?}");
        assert!(usage.allocated > 10_000 && usage.allocated < usage.memory, "{usage:?}");
    }

    #[test]
    fn memory_that_grows_to_the_end_is_noticed() {
        let grown_at_first = [10, 40, 80, 100, 100, 100, 104, 100];
        let grown_to_the_end = [10, 20, 30, 40, 50, 60, 70, 80];
        assert!(ensure_flat(&grown_at_first).is_ok() && ensure_flat(&[]).is_ok());
        assert!(ensure_flat(&grown_to_the_end).is_err());
    }

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_move_the_fields() {
        let stat = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0";
        let ticks = rustix::param::clock_ticks_per_second();
        assert_eq!(cpu(stat), Some(Duration::from_millis(200_000 / ticks)));
    }
}
