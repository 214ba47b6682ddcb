//! Limits for the number of requests.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Mutex, PoisonError},
};

use skep_auth::counted_address;

use crate::{clock::Clock, limits, limits::Rate};

/// Counts requests by a key: each has a bucket that fills with time.
pub(crate) struct Buckets {
    rate: Rate,
    levels: Mutex<Levels>,
}

#[derive(Default)]
struct Levels {
    /// What is left for a key, and at what time that was.
    entries: HashMap<String, (f64, f64)>,
    /// When the full buckets were removed.
    swept: f64,
}

impl Buckets {
    pub(crate) fn new(rate: Rate) -> Self {
        Self { rate, levels: Mutex::default() }
    }

    fn level(&self, (level, at): (f64, f64), now: f64) -> f64 {
        (level + (now - at).max(0.0) * self.rate.per_second).min(self.rate.burst)
    }

    /// Counts a request. `false`: there are too many.
    pub(crate) fn admits(&self, key: &str, clock: &Clock) -> bool {
        let now = clock.precise().as_secs_f64();
        let mut levels = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        if levels.entries.len() >= limits::COUNTED && !levels.entries.contains_key(key) {
            // Not with each request: a crowd of strangers would make every one of them expensive.
            if now - levels.swept >= limits::COUNTED_PAUSE {
                levels.swept = now;
                levels.entries.retain(|_, entry| self.level(*entry, now) < self.rate.burst);
            }
            // Nor does a crowd grow the map: newcomers wait until others have been quiet.
            if levels.entries.len() >= limits::COUNTED {
                return false;
            }
        }
        let entry = levels.entries.entry(key.to_owned()).or_insert((self.rate.burst, now));
        let level = self.level(*entry, now);
        let is_admitted = level >= 1.0;
        *entry = (if is_admitted { level - 1.0 } else { level }, now);
        is_admitted
    }
}

/// The limits of all endpoints.
pub(crate) struct Rates {
    register: Buckets,
    login_of_peer: Buckets,
    login_of_client: Buckets,
    token_of_peer: Buckets,
    token_of_client: Buckets,
    metadata_of_peer: Buckets,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Register,
    Login,
    Token,
    Metadata,
}

impl Default for Rates {
    fn default() -> Self {
        Self {
            register: Buckets::new(limits::REGISTER),
            login_of_peer: Buckets::new(limits::LOGIN_OF_PEER),
            login_of_client: Buckets::new(limits::LOGIN_OF_CLIENT),
            token_of_peer: Buckets::new(limits::TOKEN_OF_PEER),
            token_of_client: Buckets::new(limits::TOKEN_OF_CLIENT),
            metadata_of_peer: Buckets::new(limits::METADATA_OF_PEER),
        }
    }
}

impl Rates {
    /// Counts a request of an address.
    pub(crate) fn admits_peer(&self, purpose: Purpose, peer: IpAddr, clock: &Clock) -> bool {
        let buckets = match purpose {
            Purpose::Register => &self.register,
            Purpose::Login => &self.login_of_peer,
            Purpose::Token => &self.token_of_peer,
            Purpose::Metadata => &self.metadata_of_peer,
        };
        buckets.admits(&counted(peer), clock)
    }

    /// Counts a request of a client that exists, at an address. Those at other addresses do not count: whoever knows the id of a
    /// client could use up the requests of all its users.
    pub(crate) fn admits_client(&self, purpose: Purpose, client: &str, peer: IpAddr, clock: &Clock) -> bool {
        let buckets = match purpose {
            Purpose::Login => &self.login_of_client,
            Purpose::Token => &self.token_of_client,
            Purpose::Register | Purpose::Metadata => return true,
        };
        buckets.admits(&format!("{} {client}", counted(peer)), clock)
    }
}

fn counted(peer: IpAddr) -> String {
    counted_address(peer).to_string()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn one_address_does_not_use_up_the_requests_of_another() {
        let (rates, clock) = (Rates::default(), Clock::default());
        let admits = |peer: &str| rates.admits_peer(Purpose::Register, peer.parse().unwrap(), &clock);
        let admitted = (0..30).filter(|_| admits("10.0.0.1")).count();
        assert!((5..=6).contains(&admitted), "{admitted}");
        assert!(admits("10.0.0.2"));
        clock.advance(Duration::from_secs(2));
        assert!(admits("10.0.0.1"));
        let admitted = (0..30).filter(|number| admits(&format!("2001:db8::{number}"))).count();
        assert!((5..=6).contains(&admitted), "{admitted}");
    }

    #[test]
    fn a_crowd_is_looked_through_now_and_then_and_not_with_each_request() {
        let (buckets, clock) = (Buckets::new(Rate { per_second: 0.5, burst: 1.0 }), Clock::default());
        for number in 0..limits::COUNTED {
            assert!(buckets.admits(&number.to_string(), &clock));
        }
        let swept = || buckets.levels.lock().unwrap().swept;
        assert!(!buckets.admits("new", &clock));
        let (mut last, mut looks, begin) = (swept(), 1.0, clock.precise());
        for number in 0..100 {
            assert!(!buckets.admits(&format!("new-{number}"), &clock));
            looks += f64::from(u8::from(std::mem::replace(&mut last, swept()) != last));
        }
        let time = (clock.precise() - begin).as_secs_f64();
        assert!(looks <= 2.0 + time / limits::COUNTED_PAUSE, "{looks} times in {time} s");
        clock.advance(Duration::from_secs(3));
        assert!(buckets.admits("new", &clock), "those that were quiet are still counted");
    }
}
