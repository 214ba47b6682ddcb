//! The identity of a caller.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::{
    Delegation,
    claims::{Claims, rest},
};

/// The claim with which an authorization server looks up its own session. It is for no other program.
pub(crate) const INTERNAL: &str = "tsid";

/// A caller, as their token describes them.
#[derive(Clone, PartialEq)]
pub struct Identity {
    /// The subject (`sub`).
    pub subject: String,
    /// All claims of the token.
    pub claims: Map<String, Value>,
    /// The parties that act for them.
    pub delegation: Delegation,
    /// Whether the caller was not authenticated.
    pub is_local: bool,
    /// The session at the authorization server in this process that issued the token.
    pub session: Option<String>,
}

impl Identity {
    /// The identity in claims that are already validated.
    pub(crate) fn of(mut claims: Claims) -> Self {
        let session = claims.remove(INTERNAL).and_then(|id| id.as_str().map(str::to_owned));
        let subject = claims.get("sub").and_then(Value::as_str).unwrap_or_default().to_owned();
        Self { subject, delegation: Delegation::of(claims.get("act")), claims, is_local: false, session }
    }

    /// The caller whose token has these claims, which nothing has validated: for explanations.
    pub fn with_claims(claims: Map<String, Value>) -> Self {
        Self::of(claims)
    }

    /// How long the token is still valid. The local user has none, and some issuers do not name the end.
    pub fn validity(&self) -> Option<Duration> {
        self.claims.get("exp")?.as_f64()?;
        Some(rest(&self.claims))
    }

    /// The identity of every caller of a server that requires no token, on the machine of its user.
    pub fn local() -> Self {
        Self::local_user("local")
    }

    /// The same, by the name of the user.
    pub fn local_user(name: &str) -> Self {
        Self::unauthenticated(name, &format!("Local User: {name}"))
    }

    /// The identity of every caller of a server that is open to all.
    pub fn anonymous() -> Self {
        Self::unauthenticated("anonymous", "Anonymous User")
    }

    fn unauthenticated(subject: &str, name: &str) -> Self {
        let email = format!("{subject}@localhost");
        let claims = json!({"sub": subject, "name": name, "email": email, "iss": "toolhive-local"});
        Self { is_local: true, ..Self::of(claims.as_object().cloned().unwrap_or_default()) }
    }
}

/// Claims are for decisions, not for logs.
impl std::fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Identity").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_without_an_end_is_valid_for_an_unknown_time() {
        let validity = |claims: Value| Identity::of(claims.as_object().cloned().unwrap()).validity();
        assert_eq!(validity(json!({"sub": "a"})), None);
        assert_eq!(validity(json!({"sub": "a", "exp": 1})), Some(Duration::ZERO));
        assert!(validity(json!({"sub": "a", "exp": 1e12})).unwrap() > Duration::from_secs(1 << 30));
        assert_eq!(Identity::local().validity(), None);
    }
}
