//! The numbers as text.

use std::{cmp::Ordering, fmt::Write, time::Duration};

use skep_bench_harness::Measured;

/// The result of one turn.
#[derive(Clone, Copy)]
pub(crate) struct Turn {
    rate: f64,
    /// The rate over that of calling directly, just before.
    ratio: f64,
    /// The rate over that of skep in the same round.
    of_skep: f64,
    p50: Duration,
    p99: Duration,
    /// The processor time of the proxy for each call.
    cpu: Duration,
}

impl Turn {
    pub(crate) fn new(measured: &Measured, direct: f64, skep: f64, cpu: Duration) -> Self {
        let calls = u32::try_from(measured.count().max(1)).unwrap_or(u32::MAX);
        let (rate, p50, p99) = (measured.rate(), measured.at(0.5), measured.at(0.99));
        Self { rate, ratio: rate / direct, of_skep: rate / skep, p50, p99, cpu: cpu / calls }
    }
}

/// One line of the table.
pub(crate) struct Row {
    name: String,
    /// The median of each figure.
    turn: Turn,
    /// The least and the greatest ratio.
    spread: (f64, f64),
    /// The 99th percentile under overload.
    overload: Duration,
    /// Memory when nothing has happened yet, and after many sessions.
    memory: Option<(u64, u64)>,
}

impl Row {
    pub(crate) fn direct(turns: &[Turn], overload: Duration) -> Self {
        Self::of("direct".into(), turns, overload, None)
    }

    /// The memory is that when nothing has happened yet, and after many sessions.
    pub(crate) fn proxied(name: String, turns: &[Turn], overload: Duration, memory: (u64, u64)) -> Self {
        Self::of(name, turns, overload, Some(memory))
    }

    /// Of at least one turn.
    fn of(name: String, turns: &[Turn], overload: Duration, memory: Option<(u64, u64)>) -> Self {
        let ratios = || turns.iter().map(|turn| turn.ratio);
        let turn = Turn {
            rate: median(turns, |turn| turn.rate),
            ratio: median(turns, |turn| turn.ratio),
            of_skep: median(turns, |turn| turn.of_skep),
            p50: median(turns, |turn| turn.p50),
            p99: median(turns, |turn| turn.p99),
            cpu: median(turns, |turn| turn.cpu),
        };
        let spread = (ratios().fold(f64::INFINITY, f64::min), ratios().fold(0.0, f64::max));
        Self { name, turn, spread, overload, memory }
    }
}

/// Each figure has a median of its own: a turn that the machine disturbed may have a usual ratio and much processor time.
fn median<T: PartialOrd + Copy>(turns: &[Turn], figure: impl Fn(&Turn) -> T) -> T {
    let mut figures: Vec<T> = turns.iter().map(figure).collect();
    figures.sort_by(|one, other| one.partial_cmp(other).unwrap_or(Ordering::Equal));
    figures[figures.len() / 2]
}

pub(crate) fn table(rows: &[Row]) -> String {
    let mut text = String::new();
    let head = [
        "",
        "calls/s",
        "of direct",
        "least",
        "most",
        "of skep",
        "p50 ms",
        "p99 ms",
        "p99 x10",
        "CPU us",
        "idle MB",
        "crowd MB",
    ];
    line(&mut text, head.map(Into::into));
    for Row { name, turn, spread, overload, memory } in rows {
        let millis = |time: Duration| format!("{:.2}", time.as_secs_f64() * 1e3);
        let megabytes = |bytes: u64| format!("{:.1}", bytes as f64 / 1e6);
        let of_proxy = |value: String| memory.map(|_| value).unwrap_or_default();
        let cells = [
            name.clone(),
            format!("{:.0}", turn.rate),
            format!("{:.2}", turn.ratio),
            of_proxy(format!("{:.2}", spread.0)),
            of_proxy(format!("{:.2}", spread.1)),
            of_proxy(format!("{:.2}", turn.of_skep)),
            millis(turn.p50),
            millis(turn.p99),
            millis(*overload),
            of_proxy(format!("{:.0}", turn.cpu.as_secs_f64() * 1e6)),
            memory.map(|(idle, _)| megabytes(idle)).unwrap_or_default(),
            memory.map(|(_, crowded)| megabytes(crowded)).unwrap_or_default(),
        ];
        line(&mut text, cells);
    }
    text
}

fn line(text: &mut String, cells: [String; 12]) {
    for cell in cells {
        // Writing to a String cannot fail.
        let _ = write!(text, "{cell:>10}");
    }
    text.push('\n');
}
