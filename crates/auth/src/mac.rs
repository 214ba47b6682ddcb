//! Hashes and keyed hashes with SHA-256.

use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// The HMAC of the concatenated parts. A key of any length is accepted, so there always is one.
pub(crate) fn hmac(key: &[u8], parts: &[&[u8]]) -> Option<Bytes> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
    for part in parts {
        mac.update(part);
    }
    Some(Bytes::copy_from_slice(&mac.finalize().into_bytes()))
}

/// The same in hex.
pub fn hmac_hex(key: &[u8], parts: &[&[u8]]) -> Option<String> {
    hmac(key, parts).map(|hash| format!("{hash:x}"))
}

/// The hash in hex.
pub(crate) fn hash_hex(bytes: &[u8]) -> String {
    format!("{:x}", Bytes::copy_from_slice(&Sha256::digest(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_matches_the_test_vectors_of_the_rfc() {
        // RFC 4231, section 4.3.
        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(hmac_hex(b"Jefe", &[b"what do ya want ", b"for nothing?"]).as_deref(), Some(expected));
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash_hex(b"abc"), expected);
    }
}
