//! What runs the servers before a migration.

use anyhow::Result;

use super::cluster::Cluster;

/// A proxy, with what it is a proxy for.
#[derive(Clone, Copy)]
pub(super) struct Proxy {
    pub(super) name: &'static str,
    pub(super) transport: &'static str,
    pub(super) calls: Calls,
}

/// How often it is called.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Calls {
    /// All the time.
    Continuous,
    /// Once: the client that calls all the time uses streamable HTTP.
    Single,
    /// Never: nothing here issues the tokens that it accepts.
    None,
}

/// ToolHive's images, as skep's settings name them.
pub(super) struct Images {
    pub(super) runner: String,
    pub(super) vmcp: String,
}

/// ToolHive's operator.
pub(super) trait Toolhive {
    fn images(&self) -> &Images;

    /// What it runs.
    fn proxies(&self) -> &'static [Proxy];

    /// Installs its CRDs and starts it. When this returns, its proxies respond.
    fn install(&self, cluster: &Cluster<'_>) -> Result<()>;

    fn stop(&self, cluster: &Cluster<'_>) -> Result<()>;

    /// Starts it again. When this returns, it has written whatever it writes.
    fn start(&self, cluster: &Cluster<'_>) -> Result<()>;

    /// What it printed last.
    fn log(&self, cluster: &Cluster<'_>) -> Result<String>;
}
