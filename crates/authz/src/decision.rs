//! Decisions.

use std::fmt;

/// Whether a request passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It passes.
    Allow,
    /// It does not.
    Deny(Denial),
}

impl Decision {
    /// Whether the request passes.
    pub const fn is_allowed(&self) -> bool {
        matches!(self, Self::Allow)
    }
}

/// Why a request does not pass, fit for an audit log: it names policies and quotes them, and contains nothing of
/// the token or the arguments.
///
/// A policy is named after its position in the document: `policy2` is `policies[2]`. If a text has several, they
/// are `policy2.0`, `policy2.1` and so on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denial {
    /// The token has no subject.
    NoSubject,
    /// No policy permits it.
    NotPermitted,
    /// These policies forbid it.
    Forbidden(Vec<String>),
    /// A policy could not be evaluated, so its effect is unknown.
    Failed {
        /// The first such policy.
        policy: String,
        /// The part of the policy that failed.
        at: Option<String>,
        /// Whether that is an attribute that the request does not have.
        is_missing: bool,
    },
    /// The request contradicts the entities of the document, such as a group that is its own member.
    Contradictory,
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSubject => f.write_str("the token has no subject"),
            Self::NotPermitted => f.write_str("no policy permits it"),
            Self::Forbidden(policies) => write!(f, "forbidden by {}", policies.join(", ")),
            Self::Failed { policy, at: Some(at), .. } => {
                write!(f, "{policy} could not be evaluated at {at:?}")
            }
            Self::Failed { policy, at: None, .. } => write!(f, "{policy} could not be evaluated"),
            Self::Contradictory => f.write_str("the request contradicts entities_json"),
        }
    }
}
