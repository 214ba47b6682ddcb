//! The owner of a session. No other caller may use it, even one that knows its id.

use sha2::{Digest, Sha256};

use super::Identity;

/// A caller, as far as sessions are concerned: one subject of one issuer. It is a digest, which is small, and does not
/// disclose to readers of a session store who uses what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Owner([u8; 16]);

impl Owner {
    /// Every caller, where callers are anonymous.
    pub const ANONYMOUS: Self = Self([0; 16]);

    /// The owner of sessions of this caller.
    pub fn of(identity: Option<&Identity>) -> Self {
        identity.filter(|identity| !identity.is_local).map_or(Self::ANONYMOUS, Self::digest)
    }

    fn digest(identity: &Identity) -> Self {
        let issuer = identity.claims.get("iss").and_then(serde_json::Value::as_str).unwrap_or_default();
        let mut digest = Sha256::new();
        // With its length, so that no letters can move from the one to the other.
        digest.update(issuer.len().to_le_bytes());
        digest.update(issuer);
        digest.update(&identity.subject);
        let mut half = [0; 16];
        half.copy_from_slice(&digest.finalize()[..16]);
        Self(half)
    }

    /// As a text, for a store.
    pub fn to_text(self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.0))
    }

    /// From that text.
    pub fn from_text(text: &str) -> Option<Self> {
        let number = u128::from_str_radix(text, 16).ok().filter(|_| text.len() == 32)?;
        Some(Self(number.to_be_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(issuer: &str, subject: &str) -> Owner {
        let mut identity = Identity::local();
        identity.subject = subject.into();
        identity.claims.insert("iss".into(), issuer.into());
        Owner::digest(&identity)
    }

    #[test]
    fn an_owner_is_one_subject_of_one_issuer() {
        let ada = owner("https://a", "ada");
        assert_eq!(ada, owner("https://a", "ada"));
        for (issuer, subject) in [("https://b", "ada"), ("https://a", "bob"), ("https://aa", "da"), ("", "")]
        {
            assert_ne!(ada, owner(issuer, subject), "{issuer} {subject}");
        }
        assert_ne!(ada, Owner::ANONYMOUS);
    }

    #[test]
    fn a_text_identifies_one_owner_and_does_not_name_them() {
        let ada = owner("https://a", "ada");
        assert_eq!(Owner::from_text(&ada.to_text()), Some(ada));
        assert_eq!(Owner::from_text(&Owner::ANONYMOUS.to_text()), Some(Owner::ANONYMOUS));
        assert!(!ada.to_text().contains("ada"));
        for text in ["", "ada", "not hex"] {
            assert_eq!(Owner::from_text(text), None, "{text}");
        }
    }
}
