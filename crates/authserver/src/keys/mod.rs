//! The keys that sign and verify access tokens, and the secrets of codes and refresh tokens.

mod opaque;
mod signing;

use serde_json::{Map, Value, json};

pub(crate) use opaque::{CODE, OpaqueTokens, REFRESH, family};
pub(crate) use signing::SigningKey;

use crate::random::base64;

/// The claims of a token.
pub(crate) type Claims = Map<String, Value>;

/// The keys. The first one signs, all of them verify.
pub(crate) struct Keys(Vec<SigningKey>);

impl Keys {
    /// The key that signs, and former ones.
    pub(crate) fn new(current: SigningKey, former: Vec<SigningKey>) -> Self {
        let mut keys = vec![current];
        for key in former {
            if keys.iter().all(|known| known.id != key.id) {
                keys.push(key);
            }
        }
        Self(keys)
    }

    /// The algorithm of new tokens.
    pub(crate) fn algorithm(&self) -> &'static str {
        self.0.first().map(|key| key.algorithm).unwrap_or_default()
    }

    /// The key set (RFC 7517, section 5). It has former keys as well: other verifiers still get tokens of these.
    pub(crate) fn published(&self) -> Value {
        json!({"keys": self.0.iter().map(|key| &key.jwk).collect::<Vec<_>>()})
    }

    /// A signed token (RFC 7519).
    pub(crate) fn sign(&self, claims: &Value) -> Option<String> {
        let key = self.0.first()?;
        let header = json!({"alg": key.algorithm, "kid": key.id, "typ": "JWT"});
        let signed =
            format!("{}.{}", base64(header.to_string().as_bytes()), base64(claims.to_string().as_bytes()));
        let signature = key.sign(signed.as_bytes())?;
        Some(format!("{signed}.{}", base64(&signature)))
    }

    /// The claims of a token that one of the keys signed. Neither times nor audience are checked.
    pub(crate) fn verified(&self, token: &str) -> Option<Claims> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let header: Claims = object(header)?;
        let text = |name: &str| header.get(name).and_then(Value::as_str);
        // A token chooses among the keys, never an algorithm (RFC 8725, section 3.1).
        let key =
            self.0.iter().find(|key| Some(&*key.id) == text("kid") && Some(key.algorithm) == text("alg"))?;
        if header.contains_key("crit") || !key.verifies(signed.as_bytes(), &bytes(signature)?) {
            return None;
        }
        object(claims)
    }
}

fn bytes(part: &str) -> Option<Vec<u8>> {
    use base64::Engine;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(part).ok()
}

fn object(part: &str) -> Option<Claims> {
    serde_json::from_slice(&bytes(part)?).ok()
}

/// The claims of a JWT that came from its issuer directly, without its signature.
pub(crate) fn unverified(token: &str) -> Option<Claims> {
    object(token.split('.').nth(1)?)
}

/// The session that a token ends with: its own, or that of the user for whom it was exchanged.
pub(crate) fn session_of(claims: &Claims) -> Option<&str> {
    ["tsid", "sid"].into_iter().find_map(|name| claims.get(name)?.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_of_key_signs_and_verifies() {
        use rcgen::{
            KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ECDSA_P521_SHA512, PKCS_ED25519,
            PKCS_RSA_SHA256,
        };
        for (type_, algorithm) in [
            (&PKCS_ECDSA_P256_SHA256, "ES256"),
            (&PKCS_ECDSA_P384_SHA384, "ES384"),
            (&PKCS_ECDSA_P521_SHA512, "ES512"),
            (&PKCS_ED25519, "EdDSA"),
            (&PKCS_RSA_SHA256, "RS256"),
        ] {
            let pem = KeyPair::generate_for(type_).unwrap().serialize_pem();
            let keys = Keys::new(SigningKey::parse(pem.as_bytes()).unwrap(), Vec::new());
            assert_eq!(keys.algorithm(), algorithm);
            let token = keys.sign(&json!({"sub": "ann"})).unwrap();
            assert_eq!(keys.verified(&token).unwrap()["sub"], "ann", "{algorithm}");
        }
        assert!(SigningKey::parse(b"text").is_err());
    }

    #[test]
    fn a_token_is_verified_by_the_key_that_it_names_and_by_no_other() {
        let (old, new) = (SigningKey::generate().unwrap(), SigningKey::generate().unwrap());
        let before = Keys::new(old, Vec::new());
        let token = before.sign(&json!({"sub": "ann"})).unwrap();
        assert_eq!(before.verified(&token).unwrap()["sub"], "ann");
        assert!(Keys::new(new, Vec::new()).verified(&token).is_none());
        let (signed, _) = token.rsplit_once('.').unwrap();
        assert!(before.verified(&format!("{signed}.")).is_none());
        let (_, claims) = signed.split_once('.').unwrap();
        for header in [json!({"alg": "none"}), json!({"alg": "HS256", "kid": before.0[0].id})] {
            assert!(
                before.verified(&format!("{}.{claims}.", base64(header.to_string().as_bytes()))).is_none()
            );
        }
    }
}
