//! Calls per second and their latency, over the last minute.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// The seconds that are counted.
const SECONDS: usize = 60;
/// Latencies are counted in classes, each of which is a quarter longer than the one before. The first is 0.1 ms, the last a
/// quarter of an hour.
const CLASSES: usize = 72;
const FIRST: f64 = 0.1;
const GROWTH: f64 = 1.25;

/// The calls of the last minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Traffic {
    /// Calls per second.
    pub per_second: f64,
    /// Failed calls per second.
    pub errors_per_second: f64,
    /// The median of their time, in milliseconds, to within an eighth.
    pub p50: Option<f64>,
    /// The time that one in a hundred exceeds.
    pub p99: Option<f64>,
}

/// What was counted in the last minute. Those of several processes together give one [`Traffic`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// How many seconds were counted: fewer than a minute right after the start.
    seconds: u64,
    calls: u64,
    errors: u64,
    /// The classes of latencies that have calls, and how many.
    classes: Vec<(usize, u64)>,
}

impl Traffic {
    /// The calls of all that were counted.
    pub(super) fn of<'a>(all: impl IntoIterator<Item = &'a Counts>) -> Self {
        let mut classes = [0u64; CLASSES];
        let mut traffic = Self::default();
        for counts in all {
            let seconds = counts.seconds.clamp(1, SECONDS as u64) as f64;
            traffic.per_second += counts.calls as f64 / seconds;
            traffic.errors_per_second += counts.errors as f64 / seconds;
            for (class, count) in &counts.classes {
                if let Some(sum) = classes.get_mut(*class) {
                    *sum = sum.saturating_add(*count);
                }
            }
        }
        let rounded = |rate: f64| (rate * 100.0).round() / 100.0;
        Self {
            per_second: rounded(traffic.per_second),
            errors_per_second: rounded(traffic.errors_per_second),
            p50: quantile(&classes, 0.5),
            p99: quantile(&classes, 0.99),
        }
    }
}

/// What is counted of one second.
#[derive(Clone, Copy)]
struct Second {
    calls: u32,
    errors: u32,
    classes: [u16; CLASSES],
}

const NOTHING: Second = Second { calls: 0, errors: 0, classes: [0; CLASSES] };

/// A ring of seconds.
pub(super) struct Counters {
    begin: Instant,
    /// The second that the last call was counted in, since `begin`.
    current: u64,
    seconds: Box<[Second; SECONDS]>,
}

impl Counters {
    pub(super) fn new(begin: Instant) -> Self {
        Self { begin, current: 0, seconds: Box::new([NOTHING; SECONDS]) }
    }

    pub(super) fn record(&mut self, now: Instant, duration: Duration, failed: bool) {
        self.advance(now);
        let second = &mut self.seconds[(self.current % SECONDS as u64) as usize];
        second.calls = second.calls.saturating_add(1);
        second.errors = second.errors.saturating_add(failed.into());
        let class = &mut second.classes[class(duration)];
        *class = class.saturating_add(1);
    }

    pub(super) fn counts(&mut self, now: Instant) -> Counts {
        self.advance(now);
        let mut classes = [0u64; CLASSES];
        let (mut calls, mut errors) = (0u64, 0u64);
        for second in &*self.seconds {
            calls += u64::from(second.calls);
            errors += u64::from(second.errors);
            for (sum, count) in classes.iter_mut().zip(&second.classes) {
                *sum += u64::from(*count);
            }
        }
        let classes = classes.into_iter().enumerate().filter(|(_, count)| *count > 0).collect();
        Counts { seconds: (self.current + 1).min(SECONDS as u64), calls, errors, classes }
    }

    /// Clears the seconds that have passed without a call.
    fn advance(&mut self, now: Instant) {
        let second = now.saturating_duration_since(self.begin).as_secs();
        let passed = second.saturating_sub(self.current).min(SECONDS as u64);
        for step in 1..=passed {
            self.seconds[((second - passed + step) % SECONDS as u64) as usize] = NOTHING;
        }
        self.current = self.current.max(second);
    }
}

fn class(duration: Duration) -> usize {
    let ms = duration.as_secs_f64() * 1000.0;
    let class = (ms / FIRST).ln() / GROWTH.ln();
    // A time below the first class has a negative one, which is cast to 0.
    (class.ceil() as usize).min(CLASSES - 1)
}

