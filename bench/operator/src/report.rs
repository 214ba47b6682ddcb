//! The figures as a table, with the goals beside them.

mod goals;
mod table;

use std::{collections::BTreeMap, fmt, thread, time::Duration};

use crate::{
    AT_ONCE, bare,
    operator::{self, RESTARTED, STEADY},
};
use goals::Goal;
use table::Table;

/// The bare client, before the operators and after them.
pub(crate) struct Bare {
    /// Before.
    pub(crate) before: bare::Figures,
    /// After.
    pub(crate) after: bare::Figures,
}

impl Bare {
    fn time(&self) -> Duration {
        (self.before.time + self.after.time) / 2
    }
}

/// Everything that was measured.
pub(crate) struct Report {
    /// The number of servers of each contender.
    pub(crate) servers: usize,
    /// The load of the processors before the start, in percent.
    pub(crate) busy: u64,
    /// The bare client.
    pub(crate) bare: Bare,
    /// The operators.
    pub(crate) operators: Vec<(&'static str, operator::Figures)>,
}

/// A row of the table: what is measured, of an operator.
type Measure<'a> = &'a dyn Fn(&operator::Figures) -> f64;

impl Report {
    fn table(&self) -> Table {
        let servers = number(self.servers);
        let bare = self.bare.time().as_secs_f64();
        let megabytes = |bytes: u64| number(usize::try_from(bytes).unwrap_or(usize::MAX)) / 1e6;
        let mut table =
            Table::new(["bare client"].into_iter().chain(self.operators.iter().map(|(name, _)| *name)));
        let mut row = |title: &str,
                       bare: Option<f64>,
                       measure: Measure,
                       show: fn(f64) -> String,
                       goal: Option<Goal>| {
            let bare = bare.map(show).unwrap_or_default();
            let cells = self.operators.iter().map(|(_, figures)| {
                let value = measure(figures);
                let verdict = goal.map(|goal| goal.verdict(value)).unwrap_or_default();
                format!("{}{verdict}", show(value))
            });
            table.row(title, [bare].into_iter().chain(cells), goal.map(|goal| goal.to_string()));
        };
        let time = |figures: &operator::Figures| figures.time.as_secs_f64();
        row("all created after, s", Some(bare), &time, two_digits, None);
        row("servers per second", Some(servers / bare), &|f| servers / time(f), one_digit, None);
        row(
            "throughput, bare client = 1",
            Some(1.0),
            &|f| bare / time(f),
            two_digits,
            Some(Goal::THROUGHPUT),
        );
        let bare_writes = number(self.bare.before.writes) / servers;
        let writes = |figures: &operator::Figures| number(figures.writes.len()) / servers;
        row("writes per server until settled", Some(bare_writes), &writes, two_digits, Some(Goal::WRITES));
        let title = format!("writes in {STEADY:?} of no change");
        row(&title, None, &|f| number(f.steady), whole, Some(Goal::NONE));
        let title = format!("writes in {RESTARTED:?} after a restart");
        row(&title, None, &|f| number(f.restart), whole, Some(Goal::NONE));
        let goal = Goal::memory(self.servers);
        row("memory, MB", None, &|f| megabytes(f.usage.memory), one_digit, goal);
        row("memory at most, MB", None, &|f| megabytes(f.usage.most_memory), one_digit, None);
        row("memory after a restart, MB", None, &|f| megabytes(f.restarted.memory), one_digit, goal);
        row("CPU until settled, s", None, &|f| f.cpu.as_secs_f64(), two_digits, None);
        row("CPU of a restart, s", None, &|f| f.restarted.cpu.as_secs_f64(), two_digits, None);
        table
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let (servers, busy) = (self.servers, self.busy);
        writeln!(
            f,
            "{servers} MCPServers, {AT_ONCE} at once, on {cores} cores that others kept {busy} % busy\n"
        )?;
        writeln!(f, "{}", self.table())?;
        let [before, after] = [self.bare.before.time, self.bare.after.time].map(|time| time.as_secs_f64());
        writeln!(f, "The bare client took {before:.2} s before the operators and {after:.2} s after them.")?;
        for (name, figures) in &self.operators {
            writeln!(f, "Writes of {name} until settled:")?;
            for (what, count) in by_resource(figures) {
                writeln!(f, "  {count:>6}  {what}")?;
            }
        }
        Ok(())
    }
}

/// How often each resource was written, and how often the write was rejected.
fn by_resource(figures: &operator::Figures) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for request in &figures.writes {
        let slash = if request.subresource.is_empty() { "" } else { "/" };
        let rejected =
            if request.code >= 400 { format!(", rejected with {}", request.code) } else { String::new() };
        let what = format!("{} {}{slash}{}{rejected}", request.verb, request.resource, request.subresource);
        *counts.entry(what).or_default() += 1;
    }
    counts
}

/// Counts here are far below what a float holds exactly.
fn number(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}

fn whole(value: f64) -> String {
    format!("{value:.0}")
}

fn one_digit(value: f64) -> String {
    format!("{value:.1}")
}

fn two_digits(value: f64) -> String {
    format!("{value:.2}")
}
