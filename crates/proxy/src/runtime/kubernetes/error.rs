//! Why a server cannot be run.

use super::manifest::ManifestError;

/// Why a server cannot be run in a cluster.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// There is no way to talk to a cluster.
    #[error("cannot talk to a cluster: {0}")]
    Config(String),
    /// The RunConfig describes no server that a cluster could run.
    #[error("the RunConfig cannot be run: {0}")]
    Manifest(#[from] ManifestError),
    /// The kind of cluster is unknown.
    #[error("cannot tell whether the cluster is an OpenShift: {0}; set OPERATOR_OPENSHIFT to true or false")]
    Platform(kube::Error),
    /// The API server does not answer.
    #[error("the API server does not answer in time")]
    Silence,
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
    /// Whether another client wrote meanwhile, so that all is to be decided again.
    pub(super) fn is_conflict(&self) -> bool {
        matches!(self, Self::Request { source: kube::Error::Api(status), .. } if status.code == 409)
    }

    /// Whether the same may succeed in a moment: another client wrote meanwhile, or the API server did not respond.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Self::Request { source, .. } | Self::Platform(source) => match source {
                kube::Error::Api(status) => matches!(status.code, 409 | 429 | 500..),
                kube::Error::HyperError(_) | kube::Error::Service(_) => true,
                _ => false,
            },
            Self::Silence => true,
            Self::Config(_) | Self::Manifest(_) => false,
        }
    }
}
