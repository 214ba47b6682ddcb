//! The numbers, for people.

use std::{fmt::Write, time::Duration};

use crate::load::Measured;

/// One line of the table.
pub(crate) struct Row {
    name: String,
    rate: f64,
    ratio: f64,
    p50: Duration,
    p99: Duration,
    proxy: Option<Footprint>,
}

struct Footprint {
    idle: u64,
    crowded: u64,
    cpu: Duration,
}

impl Row {
    pub(crate) fn direct(measured: &Measured) -> Self {
        Self::of("direct", measured, measured.rate(), None)
    }

    pub(crate) fn proxied(
        name: &str,
        measured: &Measured,
        direct: f64,
        idle: u64,
        crowded: u64,
        cpu: Duration,
    ) -> Self {
        let cpu = cpu / u32::try_from(measured.times.len().max(1)).unwrap_or(u32::MAX);
        Self::of(name, measured, direct, Some(Footprint { idle, crowded, cpu }))
    }

    fn of(name: &str, measured: &Measured, direct: f64, proxy: Option<Footprint>) -> Self {
        let (rate, p50, p99) = (measured.rate(), measured.at(0.5), measured.at(0.99));
        Self { name: name.into(), rate, ratio: rate / direct, p50, p99, proxy }
    }
}

pub(crate) fn table(rows: &[Row], connections: usize, sessions: usize) -> String {
    let mut text = format!("{connections} connections; memory after {sessions} sessions\n\n");
    let head = ["", "calls/s", "of direct", "p50 ms", "p99 ms", "idle MB", "crowd MB", "CPU us"];
    line(&mut text, head.map(Into::into));
    for row in rows {
        let megabytes = |bytes: u64| format!("{:.1}", bytes as f64 / 1e6);
        let millis = |time: Duration| format!("{:.2}", time.as_secs_f64() * 1e3);
        let proxy = row.proxy.as_ref();
        line(
            &mut text,
            [
                row.name.clone(),
                format!("{:.0}", row.rate),
                format!("{:.2}", row.ratio),
                millis(row.p50),
                millis(row.p99),
                proxy.map(|proxy| megabytes(proxy.idle)).unwrap_or_default(),
                proxy.map(|proxy| megabytes(proxy.crowded)).unwrap_or_default(),
                proxy.map(|proxy| format!("{:.0}", proxy.cpu.as_secs_f64() * 1e6)).unwrap_or_default(),
            ],
        );
    }
    text
}

fn line(text: &mut String, cells: [String; 8]) {
    for cell in cells {
        // Writing to a String cannot fail.
        let _ = write!(text, "{cell:>10}");
    }
    text.push('\n');
}
