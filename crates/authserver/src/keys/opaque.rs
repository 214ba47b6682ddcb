//! Codes and refresh tokens: random values with a keyed hash, in the form that ToolHive gives them. The hash is what is
//! stored, so that a copy of the store has no token that works.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256, Sha512_256};

use crate::random::{NoRandomness, base64, bytes, is_same};

/// The prefix of codes.
pub(crate) const CODE: &str = "ory_ac_";
/// The prefix of refresh tokens.
pub(crate) const REFRESH: &str = "ory_rt_";

/// The secrets of opaque tokens. The first one makes new tokens, all of them are accepted.
pub(crate) struct OpaqueTokens(Vec<[u8; 32]>);

/// The length of the part of a token that names what it belongs to. The rest is random, and so is no less than 128 bits.
const FAMILY: usize = 16;

/// A new token.
pub(crate) struct Opaque {
    /// What the client gets.
    pub(crate) token: String,
    /// What is stored.
    pub(crate) signature: String,
}

impl OpaqueTokens {
    /// The secrets. Of each, 32 bytes are used.
    pub(crate) fn new(secrets: Vec<[u8; 32]>) -> Self {
        Self(secrets)
    }

    /// The current secret.
    pub(crate) fn current(&self) -> &[u8] {
        self.0.first().map(|secret| &secret[..]).unwrap_or_default()
    }

    /// All secrets, the current one first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(|secret| &secret[..])
    }

    /// A new token.
    pub(crate) fn issue(&self, prefix: &str) -> Result<Opaque, NoRandomness> {
        self.signed(prefix, &bytes::<32>()?)
    }

    /// The refresh token of a session that follows on this code or token: always the same, so that a client which has not got the
    /// response to its request gets it when it sends the request again. It names the family of the session's tokens. So it is
    /// known whose a token was that was replaced, without a memory of each.
    pub(crate) fn issue_after(&self, token: &str, session: &str) -> Result<Opaque, NoRandomness> {
        let mut value = [0; 2 * FAMILY];
        let derived = mac(self.current(), format!("after {token}").as_bytes()).ok_or(NoRandomness)?;
        value[..FAMILY].copy_from_slice(&family_bytes(session));
        value[FAMILY..].copy_from_slice(&Sha256::digest(derived)[..FAMILY]);
        self.signed(REFRESH, &value)
    }

    fn signed(&self, prefix: &str, value: &[u8]) -> Result<Opaque, NoRandomness> {
        let signature = mac(self.current(), value).ok_or(NoRandomness)?;
        Ok(Opaque { token: format!("{prefix}{}.{signature}", base64(value)), signature })
    }

    /// The signature of a token, if one of the secrets made it.
    pub(crate) fn signature<'a>(&self, prefix: &str, token: &'a str) -> Option<&'a str> {
        self.verified(prefix, token).map(|(_, signature)| signature)
    }

    /// The family and the signature of a token of a session, if one of the secrets made it.
    pub(crate) fn member<'a>(&self, prefix: &str, token: &'a str) -> Option<(String, &'a str)> {
        let (value, signature) = self.verified(prefix, token)?;
        Some((base64(value.first_chunk::<FAMILY>()?), signature))
    }

    fn verified<'a>(&self, prefix: &str, token: &'a str) -> Option<(Vec<u8>, &'a str)> {
        use base64::Engine;
        let (value, signature) = token.strip_prefix(prefix)?.split_once('.')?;
        let value = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(value).ok()?;
        self.all()
            .any(|secret| mac(secret, &value).is_some_and(|mac| is_same(&mac, signature)))
            .then_some((value, signature))
    }
}

/// The name of the family of a session's tokens.
pub(crate) fn family(session: &str) -> String {
    base64(&family_bytes(session))
}

fn family_bytes(session: &str) -> [u8; FAMILY] {
    let mut family = [0; FAMILY];
    family.copy_from_slice(&Sha256::digest(session)[..FAMILY]);
    family
}

fn mac(secret: &[u8], value: &[u8]) -> Option<String> {
    let mut mac = Hmac::<Sha512_256>::new_from_slice(secret).ok()?;
    mac.update(value);
    Some(base64(&mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_accepted_while_its_secret_is_listed() {
        let tokens = |secrets: &[u8]| OpaqueTokens::new(secrets.iter().map(|secret| [*secret; 32]).collect());
        let issued = tokens(&[1]).issue(REFRESH).unwrap();
        assert_eq!(tokens(&[2, 1]).signature(REFRESH, &issued.token), Some(&*issued.signature));
        assert_eq!(tokens(&[2]).signature(REFRESH, &issued.token), None);
        assert_eq!(tokens(&[1]).signature(CODE, &issued.token), None);
        for wrong in ["", "ory_rt_", "ory_rt_.", "ory_rt_a.b", &issued.token[..issued.token.len() - 1]] {
            assert_eq!(tokens(&[1]).signature(REFRESH, wrong), None, "{wrong}");
        }
    }

    #[test]
    fn tokens_of_a_session_differ_and_have_its_family() {
        let tokens = OpaqueTokens::new(vec![[1; 32]]);
        let of = |before: &str, session: &str| tokens.issue_after(before, session).unwrap();
        let (one, two, other) = (of("a", "one"), of("b", "one"), of("a", "other"));
        assert_eq!(of("a", "one").token, one.token);
        let member = |token: &str| tokens.member(REFRESH, token).map(|(family, _)| family);
        assert_ne!(one.token, two.token);
        assert_eq!(member(&one.token), Some(family("one")));
        assert_eq!(member(&two.token), Some(family("one")));
        assert_ne!(member(&other.token), member(&one.token));
        // The family of another cannot be put into a token.
        let (value, signature) = (&other.token[..other.token.len() - one.signature.len()], one.signature);
        assert_eq!(member(&format!("{value}{signature}")), None);
    }
}
