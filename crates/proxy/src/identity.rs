//! Who calls.

use serde_json::{Map, Value, json};

/// A caller, as their token tells it.
#[derive(Clone, PartialEq)]
pub(crate) struct Identity {
    /// Who it is, in the words of the issuer.
    pub(crate) subject: String,
    /// Everything that the token says.
    pub(crate) claims: Map<String, Value>,
}

impl Identity {
    /// The one local user of a proxy that asks nobody who they are.
    pub(crate) fn local() -> Self {
        let claims = json!({"sub": "local", "name": "Local User: local", "email": "local@localhost", "iss": "toolhive-local"});
        let claims = claims.as_object().cloned().unwrap_or_default();
        Self { subject: "local".into(), claims }
    }
}

/// Claims are for decisions, not for logs.
impl std::fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Identity").finish_non_exhaustive()
    }
}
