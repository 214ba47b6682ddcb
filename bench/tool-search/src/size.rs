//! How time and memory grow with the number of tools.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use skep_tool_search::{StaticModel, Tool};

use crate::{Args, data::Set, label, quality::Searcher};

/// Prints a row for 1,000 tools and one for 10,000. Each is measured by a process of its own, so that no memory is used again.
pub(crate) fn print(args: &Args) -> Result<()> {
    println!("| tools | search | index built in | memory | µs per query | p99 |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for count in [1_000, 10_000] {
        for model in [None, args.model.as_ref()].into_iter().take(1 + usize::from(args.model.is_some())) {
            let mut command = Command::new(std::env::current_exe()?);
            command.arg("--data").arg(&args.data).arg("--count").arg(count.to_string());
            if let Some(model) = model {
                command.arg("--model").arg(model);
            }
            anyhow::ensure!(command.status()?.success(), "the measurement of {count} tools failed");
        }
    }
    Ok(())
}

/// Prints the row of so many tools: those of all sets, again and again under other names.
pub(crate) fn print_row(sets: &[Set], count: usize, model: Option<&StaticModel>) -> Result<()> {
    let tools: Vec<Tool<'_>> = sets.iter().flat_map(Set::search_tools).collect();
    let tools: Vec<Tool<'_>> = (0..count)
        .zip(tools.iter().cycle())
        .map(|(number, tool)| Tool { name: format!("{}_{number}", tool.name).into(), ..tool.clone() })
        .collect();
    let before = resident()?;
    let started = Instant::now();
    let searcher = Searcher::new(&tools, model);
    let (built, memory) = (started.elapsed(), resident()?.saturating_sub(before));
    let mut times = Vec::new();
    for task in sets.iter().flat_map(|set| set.queries.iter().take(100)) {
        let started = Instant::now();
        std::hint::black_box(searcher.search(&task.text));
        times.push(started.elapsed());
    }
    times.sort();
    let mean = times.iter().sum::<Duration>().div_f64(times.len().max(1) as f64);
    let p99 = times.get(times.len() * 99 / 100).copied().unwrap_or_default();
    println!(
        "| {count} | {} | {} ms | {:.1} MB | {} | {} |",
        label(model.is_some()),
        built.as_millis(),
        memory as f64 / f64::from(1 << 20),
        mean.as_micros(),
        p99.as_micros(),
    );
    Ok(())
}

/// The memory that the process has now, in bytes.
fn resident() -> Result<usize> {
    let status = std::fs::read_to_string("/proc/self/status").context("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("VmRSS")?;
    let kilobytes: usize = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kilobytes << 10)
}
