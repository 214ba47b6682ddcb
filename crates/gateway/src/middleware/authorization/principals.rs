//! Callers with the claims of an identity provider. What policies need of them is computed once for each token, so each request with
//! the same claims has the same identity.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use serde_json::{Map, Value};

use crate::{identity::Identity, limits, middleware::provider::Provider};

/// Callers by the addresses of their own identities.
#[derive(Default)]
pub(super) struct Principals(Mutex<HashMap<usize, Principal>>);

struct Principal {
    /// The caller's own identity. Its address is not used again as long as this exists.
    caller: Weak<Identity>,
    identity: Arc<Identity>,
    bytes: usize,
}

impl Principals {
    /// The caller with the claims of the provider's token, or with its own if that has none that can be read.
    pub(super) async fn of(
        &self,
        provider: &Provider,
        caller: Option<&Arc<Identity>>,
    ) -> Option<Arc<Identity>> {
        let caller = caller?;
        match provider.claims(caller).await? {
            Some(claims) => Some(self.with_claims(caller, claims)),
            None => Some(caller.clone()),
        }
    }

    fn with_claims(&self, caller: &Arc<Identity>, claims: Map<String, Value>) -> Arc<Identity> {
        let address = Arc::as_ptr(caller).addr();
        if let Some(known) = self.lock().get(&address)
            && known.identity.claims == claims
        {
            return known.identity.clone();
        }
        let bytes = serde_json::to_string(&claims).map_or(0, |claims| claims.len());
        let identity = Arc::new(Identity { claims, ..(**caller).clone() });
        self.put(address, Principal { caller: Arc::downgrade(caller), identity: identity.clone(), bytes });
        identity
    }

    /// Keeps one, and drops those whose token is no longer in use. If there are still too many, they start again.
    fn put(&self, address: usize, principal: Principal) {
        let mut all = self.lock();
        all.retain(|_, known| known.caller.strong_count() > 0);
        let others: usize = all.values().map(|known| known.bytes).sum();
        if all.len() >= limits::CALLERS || others + principal.bytes > limits::CALLERS_BYTES {
            all.clear();
        }
        if principal.bytes <= limits::CALLERS_BYTES {
            all.insert(address, principal);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<usize, Principal>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claims(claims: Value) -> Map<String, Value> {
        claims.as_object().cloned().unwrap()
    }

    fn caller(name: &str) -> Arc<Identity> {
        Arc::new(Identity::with_claims(claims(json!({"sub": name}))))
    }

    #[test]
    fn a_caller_is_the_same_until_its_claims_or_its_token_change() {
        let principals = Principals::default();
        let (alice, bob) = (caller("alice"), caller("bob"));
        let admin = || claims(json!({"role": "admin"}));
        let first = principals.with_claims(&alice, admin());
        assert_eq!((&first.claims, &first.subject), (&admin(), &alice.subject));
        assert!(Arc::ptr_eq(&first, &principals.with_claims(&alice, admin())));
        assert!(!Arc::ptr_eq(&first, &principals.with_claims(&bob, admin())));
        let changed = principals.with_claims(&alice, claims(json!({"role": "user"})));
        assert_eq!(changed.claims, claims(json!({"role": "user"})));
        assert!(!Arc::ptr_eq(&first, &principals.with_claims(&alice, admin())), "changed again");
    }

    #[test]
    fn a_caller_is_dropped_with_its_token_and_all_of_them_have_a_limit() {
        let principals = Principals::default();
        let alice = caller("alice");
        let identity = Arc::downgrade(&principals.with_claims(&alice, Map::new()));
        drop(alice);
        let many: Vec<_> = (0..=limits::CALLERS).map(|number| caller(&number.to_string())).collect();
        for caller in &many {
            principals.with_claims(caller, Map::new());
            assert!(principals.lock().len() <= limits::CALLERS);
        }
        assert!(identity.upgrade().is_none());
        let large = claims(json!({"text": "x".repeat(limits::CALLERS_BYTES / 3)}));
        for caller in &many[..8] {
            principals.with_claims(caller, large.clone());
            let bytes: usize = principals.lock().values().map(|known| known.bytes).sum();
            assert!(bytes <= limits::CALLERS_BYTES);
        }
    }
}
