//! Proof keys (RFC 7636).

use crate::random::{hash, is_same};

/// Whether a challenge is one of S256, the only method: 256 bits in base64url (RFC 7636, section 4.2).
pub(crate) fn is_challenge(challenge: Option<&str>, method: Option<&str>) -> bool {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    method == Some("S256") && challenge.is_some_and(|text| text.len() == 43 && text.bytes().all(is_base64))
}

/// The challenge for a verifier (RFC 7636, section 4.2).
pub(crate) fn challenge_of(verifier: &str) -> String {
    hash(verifier)
}

/// Whether a verifier is one, and belongs to the challenge (RFC 7636, sections 4.1 and 4.6).
pub(crate) fn is_verified(challenge: &str, verifier: Option<&str>) -> bool {
    let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    verifier.is_some_and(|text| {
        (43..=128).contains(&text.len())
            && text.bytes().all(is_unreserved)
            && is_same(challenge, &challenge_of(text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verifier_belongs_to_its_challenge() {
        // RFC 7636, appendix B.
        let (verifier, challenge) =
            ("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        assert!(is_challenge(Some(challenge), Some("S256")) && is_verified(challenge, Some(verifier)));
        for (challenge, method) in [
            (None, None),
            (Some(challenge), None),
            (Some(challenge), Some("plain")),
            (Some("abc"), Some("S256")),
        ] {
            assert!(!is_challenge(challenge, method));
        }
        for wrong in [None, Some(""), Some("short"), Some(challenge)] {
            assert!(!is_verified(challenge, wrong), "{wrong:?}");
        }
    }
}
