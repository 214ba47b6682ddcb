//! How many runs each caller has in Redis, so that none fills it.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use skep_gateway::sessions::Holder;

use crate::limits;

/// The runs that this replica has kept. Each counts until it is taken, or has expired.
#[derive(Default)]
pub(super) struct Quota(Mutex<HashMap<Holder, Vec<Counted>>>);

struct Counted {
    state: String,
    until: Instant,
}

impl Quota {
    /// Counts a run of this holder. Returns whether there was room for it.
    pub(super) fn add(&self, holder: Holder, state: &str, life: Duration) -> bool {
        let now = Instant::now();
        let mut runs = self.lock();
        retain(&mut runs, |run| now < run.until);
        let all: usize = runs.values().map(Vec::len).sum();
        let own = runs.get(&holder).map_or(0, Vec::len);
        let Some(until) = now.checked_add(life) else { return false };
        let has_room = all < limits::KEPT_RUNS && own < limits::KEPT_RUNS_OF_ONE.of(holder);
        if has_room {
            runs.entry(holder).or_default().push(Counted { state: state.to_owned(), until });
        }
        has_room
    }

    /// A run that this or another replica has taken.
    pub(super) fn remove(&self, state: &str) {
        retain(&mut self.lock(), |run| run.state != state);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Holder, Vec<Counted>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn retain(runs: &mut HashMap<Holder, Vec<Counted>>, is_kept: impl Fn(&Counted) -> bool) {
    runs.retain(|_, runs| {
        runs.retain(&is_kept);
        !runs.is_empty()
    });
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const LIFE: Duration = Duration::from_secs(60);

    fn holder(number: usize) -> Holder {
        Holder::new(None, Ipv4Addr::from(u32::try_from(number).unwrap()).into())
    }

    #[test]
    fn a_caller_has_a_share_and_a_run_that_is_taken_or_expires_makes_room() {
        let quota = Quota::default();
        let share = limits::KEPT_RUNS_OF_ONE.of(holder(1));
        assert!(quota.add(holder(1), "brief", Duration::ZERO));
        for number in 0..share {
            assert!(quota.add(holder(1), &number.to_string(), LIFE), "{number}");
        }
        assert!(!quota.add(holder(1), "one too many", LIFE));
        assert!(quota.add(holder(2), "of another", LIFE));
        quota.remove("7");
        assert!(quota.add(holder(1), "one more", LIFE));
        assert!(!quota.add(holder(1), "one too many", LIFE));
    }

    #[test]
    fn all_callers_together_have_a_bound() {
        let quota = Quota::default();
        let kept = (0..2 * limits::KEPT_RUNS).filter(|n| quota.add(holder(*n), &n.to_string(), LIFE));
        assert_eq!(kept.count(), limits::KEPT_RUNS);
    }
}
