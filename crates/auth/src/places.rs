//! Places for what strangers cause.

use std::{
    collections::HashMap,
    hash::Hash,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

use crate::peer::counted_address;

/// A number of places, of which no address, or no user, has more than its part: one that takes all it gets keeps no other out.
pub struct Places<K = IpAddr> {
    most: usize,
    most_of_one: usize,
    taken: Mutex<Taken<K>>,
}

struct Taken<K> {
    all: usize,
    of_each: HashMap<K, usize>,
}

/// A place, which is free again when this is dropped.
pub struct Place<K: Eq + Hash = IpAddr> {
    places: Arc<Places<K>>,
    of: K,
}

impl<K: Clone + Eq + Hash> Places<K> {
    /// So many places, and so many of one address or user.
    pub fn new(most: usize, most_of_one: usize) -> Arc<Self> {
        let taken = Taken { all: 0, of_each: HashMap::new() };
        Arc::new(Self { most, most_of_one, taken: Mutex::new(taken) })
    }

    /// A place for what this user causes, if there is one.
    pub fn take_for(self: &Arc<Self>, user: K) -> Option<Place<K>> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let of_user = taken.of_each.get(&user).copied().unwrap_or_default();
        if taken.all >= self.most || of_user >= self.most_of_one {
            return None;
        }
        taken.all += 1;
        taken.of_each.insert(user.clone(), of_user + 1);
        Some(Place { places: self.clone(), of: user })
    }
}

impl Places {
    /// A place for what this peer causes, if there is one.
    pub fn take(self: &Arc<Self>, peer: IpAddr) -> Option<Place> {
        self.take_for(counted_address(peer))
    }
}

impl<K: Eq + Hash> Place<K> {
    /// How many places are taken, with this one.
    pub fn taken(&self) -> usize {
        self.places.taken.lock().unwrap_or_else(PoisonError::into_inner).all
    }
}

impl<K: Eq + Hash> Drop for Place<K> {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.all -= 1;
        if let Some(count) = taken.of_each.get_mut(&self.of) {
            *count -= 1;
            if *count == 0 {
                taken.of_each.remove(&self.of);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_takes_its_part_and_leaves_the_others_theirs() {
        let places = Places::new(3, 2);
        let take = |address: &str| places.take(address.parse().unwrap());
        let held = [take("10.0.0.1").unwrap(), take("::ffff:10.0.0.1").unwrap()];
        assert!(take("10.0.0.1").is_none(), "it has its part");
        let other = take("10.0.0.2").unwrap();
        assert!(take("10.0.0.3").is_none(), "all are taken");
        drop(other);
        assert!(take("10.0.0.3").is_some(), "one who leaves makes room");
        drop(held);
        assert!(places.taken.lock().unwrap().of_each.is_empty(), "those who left take no memory");
    }
}
