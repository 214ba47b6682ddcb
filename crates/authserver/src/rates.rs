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
    /// What is left for a key, and at what time that was.
    levels: Mutex<HashMap<String, (f64, f64)>>,
}

impl Buckets {
    fn new(rate: Rate) -> Self {
        Self { rate, levels: Mutex::default() }
    }

    /// Counts a request. `false`: there are too many.
    fn admits(&self, key: &str, clock: &Clock) -> bool {
        let now = clock.precise().as_secs_f64();
        let Rate { per_second, burst } = self.rate;
        let level = |(level, at): (f64, f64)| (level + (now - at).max(0.0) * per_second).min(burst);
        let mut levels = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        if levels.len() >= limits::COUNTED && !levels.contains_key(key) {
            levels.retain(|_, entry| level(*entry) < burst);
            // A crowd of strangers must not grow the map: newcomers wait until others have been quiet.
            if levels.len() >= limits::COUNTED {
                return false;
            }
        }
        let entry = levels.entry(key.to_owned()).or_insert((burst, now));
        let left = level(*entry) - 1.0;
        *entry = (left.max(0.0), now);
        if left < 0.0 {
            *entry = (left + 1.0, now);
        }
        left >= 0.0
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
        buckets.admits(&counted_address(peer).to_string(), clock)
    }

    /// Counts a request of a client that exists.
    pub(crate) fn admits_client(&self, purpose: Purpose, client: &str, clock: &Clock) -> bool {
        match purpose {
            Purpose::Login => self.login_of_client.admits(client, clock),
            Purpose::Token => self.token_of_client.admits(client, clock),
            Purpose::Register | Purpose::Metadata => true,
        }
    }
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
}
