//! Results that are kept for the next request, in a limited number.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{Action, Hints, Resource};

/// The longest id of a resource that is kept, in bytes. A caller may send any.
const LONGEST: usize = 128;

/// What a caller does, and to what.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Key {
    action: Action,
    hints: Hints,
    id: Box<str>,
}

impl Key {
    pub(crate) fn of(action: Action, resource: &Resource<'_>) -> Option<Self> {
        let id = resource.id;
        (id.len() <= LONGEST).then(|| Self { action, hints: resource.hints, id: id.into() })
    }
}

/// Results by their keys. One that is full starts again: a caller who names many things at random must not cost more than others.
pub(crate) struct Recent<K, V> {
    limit: usize,
    results: Mutex<HashMap<K, V>>,
}

impl<K: Hash + Eq, V: Clone> Recent<K, V> {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, results: Mutex::default() }
    }

    pub(crate) fn get(&self, key: &K) -> Option<V> {
        self.results().get(key).cloned()
    }

    pub(crate) fn put(&self, key: K, value: V) {
        let mut results = self.results();
        if results.len() >= self.limit {
            results.clear();
        }
        results.insert(key, value);
    }

    pub(crate) fn len(&self) -> usize {
        self.results().len()
    }

    fn results(&self) -> MutexGuard<'_, HashMap<K, V>> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_results_and_the_length_of_their_ids_are_limited() {
        let recent = Recent::new(4);
        for number in 0..100 {
            recent.put(number, number);
            assert!(recent.len() <= 4);
            assert_eq!(recent.get(&number), Some(number));
        }
        let has_key =
            |length: usize| Key::of(Action::CallTool, &Resource::new(&"x".repeat(length))).is_some();
        assert_eq!((has_key(LONGEST), has_key(LONGEST + 1)), (true, false));
    }
}
