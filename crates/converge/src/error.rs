//! Errors of writes.

use skep_config::annotations::ADOPT;

/// The result of a write.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why an object was not written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request failed.
    #[error("cannot {verb} {kind} {object}: {}", error_chain(cause))]
    Request {
        /// The attempted operation.
        verb: &'static str,
        /// The kind of the object.
        kind: &'static str,
        /// The object's namespace and name.
        object: String,
        /// The error of the API server or the connection. It is part of the message, and not the source of this error: otherwise a
        /// chain of errors would have it twice.
        cause: Box<kube::Error>,
    },
    /// The object exists, and another object controls it.
    #[error("{kind} {name} is controlled by {owner}: rename one of the two, or delete that {kind}")]
    Foreign {
        /// The kind of the object.
        kind: &'static str,
        /// The object's name.
        name: String,
        /// The owner that controls it, as kind and name.
        owner: String,
    },
    /// The object exists, nobody controls it, and it was not handed over.
    #[error(
        "{kind} {name} exists already, and others made it: rename one of the two, delete that {kind}, or hand it over with the \
         annotation {ADOPT}=true"
    )]
    Unclaimed {
        /// The kind of the object.
        kind: &'static str,
        /// The object's name.
        name: String,
    },
    /// The object cannot be changed as desired: Kubernetes does not allow some of its fields to change.
    #[error("{cause}; delete {kind} {name}, and it is created anew")]
    Immutable {
        /// The kind of the object.
        kind: &'static str,
        /// The object's name.
        name: String,
        /// What the API server says.
        cause: String,
    },
    /// The system's random number generator failed.
    #[error("the system's random number generator failed: {0}")]
    NoRandomness(getrandom::Error),
    /// A desired object cannot be serialized.
    #[error("{0} cannot be written as JSON: {1}")]
    Malformed(&'static str, serde_json::Error),
}

impl Error {
    /// The kind of the object that could not be written.
    pub fn kind(&self) -> Option<&'static str> {
        match self {
            Self::Request { kind, .. }
            | Self::Foreign { kind, .. }
            | Self::Unclaimed { kind, .. }
            | Self::Immutable { kind, .. }
            | Self::Malformed(kind, _) => Some(kind),
            Self::NoRandomness(_) => None,
        }
    }

    /// Whether a message is about the same operation. The text of the API server after it may differ at each attempt.
    pub fn is_reported_by(&self, message: &str) -> bool {
        match self {
            Self::Request { verb, kind, object, .. } => {
                message.starts_with(&format!("cannot {verb} {kind} {object}: "))
            }
            Self::Foreign { .. }
            | Self::Unclaimed { .. }
            | Self::Immutable { .. }
            | Self::NoRandomness(_)
            | Self::Malformed(..) => message == self.to_string(),
        }
    }

    /// The kind and name of the object that is in the way. A retry is useless until people delete it or hand it over.
    pub fn in_the_way(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Foreign { kind, name, .. }
            | Self::Unclaimed { kind, name }
            | Self::Immutable { kind, name, .. } => Some((kind, name)),
            Self::Request { .. } | Self::NoRandomness(_) | Self::Malformed(..) => None,
        }
    }

    /// Whether the API server rejected the change of a field that cannot change.
    pub(crate) fn is_immutable(&self) -> bool {
        let Self::Request { cause, .. } = self else { return false };
        let kube::Error::Api(status) = cause.as_ref() else { return false };
        let mut causes = status.details.iter().flat_map(|details| &details.causes);
        // Each kind has its own words.
        status.is_invalid()
            && causes.any(|cause| {
                let says = |words: &str| cause.message.contains(words);
                says("immutable") || says("cannot change roleRef") || says("updates to statefulset spec")
            })
    }

    /// Whether another state of the object was expected.
    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, Self::Request { cause, .. }
            if matches!(cause.as_ref(), kube::Error::Api(status) if status.is_conflict()))
    }

    /// Whether the object had changed, or was deleted, by the time of the write: reconciling again resolves it.
    pub fn is_stale(&self) -> bool {
        matches!(self, Self::Request { cause, .. }
            if matches!(cause.as_ref(), kube::Error::Api(status) if status.is_conflict() || status.is_not_found()))
    }

    /// Whether the object was deleted by the time of the write.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Request { cause, .. }
            if matches!(cause.as_ref(), kube::Error::Api(status) if status.is_not_found()))
    }

    /// Whether the API server denied the write.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Request { cause, .. }
            if matches!(cause.as_ref(), kube::Error::Api(status) if status.is_forbidden()))
    }

    /// Whether the API server rejected the request because the schema does not declare one of its fields.
    pub fn is_undeclared_field(&self) -> bool {
        matches!(self, Self::Request { cause, .. }
            if matches!(cause.as_ref(), kube::Error::Api(status) if status.message.contains("not declared in schema")))
    }

    /// Whether the API server rejected the request as invalid, so that a retry is useless until the spec changes.
    pub fn is_invalid(&self) -> bool {
        matches!(self, Self::Request { cause, .. }
            if matches!(cause.as_ref(), kube::Error::Api(status) if status.is_invalid()))
    }
}

/// The message of the API server, without the debug dump of the whole response that kube adds; for other errors,
/// their own message.
pub fn error_chain(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_text_is_the_same_failure_and_another_object_with_a_longer_name_is_not() {
        let failure = |object: &str, text: &str| Error::Request {
            verb: "apply",
            kind: "Service",
            object: object.into(),
            cause: Box::new(kube::Error::Service(text.into())),
        };
        let error = failure("ns/one", "attempt 1");
        assert!(error.is_reported_by(&failure("ns/one", "attempt 2").to_string()));
        assert!(!error.is_reported_by(&failure("ns/one-headless", "attempt 1").to_string()));
    }
}
