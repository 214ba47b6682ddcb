//! What can go wrong when objects are written.

/// The result of a write.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an object was not written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server did not take the request.
    #[error("cannot {verb} {kind} {object}: {}", said(source))]
    Refused {
        /// What was tried.
        verb: &'static str,
        /// The kind of the object.
        kind: &'static str,
        /// The object's namespace and name.
        object: String,
        /// What the API server or the connection said.
        source: Box<kube::Error>,
    },
    /// The object exists, and another object controls it.
    #[error("{kind} {name} is controlled by {owner}: rename one of the two, or delete that {kind}")]
    Foreign {
        /// The kind of the object.
        kind: &'static str,
        /// The object's name.
        name: String,
        /// Who controls it, as kind and name.
        owner: String,
    },
    /// The system has no random numbers.
    #[error("the system gives no random numbers: {0}")]
    NoRandomness(getrandom::Error),
    /// A desired object is not one that can be written.
    #[error("{0} cannot be written as JSON: {1}")]
    Malformed(&'static str, serde_json::Error),
}

impl Error {
    /// The kind of the object that could not be written.
    pub fn kind(&self) -> Option<&'static str> {
        match self {
            Self::Refused { kind, .. } | Self::Foreign { kind, .. } | Self::Malformed(kind, _) => Some(kind),
            Self::NoRandomness(_) => None,
        }
    }

    /// Whether the object had changed, or was gone, by the time of the write: a fresh look settles it.
    pub fn is_stale(&self) -> bool {
        matches!(self, Self::Refused { source, .. }
            if matches!(source.as_ref(), kube::Error::Api(status) if status.is_conflict() || status.is_not_found()))
    }

    /// Whether the object was gone by the time of the write.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Refused { source, .. }
            if matches!(source.as_ref(), kube::Error::Api(status) if status.is_not_found()))
    }

    /// Whether the API server does not let us write so.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Refused { source, .. }
            if matches!(source.as_ref(), kube::Error::Api(status) if status.is_forbidden()))
    }

    /// Whether the API server understood the request and refused it for good, so that only another spec will help.
    pub fn is_invalid(&self) -> bool {
        matches!(self, Self::Refused { source, .. }
            if matches!(source.as_ref(), kube::Error::Api(status) if status.is_invalid()))
    }
}

/// What the API server said, without the dump of its whole answer that kube adds.
pub fn said(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}