/// The time of the class that has this quantile: its middle.
fn quantile(classes: &[u64; CLASSES], quantile: f64) -> Option<f64> {
    let all = classes.iter().fold(0u64, |sum, count| sum.saturating_add(*count));
    let wanted = (all as f64 * quantile).ceil() as u64;
    let mut seen = 0u64;
    let class = classes.iter().position(|count| {
        seen = seen.saturating_add(*count);
        wanted > 0 && seen >= wanted
    })?;
    let middle = FIRST * GROWTH.powf(class as f64 - 0.5);
    Some((middle * 100.0).round() / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic_at(counters: &mut Counters, now: Instant) -> Traffic {
        Traffic::of([&counters.counts(now)])
    }

    #[test]
    fn a_minute_is_counted_and_what_is_older_is_not() {
        let begin = Instant::now();
        let at = |seconds: u64| begin + Duration::from_secs(seconds);
        let mut counters = Counters::new(begin);
        assert_eq!(traffic_at(&mut counters, begin), Traffic::default());
        for second in 0..60 {
            counters.record(at(second), Duration::from_millis(10), second % 2 == 0);
            counters.record(at(second), Duration::from_millis(10), false);
        }
        let traffic = traffic_at(&mut counters, at(59));
        assert_eq!((traffic.per_second, traffic.errors_per_second), (2.0, 0.5));
        let half = traffic_at(&mut counters, at(89));
        assert_eq!(half.per_second, 1.0);
        assert_eq!(traffic_at(&mut counters, at(120)), Traffic::default());
        // After a long time without calls, the ring is empty.
        counters.record(at(10_000), Duration::from_millis(10), false);
        assert_eq!(traffic_at(&mut counters, at(10_000)).per_second, 0.02);
    }

    #[test]
    fn a_quantile_is_within_an_eighth() {
        let begin = Instant::now();
        for ms in [0.2, 1.0, 7.5, 42.0, 900.0, 60_000.0] {
            let mut counters = Counters::new(begin);
            counters.record(begin, Duration::from_secs_f64(ms / 1000.0), false);
            let p50 = traffic_at(&mut counters, begin).p50.unwrap();
            assert!((p50 / ms - 1.0).abs() < 0.125, "{ms}: {p50}");
        }
    }

    #[test]
    fn one_slow_call_in_a_hundred_is_not_the_99th_percentile_and_two_are() {
        let begin = Instant::now();
        let mut counters = Counters::new(begin);
        for _ in 0..99 {
            counters.record(begin, Duration::from_millis(1), false);
        }
        counters.record(begin, Duration::from_secs(5), false);
        assert!(traffic_at(&mut counters, begin).p99.unwrap() < 2.0);
        counters.record(begin, Duration::from_secs(5), false);
        assert!(traffic_at(&mut counters, begin).p99.unwrap() > 4_000.0);
    }

    #[test]
    fn times_beyond_all_classes_are_counted_in_the_nearest() {
        let begin = Instant::now();
        let mut counters = Counters::new(begin);
        counters.record(begin, Duration::ZERO, false);
        counters.record(begin, Duration::from_secs(1 << 30), false);
        assert!(traffic_at(&mut counters, begin).p99.is_some());
    }

    #[test]
    fn the_counts_of_several_processes_are_one_traffic() {
        let begin = Instant::now();
        let counted = |seconds: u64, ms: u64| {
            let mut counters = Counters::new(begin);
            for second in 0..seconds {
                let now = begin + Duration::from_secs(second);
                counters.record(now, Duration::from_millis(ms), ms > 100);
            }
            counters.counts(begin + Duration::from_secs(seconds - 1))
        };
        // One process has run for a minute, and the other for ten seconds: each has a call per second.
        let (fast, slow) = (counted(60, 10), counted(10, 1000));
        let traffic = Traffic::of([&fast, &slow]);
        assert_eq!((traffic.per_second, traffic.errors_per_second), (2.0, 1.0));
        assert!(traffic.p50.unwrap() < 12.0 && traffic.p99.unwrap() > 900.0, "{traffic:?}");
        let sent: Counts = serde_json::from_str(&serde_json::to_string(&slow).unwrap()).unwrap();
        assert_eq!(sent, slow);
    }

    #[test]
    fn counts_of_a_hostile_process_are_figures_like_any_other() {
        let hostile = Counts {
            seconds: 0,
            calls: u64::MAX,
            errors: u64::MAX,
            classes: vec![(0, u64::MAX), (0, u64::MAX), (CLASSES, 1), (usize::MAX, 1)],
        };
        let traffic = Traffic::of([&hostile, &hostile]);
        assert!(traffic.per_second.is_finite() && traffic.p99.is_some(), "{traffic:?}");
    }
}
