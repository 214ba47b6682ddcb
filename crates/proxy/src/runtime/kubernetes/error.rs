//! Why a server cannot be run.

use std::error::Error;

use skep_config::annotations::ADOPT;

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
        "cannot detect whether the cluster is an OpenShift: {}; set OPERATOR_OPENSHIFT to true or false",
        error_chain(.0)
    )]
    Platform(kube::Error),
    /// The API server does not respond.
    #[error("timeout waiting for the API server")]
    Timeout,
    /// The name of an object is taken: by this, of which nothing says that it belongs to the server.
    #[error(
        "{0} exists already, and others made it: delete it, rename the server, or hand it over with the annotation {ADOPT}=true"
    )]
    OfOthers(String),
    /// The server that was to be restored has been deleted.
    #[error("the StatefulSet was deleted")]
    Gone,
    /// An object cannot be read or applied.
    #[error("{verb} {object}: {}", error_chain(error))]
    Request {
        /// What was tried.
        verb: &'static str,
        /// The kind and the name of the object.
        object: String,
        /// Why it failed. It is not the source of this error: a log line with all sources would have it twice, with the whole
        /// response of the API server.
        error: kube::Error,
    },
}

/// The message of the API server, without the debug dump of the whole response that kube adds; other errors with all their
/// causes, because most only say that a connection failed.
fn error_chain(error: &kube::Error) -> String {
    if let kube::Error::Api(status) = error {
        return status.message.clone();
    }
    let mut chain = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let text = next.to_string();
        // Some errors print their cause themselves.
        if !chain.ends_with(&text) {
            chain = format!("{chain}: {text}");
        }
        cause = next.source();
    }
    chain
}

impl RuntimeError {
    /// Whether another client wrote since the read, so that everything must be decided again.
    pub(super) fn is_conflict(&self) -> bool {
        matches!(self, Self::Request { error: kube::Error::Api(status), .. } if status.code == 409)
    }

    /// Whether a retry may succeed: another client wrote since the read, or the API server did not respond.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Request { error, .. } | Self::Platform(error) => match error {
                kube::Error::Api(status) => matches!(status.code, 409 | 429 | 500..),
                kube::Error::HyperError(_) | kube::Error::Service(_) => true,
                _ => false,
            },
            Self::Timeout => true,
            Self::Config(_) | Self::Manifest(_) | Self::OfOthers(_) | Self::Gone => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::{Client, Config};

    use super::*;

    #[tokio::test]
    async fn a_failed_connection_is_an_error_with_its_cause() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        drop(listener);
        let client = Client::try_from(Config::new(url)).unwrap();
        let error = RuntimeError::Platform(client.apiserver_version().await.unwrap_err());
        let expected = "cannot detect whether the cluster is an OpenShift: ServiceError: client error (Connect): tcp connect \
                        error: Connection refused (os error 111); set OPERATOR_OPENSHIFT to true or false";
        assert_eq!(error.to_string(), expected);
    }
}
