//! One key of a file.

use aws_lc_rs::{
    rand::SystemRandom,
    rsa::KeyPair as RsaKeyPair,
    signature::{
        self, ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED,
        ECDSA_P384_SHA384_FIXED_SIGNING, ECDSA_P521_SHA512_FIXED, ECDSA_P521_SHA512_FIXED_SIGNING, ED25519,
        EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair, RSA_PKCS1_2048_8192_SHA256,
        RSA_PKCS1_SHA256, UnparsedPublicKey, VerificationAlgorithm,
    },
};
use rustls::pki_types::{PrivateKeyDer, pem::PemObject};
use serde_json::{Value, json};

use crate::random::{base64, hash};

/// Why a file has no usable key.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyError {
    #[error("it has no private key in PEM format")]
    Format,
    #[error("the key must be RSA with at least 2048 bits, ECDSA with P-256, P-384 or P-521, or Ed25519")]
    Type,
}

enum Pair {
    Ecdsa(EcdsaKeyPair),
    Rsa(Box<RsaKeyPair>),
    Ed25519(Ed25519KeyPair),
}

/// A key with its public part.
pub(crate) struct SigningKey {
    pair: Pair,
    /// The thumbprint of the public part (RFC 7638), so that every replica has the same.
    pub(crate) id: String,
    pub(crate) algorithm: &'static str,
    pub(super) jwk: Value,
}

struct Curve {
    signs: &'static EcdsaSigningAlgorithm,
    name: &'static str,
    algorithm: &'static str,
}

const CURVES: [Curve; 3] = [
    Curve { signs: &ECDSA_P256_SHA256_FIXED_SIGNING, name: "P-256", algorithm: "ES256" },
    Curve { signs: &ECDSA_P384_SHA384_FIXED_SIGNING, name: "P-384", algorithm: "ES384" },
    Curve { signs: &ECDSA_P521_SHA512_FIXED_SIGNING, name: "P-521", algorithm: "ES512" },
];

impl SigningKey {
    /// The key in a PEM file: PKCS #1, PKCS #8 or SEC 1.
    pub(crate) fn parse(pem: &[u8]) -> Result<Self, KeyError> {
        let key = PrivateKeyDer::from_pem_slice(pem).map_err(|_| KeyError::Format)?;
        let der = key.secret_der();
        for curve in &CURVES {
            if let Ok(pair) = EcdsaKeyPair::from_private_key_der(curve.signs, der) {
                return Self::ecdsa(pair, curve).ok_or(KeyError::Type);
            }
        }
        if let Ok(pair) = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der) {
            let x = base64(pair.public_key().as_ref());
            let thumbprint = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#);
            let jwk = json!({"kty": "OKP", "crv": "Ed25519", "x": x});
            return Ok(Self::new(Pair::Ed25519(pair), "EdDSA", &thumbprint, jwk));
        }
        let rsa = RsaKeyPair::from_pkcs8(der).or_else(|_| RsaKeyPair::from_der(der));
        let rsa = rsa.ok().filter(|rsa| rsa.public_modulus_len() >= 256).ok_or(KeyError::Type)?;
        Ok(Self::rsa(rsa))
    }

    /// A new key, for the life of the process.
    pub(crate) fn generate() -> Option<Self> {
        let [curve, ..] = &CURVES;
        Self::ecdsa(EcdsaKeyPair::generate(curve.signs).ok()?, curve)
    }

    fn ecdsa(pair: EcdsaKeyPair, curve: &Curve) -> Option<Self> {
        let point = pair.public_key().as_ref().strip_prefix(&[4])?;
        let (x, y) = point.split_at(point.len() / 2);
        let (x, y, name) = (base64(x), base64(y), curve.name);
        let thumbprint = format!(r#"{{"crv":"{name}","kty":"EC","x":"{x}","y":"{y}"}}"#);
        let jwk = json!({"kty": "EC", "crv": name, "x": x, "y": y});
        Some(Self::new(Pair::Ecdsa(pair), curve.algorithm, &thumbprint, jwk))
    }

    fn rsa(pair: RsaKeyPair) -> Self {
        let public = pair.public_key();
        let n = base64(public.modulus().big_endian_without_leading_zero());
        let e = base64(public.exponent().big_endian_without_leading_zero());
        let thumbprint = format!(r#"{{"e":"{e}","kty":"RSA","n":"{n}"}}"#);
        let jwk = json!({"kty": "RSA", "n": n, "e": e});
        Self::new(Pair::Rsa(Box::new(pair)), "RS256", &thumbprint, jwk)
    }

    fn new(pair: Pair, algorithm: &'static str, thumbprint: &str, mut jwk: Value) -> Self {
        let id = hash(thumbprint);
        for (name, value) in [("use", "sig"), ("alg", algorithm), ("kid", &id)] {
            jwk[name] = value.into();
        }
        Self { pair, id, algorithm, jwk }
    }

    pub(super) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Ecdsa(pair) => Some(pair.sign(&random, message).ok()?.as_ref().to_vec()),
            Pair::Ed25519(pair) => Some(pair.sign(message).as_ref().to_vec()),
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).ok()?;
                Some(signature)
            }
        }
    }

    pub(super) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let (algorithm, public): (&dyn VerificationAlgorithm, &[u8]) = match &self.pair {
            Pair::Ecdsa(pair) => (
                match self.algorithm {
                    "ES256" => &ECDSA_P256_SHA256_FIXED,
                    "ES384" => &ECDSA_P384_SHA384_FIXED,
                    _ => &ECDSA_P521_SHA512_FIXED,
                },
                pair.public_key().as_ref(),
            ),
            Pair::Ed25519(pair) => (&ED25519, pair.public_key().as_ref()),
            Pair::Rsa(pair) => {
                (&RSA_PKCS1_2048_8192_SHA256, signature::KeyPair::public_key(&**pair).as_ref())
            }
        };
        UnparsedPublicKey::new(algorithm, public).verify(message, signature).is_ok()
    }
}
