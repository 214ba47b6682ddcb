//! The keys that an identity provider signs with.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey, crypto, jwk::Jwk};
use rcgen::{KeyPair, PKCS_RSA_SHA256, RsaKeySize};
use serde_json::{Value, json};

/// A key with its id.
pub struct Signing {
    /// Its id.
    pub id: String,
    algorithm: Algorithm,
    key: EncodingKey,
}

/// The PKCS #8 prefix of an RSA key of 2048 bits. The rest is PKCS #1.
const PKCS8_HEAD: usize = 26;

impl Signing {
    /// A new key on the curve P-256.
    pub fn ecdsa(id: impl Into<String>) -> Self {
        let pair = KeyPair::generate().expect("a key");
        let key = EncodingKey::from_ec_der(&pair.serialize_der());
        Self { id: id.into(), algorithm: Algorithm::ES256, key }
    }

    /// A new key of RSA.
    pub fn rsa(id: impl Into<String>) -> Self {
        let pair = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).expect("a key");
        let key = EncodingKey::from_rsa_der(&pair.serialize_der()[PKCS8_HEAD..]);
        Self { id: id.into(), algorithm: Algorithm::RS256, key }
    }

    /// Its public half, as issuers publish it.
    pub fn public(&self) -> Value {
        let jwk = Jwk::from_encoding_key(&self.key, self.algorithm).expect("a public key");
        let mut jwk = serde_json::to_value(jwk).expect("a key in JSON");
        jwk["kid"] = json!(self.id);
        jwk["use"] = json!("sig");
        jwk
    }

    /// The head of the tokens that it signs.
    pub fn header(&self) -> Value {
        json!({"alg": format!("{:?}", self.algorithm), "typ": "JWT", "kid": self.id})
    }

    /// A token with these parts, signed with this key.
    pub fn token(&self, header: &Value, claims: &Value) -> String {
        let message = format!("{}.{}", part(header), part(claims));
        let signature = crypto::sign(message.as_bytes(), &self.key, self.algorithm).expect("a signature");
        format!("{message}.{signature}")
    }
}

/// A part of a token.
pub(crate) fn part(json: &Value) -> String {
    URL_SAFE_NO_PAD.encode(json.to_string())
}
