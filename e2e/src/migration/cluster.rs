//! The cluster that is migrated.

use anyhow::Result;
use serde_json::Value;

use super::{
    text,
    toolhive::{Calls, Proxy},
};
use crate::{call::Caller, cases::url, helm::Helm, kubectl::Kubectl, manifests::USERS, stopwatch::until};

pub(super) struct Cluster<'a> {
    pub(super) kubectl: &'a Kubectl,
    pub(super) helm: Helm<'a>,
    pub(super) caller: Caller<'a>,
}

impl Cluster<'_> {
    /// Waits until the pods of a proxy are ready, and calls it if clients can.
    pub(super) fn wait_until_ready(&self, proxy: Proxy) -> Result<()> {
        let Proxy { name, transport, .. } = proxy;
        self.wait_for_pods(name, |_| true)?;
        if proxy.calls != Calls::None {
            self.caller.echo_until_response(&url(name, transport), transport)?.response_time()?;
        }
        Ok(())
    }

    /// Waits until a Deployment meets the predicate, and has its pods, which are ready.
    pub(super) fn wait_for_pods(&self, name: &str, predicate: impl Fn(&Value) -> bool) -> Result<()> {
        let is_complete = |live: &Value| {
            let counts = ["updatedReplicas", "replicas", "readyReplicas"];
            predicate(live)
                && counts.into_iter().all(|count| live["status"][count] == live["spec"]["replicas"])
        };
        self.kubectl.wait(&["deployment", name, "-n", USERS], is_complete).map(drop)
    }

    pub(super) fn scale(&self, namespace: &str, deployment: &str, replicas: u32) -> Result<()> {
        self.kubectl.run(&["scale", deployment, "-n", namespace, "--replicas", &replicas.to_string()])?;
        let name = deployment.rsplit('/').next().unwrap_or_default();
        until("its pods are there, or have ended", || {
            let live = self.kubectl.get(&[deployment, "-n", namespace])?;
            let pods = self.kubectl.list(&["pods", "-n", namespace])?;
            let own = |pod: &&Value| text(pod, "/metadata/name").starts_with(&format!("{name}-"));
            let count = u32::try_from(pods.iter().filter(own).count())?;
            let ready = live["status"]["readyReplicas"].as_u64().unwrap_or_default();
            Ok((count == replicas && ready == u64::from(replicas)).then_some(()))
        })
    }
}
