//! Callers, ready for decisions. What the policies need of a caller is computed once for each token, and not for each request.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Instant,
};

use skep_authz::{Authorizer, PrincipalKind, Subject};

use super::principal;
use crate::{identity::Identity, limits};

/// Callers by the addresses of their identities. Requests with one token share an identity, as long as it is valid.
#[derive(Default)]
pub(super) struct Callers(Mutex<HashMap<usize, Caller>>);

struct Caller {
    /// Its address is not used again as long as this exists, so no other identity can be taken for it.
    identity: Weak<Identity>,
    /// When the token expires.
    until: Option<Instant>,
    subject: Arc<Subject>,
}

impl Callers {
    /// The caller with this identity.
    pub(super) fn subject(
        &self,
        authorizer: &Authorizer,
        kind: PrincipalKind,
        identity: &Arc<Identity>,
    ) -> Arc<Subject> {
        let address = Arc::as_ptr(identity).addr();
        if let Some(caller) = self.callers().get(&address) {
            return caller.subject.clone();
        }
        // Computed without the lock, which all requests need.
        let subject = Arc::new(authorizer.subject(&principal(kind, identity)));
        let now = Instant::now();
        let until = identity.validity().and_then(|validity| now.checked_add(validity));
        let caller = Caller { identity: Arc::downgrade(identity), until, subject: subject.clone() };
        self.put(address, caller, now);
        subject
    }

    /// Keeps a caller, and drops those whose token is no longer in use. If there are still too many, they start again.
    fn put(&self, address: usize, caller: Caller, now: Instant) {
        let weight = caller.subject.weight();
        let mut callers = self.callers();
        callers.retain(|_, caller| caller.is_in_use(now));
        let others: usize = callers.values().map(|caller| caller.subject.weight()).sum();
        if callers.len() >= limits::CALLERS || others + weight > limits::CALLERS_BYTES {
            callers.clear();
        }
        if weight <= limits::CALLERS_BYTES {
            callers.insert(address, caller);
        }
    }

    fn callers(&self) -> MutexGuard<'_, HashMap<usize, Caller>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Caller {
    fn is_in_use(&self, now: Instant) -> bool {
        self.identity.strong_count() > 0 && self.until.is_none_or(|until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use skep_config::run_config::Cedar;

    use super::*;
    use PrincipalKind::Client;

    fn authorizer() -> Authorizer {
        let policies = vec!["permit(principal, action, resource);".to_owned()];
        Authorizer::new(&Cedar { policies, ..Cedar::default() }, "files").unwrap()
    }

    fn identity(claims: Value) -> Arc<Identity> {
        Arc::new(Identity::with_claims(claims.as_object().cloned().unwrap()))
    }

    fn kept(callers: &Callers) -> usize {
        callers.callers().len()
    }

    #[test]
    fn a_caller_is_computed_once_for_a_token() {
        let (callers, authorizer) = (Callers::default(), authorizer());
        let [alice, bob] = ["alice", "bob"].map(|name| identity(json!({"sub": name})));
        let first = callers.subject(&authorizer, Client, &alice);
        assert!(Arc::ptr_eq(&first, &callers.subject(&authorizer, Client, &alice.clone())));
        assert!(!Arc::ptr_eq(&first, &callers.subject(&authorizer, Client, &bob)));
        let same_claims = identity(json!({"sub": "alice"}));
        assert!(!Arc::ptr_eq(&first, &callers.subject(&authorizer, Client, &same_claims)), "another token");
    }

    #[test]
    fn a_caller_is_dropped_with_its_token() {
        let (callers, authorizer) = (Callers::default(), authorizer());
        let alice = identity(json!({"sub": "alice"}));
        let subject = Arc::downgrade(&callers.subject(&authorizer, Client, &alice));
        let expired = identity(json!({"sub": "carol", "exp": 1}));
        callers.subject(&authorizer, Client, &expired);
        drop(alice);
        let bob = identity(json!({"sub": "bob"}));
        callers.subject(&authorizer, Client, &bob);
        assert!(subject.upgrade().is_none());
        assert_eq!(kept(&callers), 1, "neither the dropped nor the expired one");
    }

    #[test]
    fn the_number_of_callers_and_their_size_are_limited() {
        let (callers, authorizer) = (Callers::default(), authorizer());
        let many: Vec<_> =
            (0..limits::CALLERS + 8).map(|id| identity(json!({"sub": id.to_string()}))).collect();
        for identity in &many {
            callers.subject(&authorizer, Client, identity);
            assert!(kept(&callers) <= limits::CALLERS);
        }
        drop(many);
        let large: Vec<_> = (0..20)
            .map(|id| {
                identity(json!({"sub": id.to_string(), "text": "x".repeat(limits::CALLERS_BYTES / 20)}))
            })
            .collect();
        for identity in &large {
            callers.subject(&authorizer, Client, identity);
            assert!(kept(&callers) <= 10);
        }
    }
}
