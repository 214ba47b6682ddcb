//! The keys of an issuer (RFC 7517).

use std::collections::HashMap;

use jsonwebtoken::{
    Algorithm, DecodingKey,
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse},
};
use serde_json::{Map, Value};

use crate::limits;

const RSA: &[Algorithm] = &[
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
];

/// A key that verifies signatures.
pub(crate) struct Key {
    pub(crate) decoding: DecodingKey,
    algorithms: Vec<Algorithm>,
}

impl Key {
    /// Whether the key is for this algorithm, by its type and by its `alg`. A token cannot choose.
    pub(crate) fn fits(&self, algorithm: Algorithm) -> bool {
        self.algorithms.contains(&algorithm)
    }

    /// The key, if it is for signatures and has an id.
    fn of(key: &Value) -> Option<(String, Self)> {
        let jwk: Jwk = serde_json::from_value(key.clone()).ok()?;
        let common = &jwk.common;
        let signs = common.public_key_use.as_ref().is_none_or(|for_| *for_ == PublicKeyUse::Signature);
        let verifies = common
            .key_operations
            .as_ref()
            .is_none_or(|operations| operations.contains(&KeyOperations::Verify));
        let mut algorithms = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => RSA.to_vec(),
            AlgorithmParameters::EllipticCurve(curve) => match curve.curve {
                EllipticCurve::P256 => vec![Algorithm::ES256],
                EllipticCurve::P384 => vec![Algorithm::ES384],
                _ => return None,
            },
            _ => return None,
        };
        if let Some(named) = common.key_algorithm {
            algorithms.retain(|algorithm| named.to_string() == format!("{algorithm:?}"));
        }
        let id = common.key_id.clone().filter(|id| !id.is_empty() && id.len() <= limits::KEY_ID)?;
        if !signs || !verifies || algorithms.is_empty() {
            return None;
        }
        Some((id, Self { decoding: DecodingKey::from_jwk(&jwk).ok()?, algorithms }))
    }
}

/// The keys of an issuer, by their ids.
#[derive(Default)]
pub(crate) struct KeySet(HashMap<String, Vec<Key>>);

impl KeySet {
    /// The usable keys of a document, if it has any. Others are skipped.
    pub(crate) fn of(document: &Map<String, Value>) -> Option<Self> {
        let mut keys: HashMap<String, Vec<Key>> = HashMap::new();
        for (id, key) in document.get("keys")?.as_array()?.iter().take(limits::KEYS).filter_map(Key::of) {
            let with_that_id = keys.entry(id).or_default();
            if with_that_id.len() < limits::KEYS_WITH_ONE_ID {
                with_that_id.push(key);
            }
        }
        (!keys.is_empty()).then_some(Self(keys))
    }

    /// The keys with that id. There should be one; if an issuer has several, any of them may have signed.
    pub(crate) fn named(&self, id: &str) -> &[Key] {
        self.0.get(id).map(Vec::as_slice).unwrap_or_default()
    }

    pub(super) fn has(&self, id: &str) -> bool {
        self.0.contains_key(id)
    }
}
