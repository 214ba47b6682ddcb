//! The cluster that a virtual server runs in.

use kube::Client;

/// The cluster that a virtual server runs in.
#[derive(Clone)]
pub struct Cluster {
    /// A client of its API server.
    pub client: Client,
    /// The namespace of the virtual server, and of its backends.
    pub namespace: String,
    /// The VirtualMCPServer whose status it reports, if there is one.
    pub name: Option<String>,
}
