//! Why a server cannot be run.

use super::manifest::ManifestError;

/// Why a server cannot be run in a cluster.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// There is no valid configuration of a cluster.
    #[error("cannot connect to a cluster: {0}")]
    Config(String),
    /// The RunConfig describes no server that a cluster could run.
    #[error("the RunConfig cannot be run: {0}")]
    Manifest(#[from] ManifestError),
    /// The kind of cluster is unknown.
    #[error(
        "cannot detect whether the cluster is an OpenShift: {0}; set OPERATOR_OPENSHIFT to true or false"
    )]
    Platform(kube::Error),
    /// The API server does not respond.
    #[error("timeout waiting for the API server")]
    Timeout,
    /// An object cannot be read or applied.
    #[error("{verb} {object}: {source}")]
    Request {
        /// What was tried.
        verb: &'static str,
        /// The kind and the name of the object.
        object: String,
        /// Why it failed.
        source: kube::Error,
    },
}

impl RuntimeError {
    /// Whether another client wrote since the read, so that everything must be decided again.
    pub(super) fn is_conflict(&self) -> bool {
        matches!(self, Self::Request { source: kube::Error::Api(status), .. } if status.code == 409)
    }

    /// Whether a retry may succeed: another client wrote since the read, or the API server did not respond.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Request { source, .. } | Self::Platform(source) => match source {
                kube::Error::Api(status) => matches!(status.code, 409 | 429 | 500..),
                kube::Error::HyperError(_) | kube::Error::Service(_) => true,
                _ => false,
            },
            Self::Timeout => true,
            Self::Config(_) | Self::Manifest(_) => false,
        }
    }
}
