//! Sets of policies, which callers in the same groups share.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use cedar_policy::PolicySet;

/// How many policies all sets together may have. Each takes about 600 bytes in each set.
const POLICIES: usize = 16 << 10;

/// Sets by the places of their policies.
#[derive(Default)]
pub(super) struct Sets(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    sets: HashMap<Arc<[usize]>, Arc<PolicySet>>,
    /// The policies of all sets, and one for each set.
    weight: usize,
}

impl Sets {
    /// The set of the policies at these places. If there are too many sets, they start again.
    pub(super) fn of(
        &self,
        places: &Arc<[usize]>,
        set: impl FnOnce() -> Option<PolicySet>,
    ) -> Option<Arc<PolicySet>> {
        if let Some(set) = self.0.lock().unwrap_or_else(PoisonError::into_inner).sets.get(places) {
            return Some(set.clone());
        }
        let set = Arc::new(set()?);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let weight = places.len() + 1;
        if kept.weight + weight > POLICIES {
            *kept = Kept::default();
        }
        if kept.sets.insert(places.clone(), set.clone()).is_none() {
            kept.weight += weight;
        }
        Some(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policies_of_all_sets_are_limited() {
        let sets = Sets::default();
        for number in 0..100 {
            let places: Arc<[usize]> = (number..number + POLICIES / 10).collect();
            assert!(sets.of(&places, || Some(PolicySet::new())).is_some());
            assert!(sets.of(&places, || None).is_some(), "it is kept");
            let kept = sets.0.lock().unwrap();
            let weight: usize = kept.sets.keys().map(|places| places.len() + 1).sum();
            assert!(kept.weight == weight && weight <= POLICIES, "{weight}");
        }
    }
}
