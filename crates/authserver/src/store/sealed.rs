//! Encryption of the tokens of upstreams, which are worth as much as their users' logins.

use aws_lc_rs::aead::{AES_256_GCM, Aad, Nonce, RandomizedNonceKey};
use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};

/// What an encrypted value begins with. Others are read as they are.
const PREFIX: &str = "sealed:1:";

/// Encrypts values, if there is a key.
pub(super) struct Seal(Option<RandomizedNonceKey>);

impl Seal {
    pub(super) fn new(key: Option<&[u8; 32]>) -> Result<Self, String> {
        let key = key.map(|key| RandomizedNonceKey::new(&AES_256_GCM, key)).transpose();
        key.map(Self).map_err(|_| "the encryption key cannot be used".to_owned())
    }

    /// The value, encrypted for one place: moved to another row, it cannot be decrypted.
    pub(super) fn seal(&self, place: &str, value: &str) -> Option<String> {
        let Some(key) = self.0.as_ref().filter(|_| !value.is_empty()) else { return Some(value.to_owned()) };
        let mut bytes = value.as_bytes().to_vec();
        let nonce = key.seal_in_place_append_tag(Aad::from(place.as_bytes()), &mut bytes).ok()?;
        let bytes = [&nonce.as_ref()[..], &bytes].concat();
        Some(format!("{PREFIX}{}", STANDARD_NO_PAD.encode(bytes)))
    }

    /// The value of a place. One that was stored before there was a key is not encrypted.
    pub(super) fn open(&self, place: &str, value: &str) -> Option<String> {
        let Some(sealed) = value.strip_prefix(PREFIX) else { return Some(value.to_owned()) };
        let mut bytes = STANDARD_NO_PAD.decode(sealed).ok()?;
        let (nonce, sealed) = bytes.split_at_mut_checked(12)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let opened = self.0.as_ref()?.open_in_place(nonce, Aad::from(place.as_bytes()), sealed).ok()?;
        String::from_utf8(opened.to_vec()).ok()
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
}
