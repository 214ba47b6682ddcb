//! JSON Web Tokens.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, crypto};
use serde_json::{Map, Value};

use crate::{AuthenticationError, claims::Claims, keys::KeySet, limits};

/// A token in its three parts. None of its claims is trusted until its signature is verified.
pub(crate) struct Jwt<'a> {
    signed: &'a str,
    signature: &'a str,
    /// Its header.
    pub(crate) header: Map<String, Value>,
    /// Its claims.
    pub(crate) claims: Claims,
}

impl<'a> Jwt<'a> {
    /// The token, if it is a JWT. Others are opaque.
    pub(crate) fn read(token: &'a str) -> Option<Self> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        Some(Self { signed, signature, header: object(header)?, claims: object(claims)? })
    }

    /// The algorithm of the signature. Only asymmetric ones are accepted: others can be made with the public key.
    pub(crate) fn algorithm(&self) -> Result<Algorithm, AuthenticationError> {
        // No critical extension is supported (RFC 7515, section 4.1.11).
        if self.header.contains_key("crit") {
            return Err(AuthenticationError::Token("the token has an extension that is not supported"));
        }
        match self.header.get("alg").and_then(Value::as_str) {
            Some("RS256") => Ok(Algorithm::RS256),
            Some("RS384") => Ok(Algorithm::RS384),
            Some("RS512") => Ok(Algorithm::RS512),
            Some("PS256") => Ok(Algorithm::PS256),
            Some("PS384") => Ok(Algorithm::PS384),
            Some("PS512") => Ok(Algorithm::PS512),
            Some("ES256") => Ok(Algorithm::ES256),
            Some("ES384") => Ok(Algorithm::ES384),
            _ => Err(AuthenticationError::Token("the token must be signed with RSA or ECDSA")),
        }
    }

    /// The id of the key that it is signed with.
    pub(crate) fn key_id(&self) -> Result<&str, AuthenticationError> {
        match self.header.get("kid").and_then(Value::as_str) {
            Some(id) if !id.is_empty() && id.len() <= limits::KEY_ID => Ok(id),
            _ => Err(AuthenticationError::Token("the token does not name the key it is signed with (kid)")),
        }
    }

    /// Whether it is signed with the key that it names.
    pub(crate) fn verify(&self, keys: &KeySet) -> Result<(), AuthenticationError> {
        let algorithm = self.algorithm()?;
        let message = self.signed.as_bytes();
        let verified =
            keys.named(self.key_id()?).iter().filter(|key| key.fits(algorithm)).any(|key| {
                crypto::verify(self.signature, message, &key.decoding, algorithm).unwrap_or(false)
            });
        if verified { Ok(()) } else { Err(AuthenticationError::Token("the signature of the token is wrong")) }
    }
}

fn object(part: &str) -> Option<Map<String, Value>> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}
