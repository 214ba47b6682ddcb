//! Who somebody is.

use serde_json::{Map, Value, json};

use crate::{Delegation, claims::Claims};

/// The claim by which an authorization server finds its own session. It is nobody else's business.
pub(crate) const INTERNAL: &str = "tsid";

/// A caller, as their token tells it.
#[derive(Clone, PartialEq)]
pub struct Identity {
    /// Who it is, in the words of the issuer.
    pub subject: String,
    /// Everything that the token says.
    pub claims: Map<String, Value>,
    /// Who acts for them.
    pub delegation: Delegation,
    /// Whether it is anybody at all, who was not asked.
    pub is_local: bool,
}

impl Identity {
    /// The identity that claims tell, which were checked before.
    pub(crate) fn of(mut claims: Claims) -> Self {
        claims.remove(INTERNAL);
        let subject = claims.get("sub").and_then(Value::as_str).unwrap_or_default().to_owned();
        Self { subject, delegation: Delegation::of(claims.get("act")), claims, is_local: false }
    }

    /// The one local user where nobody is asked who they are.
    pub fn local() -> Self {
        let claims = json!({"sub": "local", "name": "Local User: local", "email": "local@localhost", "iss": "toolhive-local"});
        Self { is_local: true, ..Self::of(claims.as_object().cloned().unwrap_or_default()) }
    }
}

/// Claims are for decisions, not for logs.
impl std::fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Identity").finish_non_exhaustive()
    }
}
