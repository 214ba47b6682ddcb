//! Signed tokens of other issuers, for callers that check the claims themselves.

use serde_json::{Map, Value};

use crate::{
    AuthenticationError, Fetcher, Pace, SetupError,
    jwt::Jwt,
    keys::{KeySet, Keys, Source},
    limits,
};

/// The keys of an issuer, fetched and cached.
pub struct IssuerKeys(Keys);

/// A token whose signature is right.
pub struct SignedToken {
    /// Its header.
    pub header: Map<String, Value>,
    /// Its claims, none of which was checked.
    pub claims: Map<String, Value>,
}

/// Verifies the signature of a token with the keys of a document (RFC 7517, section 5).
pub fn verified_by(document: &Map<String, Value>, token: &str) -> Result<SignedToken, AuthenticationError> {
    let jwt = read(token)?;
    let keys = KeySet::of(document).ok_or(AuthenticationError::Token("there are no keys"))?;
    jwt.verify(&keys)?;
    Ok(SignedToken { header: jwt.header, claims: jwt.claims })
}

fn read(token: &str) -> Result<Jwt<'_>, AuthenticationError> {
    let malformed = AuthenticationError::Token("the token is not a JWT");
    Some(token).filter(|token| token.len() <= limits::TOKEN).and_then(Jwt::read).ok_or(malformed)
}

impl IssuerKeys {
    /// The keys at an address, or, if it is empty, those that the metadata of the issuer names.
    pub fn new(fetcher: Fetcher, address: &str, issuer: &str, pace: Pace) -> Result<Self, SetupError> {
        Ok(Self(Keys::new(Source::new(fetcher, address, issuer, None, false)?, pace)))
    }

    /// Verifies the signature of a token.
    pub async fn verify(&self, token: &str) -> Result<SignedToken, AuthenticationError> {
        let jwt = read(token)?;
        jwt.algorithm()?;
        let keys = self.0.with(jwt.key_id()?).await?;
        jwt.verify(&keys)?;
        Ok(SignedToken { header: jwt.header, claims: jwt.claims })
    }
}
