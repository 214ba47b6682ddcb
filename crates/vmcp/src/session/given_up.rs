//! Requests of a client that were given up without a response, by the ids that the client gave them.
//!
//! A backend may still respond to one. If the client uses its id again, the backend must see another one, or it sends the response to
//! the wrong request.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde_json::{Value, json};

use crate::limits;

/// How often each id was given up, of those that were last.
#[derive(Debug, Default)]
pub(super) struct GivenUp(Mutex<VecDeque<(Box<str>, u64)>>);

impl GivenUp {
    /// Counts one more.
    pub(super) fn add(&self, id: &str) {
        let times = self.times(id) + 1;
        self.put(id, times);
    }

    pub(super) fn times(&self, id: &str) -> u64 {
        self.lock().iter().find(|(known, _)| **known == *id).map_or(0, |(_, times)| *times)
    }

    /// Takes over what another replica knows.
    pub(super) fn merge(&self, text: &str) {
        let known: Vec<(Box<str>, u64)> = serde_json::from_str(text).unwrap_or_default();
        for (id, times) in known {
            if times > self.times(&id) {
                self.put(&id, times);
            }
        }
    }

    /// All of it, for other replicas.
    pub(super) fn to_text(&self) -> Option<String> {
        let all = self.lock();
        let list: Vec<Value> = all.iter().map(|(id, times)| json!([**id, *times])).collect();
        (!list.is_empty()).then(|| Value::Array(list).to_string())
    }

    fn put(&self, id: &str, times: u64) {
        let mut all = self.lock();
        all.retain(|(known, _)| **known != *id);
        all.push_back((id.into(), times));
        if all.len() > limits::GIVEN_UP_IDS {
            all.pop_front();
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Box<str>, u64)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_known_here_and_at_other_replicas() {
        let (here, there) = (GivenUp::default(), GivenUp::default());
        assert_eq!(here.to_text(), None);
        for id in ["1", "\"a\"", "1"] {
            here.add(id);
        }
        there.add("2");
        there.merge(&here.to_text().unwrap());
        assert_eq!(["1", "\"a\"", "2", "3"].map(|id| there.times(id)), [2, 1, 1, 0]);
        there.add("1");
        there.merge(&here.to_text().unwrap());
        assert_eq!(there.times("1"), 3, "what is known is not taken back");
        there.merge("garbage");
        (0..limits::GIVEN_UP_IDS).for_each(|id| there.add(&format!("x{id}")));
        assert_eq!((there.times("1"), there.lock().len()), (0, limits::GIVEN_UP_IDS));
    }
}
