//! Encryption of what is stored where others may read it.

use aws_lc_rs::aead::{AES_256_GCM, Aad, Nonce, RandomizedNonceKey};
use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};

use crate::mac::hmac;

/// What an encrypted value begins with. Others are read as they are.
const PREFIX: &str = "sealed:1:";

/// Encrypts values, if there is a key.
#[derive(Default)]
pub struct Seal(Option<RandomizedNonceKey>);

impl Seal {
    /// With this key, or without one.
    pub fn new(key: Option<&[u8; 32]>) -> Result<Self, String> {
        let key = key.map(|key| RandomizedNonceKey::new(&AES_256_GCM, key)).transpose();
        key.map(Self).map_err(|_| "the encryption key cannot be used".to_owned())
    }

    /// With a key of its own for one purpose, which is derived from a secret that may have others.
    pub fn derived(secret: &[u8], purpose: &str) -> Result<Self, String> {
        let key = hmac(secret, &[purpose.as_bytes()]);
        let key = key.and_then(|key| <[u8; 32]>::try_from(&*key).ok());
        Self::new(Some(&key.ok_or("no encryption key can be derived from the secret")?))
    }

    /// The value, encrypted for one place: moved to another row, it cannot be decrypted.
    pub fn seal(&self, place: &str, value: &str) -> Option<String> {
        let Some(key) = self.0.as_ref().filter(|_| !value.is_empty()) else { return Some(value.to_owned()) };
        let mut bytes = value.as_bytes().to_vec();
        let nonce = key.seal_in_place_append_tag(Aad::from(place.as_bytes()), &mut bytes).ok()?;
        let bytes = [&nonce.as_ref()[..], &bytes].concat();
        Some(format!("{PREFIX}{}", STANDARD_NO_PAD.encode(bytes)))
    }

    /// The value of a place. One that was stored before there was a key is not encrypted.
    pub fn open(&self, place: &str, value: &str) -> Option<String> {
        let Some(sealed) = value.strip_prefix(PREFIX) else { return Some(value.to_owned()) };
        let mut bytes = STANDARD_NO_PAD.decode(sealed).ok()?;
        let (nonce, sealed) = bytes.split_at_mut_checked(12)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let opened = self.0.as_ref()?.open_in_place(nonce, Aad::from(place.as_bytes()), sealed).ok()?;
        String::from_utf8(opened.to_vec()).ok()
    }

    /// The same, where all that is stored is encrypted if there is a key: who does not have it cannot add a value, either.
    pub fn open_only_sealed(&self, place: &str, value: &str) -> Option<String> {
        if self.0.is_some() && !value.starts_with(PREFIX) {
            return None;
        }
        self.open(place, value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_opened_with_its_key_at_its_place_only() {
        let (seal, other) = (Seal::new(Some(&[1; 32])).unwrap(), Seal::new(Some(&[2; 32])).unwrap());
        let plain = Seal::new(None).unwrap();
        let sealed = seal.seal("a", "token").unwrap();
        assert!(!sealed.contains("token"));
        assert_eq!(seal.open("a", &sealed).as_deref(), Some("token"));
        assert_eq!(seal.open("a", "from before").as_deref(), Some("from before"));
        for opened in [seal.open("b", &sealed), other.open("a", &sealed), plain.open("a", &sealed)] {
            assert_eq!(opened, None);
        }
        assert_eq!(plain.seal("a", "token").as_deref(), Some("token"));
    }

    #[test]
    fn where_all_is_encrypted_a_value_of_another_writer_is_none() {
        let (seal, plain) = (Seal::new(Some(&[1; 32])).unwrap(), Seal::default());
        assert_eq!(seal.open_only_sealed("a", "forged"), None);
        let sealed = seal.seal("a", "value").unwrap();
        assert_eq!(seal.open_only_sealed("a", &sealed).as_deref(), Some("value"));
        assert_eq!(plain.open_only_sealed("a", "value").as_deref(), Some("value"));
    }

    #[test]
    fn keys_of_one_secret_for_different_purposes_differ() {
        let [one, same] = [1, 2].map(|_| Seal::derived(b"secret", "one").unwrap());
        let sealed = one.seal("a", "value").unwrap();
        assert_eq!(same.open("a", &sealed).as_deref(), Some("value"));
        for other in [Seal::derived(b"secret", "two"), Seal::derived(b"other", "one")] {
            assert_eq!(other.unwrap().open("a", &sealed), None);
        }
    }
}
