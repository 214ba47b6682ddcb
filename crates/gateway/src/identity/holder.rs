//! Who uses what is limited for each caller.

use std::net::IpAddr;

use skep_auth::counted_address;

use super::{Identity, Owner};

/// Who has a session, or memory: a caller or, where callers are anonymous, the address of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Holder {
    /// A caller that is known.
    Caller(Owner),
    /// The address of an anonymous one.
    Address(IpAddr),
}

impl Holder {
    /// The holder of what a request needs that this caller sends from this address.
    pub fn of(caller: Option<&Identity>, peer: IpAddr) -> Self {
        Self::new(Some(Owner::of(caller)), peer)
    }

    /// The holder of what a request of this caller needs.
    pub fn new(owner: Option<Owner>, peer: IpAddr) -> Self {
        match owner.filter(|owner| *owner != Owner::ANONYMOUS) {
            Some(owner) => Self::Caller(owner),
            None => Self::Address(counted_address(peer)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_known_by_itself_and_an_anonymous_one_by_its_address() {
        let [one, two] = ["10.0.0.1", "10.0.0.2"].map(|address| address.parse().unwrap());
        let (ada, bob) = (Owner::from_text(&"1".repeat(32)), Owner::from_text(&"2".repeat(32)));
        assert_eq!(Holder::new(ada, one), Holder::new(ada, two));
        assert_ne!(Holder::new(ada, one), Holder::new(bob, one));
        assert_eq!(Holder::new(Some(Owner::ANONYMOUS), one), Holder::new(None, one));
        assert_ne!(Holder::new(None, one), Holder::new(None, two));
    }
}
