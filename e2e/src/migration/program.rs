//! ToolHive's own operator and proxies, installed from its charts.

use std::path::Path;

use anyhow::{Context, Result};

use super::{
    cluster::Cluster,
    toolhive::{Calls, Images, Proxy, Toolhive},
};
use crate::{
    manifests::{self, USERS},
    node::Node,
};

const NAMESPACE: &str = "toolhive-system";
const OPERATOR: &str = "deployment/toolhive-operator";
const PROXIES: [Proxy; 3] = [
    Proxy { name: "web", transport: "streamable-http", calls: Calls::Continuous },
    Proxy { name: "local", transport: "stdio", calls: Calls::Continuous },
    Proxy { name: "events", transport: "sse", calls: Calls::Single },
];
/// A server that is created when it starts again: once this one responds, it has seen the others.
const LATE: Proxy = Proxy { name: "late", transport: "streamable-http", calls: Calls::Continuous };

pub(super) struct Program<'a> {
    /// The folder of its Go module.
    sources: &'a Path,
    images: Images,
}

impl<'a> Program<'a> {
    /// Imports its images.
    pub(super) fn new(sources: &'a Path, node: &Node<'_>) -> Result<Self> {
        for image in ["thv-operator", "thv-proxyrunner"] {
            node.import(image)?;
        }
        // A module's folder ends with its version.
        let version =
            sources.to_str().and_then(|path| path.rsplit_once('@')).context("no version of ToolHive")?.1;
        let image = |name: &str| format!("ghcr.io/stacklok/toolhive/{name}:{version}");
        Ok(Self { sources, images: Images { runner: image("proxyrunner"), vmcp: image("vmcp") } })
    }
}

impl Toolhive for Program<'_> {
    fn images(&self) -> &Images {
        &self.images
    }

    fn proxies(&self) -> &'static [Proxy] {
        &PROXIES
    }

    fn install(&self, cluster: &Cluster<'_>) -> Result<()> {
        let chart = |name: &str| self.sources.join("deploy/charts").join(name);
        cluster.helm.install("toolhive-operator-crds", &chart("operator-crds"), NAMESPACE, &[])?;
        cluster.helm.install("toolhive-operator", &chart("operator"), NAMESPACE, &[])?;
        for Proxy { name, transport, .. } in PROXIES {
            cluster.kubectl.apply(&[manifests::server(name, transport)])?;
        }
        PROXIES.into_iter().try_for_each(|proxy| cluster.wait_until_ready(proxy))
    }

    fn stop(&self, cluster: &Cluster<'_>) -> Result<()> {
        cluster.scale(NAMESPACE, OPERATOR, 0)
    }

    fn start(&self, cluster: &Cluster<'_>) -> Result<()> {
        cluster.scale(NAMESPACE, OPERATOR, 1)?;
        cluster.kubectl.apply(&[manifests::server(LATE.name, LATE.transport)])?;
        cluster.wait_until_ready(LATE)?;
        cluster.kubectl.run(&["delete", "mcpserver", LATE.name, "-n", USERS, "--wait"]).map(drop)
    }

    fn log(&self, cluster: &Cluster<'_>) -> Result<String> {
        cluster.kubectl.run(&["logs", "-n", NAMESPACE, OPERATOR, "--tail=30"])
    }
}
