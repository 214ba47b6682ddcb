//! Buckets in memory, for a proxy that shares them with no other. They fill as those in Redis do.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Instant,
};

use super::Limit;
use crate::limits;

#[derive(Default)]
pub(super) struct Memory(Mutex<HashMap<String, Bucket>>);

struct Bucket {
    tokens: f64,
    filled: Instant,
    /// When it is full again, and can be dropped.
    full: Instant,
}

impl Memory {
    /// Takes a token from each bucket, or returns the first bucket that has none.
    pub(super) fn take(&self, keys: &[String], limits: &[Limit], now: Instant) -> Option<usize> {
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() + keys.len() > limits::BUCKETS {
            buckets.retain(|_, bucket| bucket.full > now);
        }
        let left: Vec<f64> =
            keys.iter().zip(limits).map(|(key, limit)| left(buckets.get(key), limit, now)).collect();
        let empty = left.iter().position(|tokens| *tokens < 1.0);
        let taken = if empty.is_none() { 1.0 } else { 0.0 };
        for ((key, limit), left) in keys.iter().zip(limits).zip(left) {
            let bucket = Bucket { tokens: left - taken, filled: now, full: now + limit.period };
            // A caller without room for its own bucket is only counted in the shared ones.
            if buckets.len() < limits::BUCKETS || buckets.contains_key(key) {
                buckets.insert(key.clone(), bucket);
            }
        }
        empty
    }
}

fn left(bucket: Option<&Bucket>, limit: &Limit, now: Instant) -> f64 {
    let most = f64::from(limit.tokens);
    bucket.map_or(most, |bucket| {
        let filled =
            now.saturating_duration_since(bucket.filled).as_secs_f64() * most / limit.period.as_secs_f64();
        most.min(bucket.tokens + filled)
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn limit(tokens: u32) -> Limit {
        Limit { tokens, period: Duration::from_secs(60) }
    }

    #[test]
    fn an_empty_bucket_refills_gradually() {
        let memory = Memory::default();
        let start = Instant::now();
        let take = |after: u64| {
            memory.take(&["a".into()], &[limit(2)], start + Duration::from_secs(after)).is_none()
        };
        assert_eq!(
            [0, 0, 0, 29, 30, 31, 600, 600, 600].map(take),
            [true, true, false, false, true, false, true, true, false]
        );
    }

    #[test]
    fn a_call_takes_from_each_bucket_or_from_none() {
        let memory = Memory::default();
        let now = Instant::now();
        let keys = ["all".to_owned(), "ann".to_owned()];
        assert_eq!(memory.take(&keys, &[limit(3), limit(1)], now), None);
        assert_eq!(memory.take(&keys, &[limit(3), limit(1)], now), Some(1));
        let others = ["all".to_owned(), "bob".to_owned()];
        assert_eq!(memory.take(&others, &[limit(3), limit(2)], now), None);
        assert_eq!(memory.take(&others, &[limit(3), limit(2)], now), None);
        assert_eq!(memory.take(&others, &[limit(3), limit(2)], now), Some(0));
    }

    #[test]
    fn buckets_are_bounded_and_those_that_are_full_again_make_room() {
        let memory = Memory::default();
        let start = Instant::now();
        for user in 0..limits::BUCKETS + 10 {
            memory.take(&[user.to_string()], &[limit(1)], start);
        }
        assert_eq!(memory.0.lock().unwrap().len(), limits::BUCKETS);
        memory.take(&["new".into()], &[limit(1)], start + Duration::from_secs(61));
        assert_eq!(memory.0.lock().unwrap().len(), 1);
    }
}
