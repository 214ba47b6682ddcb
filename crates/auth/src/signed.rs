//! Signed tokens of other issuers, for callers that check the claims themselves.

use serde_json::{Map, Value};

use crate::{
    AuthenticationError, Fetcher, Pace, SetupError,
    jwt::Jwt,
    keys::{Keys, Source},
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

impl IssuerKeys {
    /// The keys at an address, or, if it is empty, those that the metadata of the issuer names.
    pub fn new(fetcher: Fetcher, address: &str, issuer: &str, pace: Pace) -> Result<Self, SetupError> {
        Ok(Self(Keys::new(Source::new(fetcher, address, issuer, None, false)?, pace)))
    }

    /// Verifies the signature of a token.
    pub async fn verify(&self, token: &str) -> Result<SignedToken, AuthenticationError> {
        let malformed = AuthenticationError::Token("the token is not a JWT");
        if token.len() > limits::TOKEN {
            return Err(malformed);
        }
        let jwt = Jwt::read(token).ok_or(malformed)?;
        jwt.algorithm()?;
        let keys = self.0.with(jwt.key_id()?).await?;
        jwt.verify(&keys)?;
        Ok(SignedToken { header: jwt.header, claims: jwt.claims })
    }
}
