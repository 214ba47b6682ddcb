//! Places for what strangers cause.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

use crate::peer::counted_address;

/// A number of places, of which no address has more than its part: one that takes all it gets keeps no other out.
pub struct Places {
    most: usize,
    most_of_an_address: usize,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    all: usize,
    of_addresses: HashMap<IpAddr, usize>,
}

/// A place, which is free again when this is dropped.
pub struct Place {
    places: Arc<Places>,
    address: IpAddr,
}

impl Places {
    /// So many places, and so many of one address.
    pub fn new(most: usize, most_of_an_address: usize) -> Arc<Self> {
        Arc::new(Self { most, most_of_an_address, taken: Mutex::default() })
    }

    /// A place for what this peer causes, if there is one.
    pub fn take(self: &Arc<Self>, peer: IpAddr) -> Option<Place> {
        let address = counted_address(peer);
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let of_address = taken.of_addresses.get(&address).copied().unwrap_or_default();
        if taken.all >= self.most || of_address >= self.most_of_an_address {
            return None;
        }
        taken.all += 1;
        taken.of_addresses.insert(address, of_address + 1);
        Some(Place { places: self.clone(), address })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.all -= 1;
        if let Some(count) = taken.of_addresses.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                taken.of_addresses.remove(&self.address);
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
        assert!(places.taken.lock().unwrap().of_addresses.is_empty(), "those who left take no memory");
    }
}
