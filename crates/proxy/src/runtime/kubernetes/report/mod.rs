//! What the server offers, in the status of its object.
//!
//! The proxy applies the fields that are its own, and only when they change: of several replicas that see the same, the first
//! one writes it. A report about a newer generation of the object is not overwritten, and a proxy that leaves reports nothing.
//! An API server that does not let it, because of an older Role or another operator, ends the reports.

mod status;

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use backon::{BackoffBuilder, ExponentialBuilder};
use jiff::Timestamp;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
    core::{ApiResource, DynamicObject},
};
use serde_json::{Value, json};
use skep_api::kinds::{MCPRemoteProxy, MCPServer};
use skep_config::{RunConfig, objects::PROXY_STATUS_MANAGER};
use tokio::sync::watch;
use tracing::{info, warn};

use super::{Readiness, RuntimeError, place};
use crate::{InspectError, Proxy, inspect::INSPECT_TIME};
use status::{Finding, Report};

/// How long a description of a server is taken to be right: first, as a proxy that was replaced may have reported last, and at
/// most.
const AGAIN: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(600));
/// The first pause after a failure, and the longest.
const RETRY: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(60));
/// How often a report is compared with the status, if the status changes meanwhile.
const CONFLICTS: usize = 5;
/// How often in a row a server that has responded before may not respond until that is reported.
const MISSES: usize = 3;

/// Reports what a server offers.
pub struct Reporter {
    resource: ApiResource,
    name: String,
    /// The generation of the object that the proxy was started for.
    generation: i64,
    cluster: Cluster,
    /// How long the server may take to describe itself.
    time: Duration,
    /// Whether the CRD lacks the field for what a server offers, as ToolHive's does.
    is_older: AtomicBool,
}

/// The cluster that has the object.
enum Cluster {
    /// That of an environment. Each report has a client of its own, as an idle one would take memory for nothing.
    Env(BTreeMap<String, String>),
    /// One that is connected already, with the namespace.
    Connected(Client, String),
}

impl Reporter {
    /// The reporter of the object that the RunConfig was written for, in the cluster that the process runs in.
    pub fn new(config: &RunConfig, env: &BTreeMap<String, String>) -> Self {
        Self::of(config, Cluster::Env(env.clone()))
    }

    /// The same in this namespace.
    pub fn within(config: &RunConfig, client: Client, namespace: impl Into<String>) -> Self {
        Self::of(config, Cluster::Connected(client, namespace.into()))
    }

    fn of(config: &RunConfig, cluster: Cluster) -> Self {
        let resource = match config.remote_url.is_empty() {
            true => ApiResource::erase::<MCPServer>(&()),
            false => ApiResource::erase::<MCPRemoteProxy>(&()),
        };
        let (name, time, is_older) = (config.name.clone(), INSPECT_TIME, AtomicBool::new(false));
        let generation = config.mcpserver_generation;
        Self { resource, name, generation, cluster, time, is_older }
    }

    /// The same for a server that gets this time to describe itself.
    pub fn with_time(self, time: Duration) -> Self {
        Self { time, ..self }
    }

    /// Reports at once, after each restart of the server, when it announces other tools, and from time to time, until the proxy
    /// leaves. What is not permitted is tried again less and less often: the Role may be restored, and an API server that has just
    /// started may not know it yet. The more often it announces them, the longer is the pause before it is believed.
    pub async fn run(&self, proxy: &Proxy, mut restarts: Option<Readiness>) {
        let between = |(least, most)| {
            let pauses = ExponentialBuilder::default().with_min_delay(least).with_max_delay(most);
            pauses.without_max_times().with_jitter()
        };
        let (pauses, looks, denials) = (between(RETRY), between(AGAIN), between((RETRY.0, AGAIN.1)));
        let (mut retries, mut announcements, mut next_looks) =
            (pauses.build(), pauses.build(), looks.build());
        let mut denied = None;
        let mut tools = proxy.tool_changes();
        let mut report = Report { finding: Finding::Initializing, issuer: None, generation: self.generation };
        while !proxy.is_draining() {
            let reported = self.report(&report).await;
            let is_described =
                matches!((&report.finding, &report.issuer), (Finding::Described(_), None | Some(Ok(()))));
            let is_settled = reported.is_ok() && is_described;
            let pause = match (&reported, &report.finding) {
                (Err(error @ RuntimeError::Config(_)), _) => {
                    info!(%error, "what the server offers is not reported in its status");
                    return;
                }
                (Err(error), _) if is_denied(error) => {
                    if denied.is_none() {
                        info!(%error, "what the server offers cannot be reported in its status; retrying");
                    }
                    denied.get_or_insert_with(|| denials.build()).next().unwrap_or(AGAIN.1)
                }
                (Ok(()), Finding::Initializing) => Duration::ZERO,
                _ if is_settled => {
                    retries = pauses.build();
                    next_looks.next().unwrap_or(AGAIN.1)
                }
                _ => {
                    next_looks = looks.build();
                    retries.next().unwrap_or(RETRY.1)
                }
            };
            match reported {
                Ok(()) => denied = None,
                Err(error) if is_denied(&error) => {}
                Err(error) => warn!(%error, "failed to report what the server offers"),
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => if is_settled { announcements = pauses.build() },
                () = restarted(restarts.as_mut()), if is_settled => next_looks = looks.build(),
                () = announced(&mut tools), if is_settled => {
                    tokio::time::sleep(announcements.next().unwrap_or(RETRY.1)).await;
                }
            }
            // What comes from here on is not in the lists that are read next.
            tools.mark_unchanged();
            (report.finding, report.issuer) =
                tokio::join!(self.inspect(proxy, &report.finding), proxy.check_issuer());
        }
    }

    /// Applies the status, if the object has another one.
    async fn report(&self, report: &Report) -> Result<(), RuntimeError> {
        let api = self.api().await?;
        let failed = |verb| move |error| RuntimeError::Request { verb, object: self.object(), error };
        let mut conflicts = 0;
        loop {
            let live = api.get(&self.name).await.map_err(failed("get"))?;
            match self.apply(&api, &live, report).await {
                Err(kube::Error::Api(error)) if error.code == 409 && conflicts < CONFLICTS => conflicts += 1,
                applied => return applied.map_err(failed("report the status of")),
            }
        }
    }

    /// Applies the status to an object that is still the one that was read, if it is to have another one.
    async fn apply(
        &self,
        api: &Api<DynamicObject>,
        live: &DynamicObject,
        report: &Report,
    ) -> kube::Result<()> {
        let (status, generation) = (&live.data["status"], live.metadata.generation);
        if status::is_outdated(status, generation.unwrap_or_default(), report.generation) {
            return Ok(());
        }
        let changed = |is_older| status::changed(status, report, is_older, Timestamp::now());
        let Some(desired) = changed(self.is_older.load(Ordering::Relaxed)) else { return Ok(()) };
        match self.patch(api, live, &desired).await {
            // The conditions are declared in all CRDs. What this one lacks is not tried again.
            Err(kube::Error::Api(error)) if error.message.contains("field not declared in schema") => {
                self.is_older.store(true, Ordering::Relaxed);
                match changed(true) {
                    Some(desired) => self.patch(api, live, &desired).await,
                    None => Ok(()),
                }
            }
            applied => applied,
        }
    }

    /// What is found now. A server that has responded before may be busy, and gets several attempts.
    async fn inspect(&self, proxy: &Proxy, before: &Finding) -> Finding {
        let misses = if matches!(before, Finding::Described(_)) { MISSES } else { 0 };
        for _ in 0..misses {
            match proxy.inspect_within(self.time).await {
                Err(InspectError::Unreachable(_)) => tokio::time::sleep(RETRY.0).await,
                inspected => return inspected.into(),
            }
        }
        proxy.inspect_within(self.time).await.into()
    }

    async fn api(&self) -> Result<Api<DynamicObject>, RuntimeError> {
        let (client, namespace) = match &self.cluster {
            Cluster::Connected(client, namespace) => (client.clone(), namespace.clone()),
            Cluster::Env(env) => {
                let config = place::config(env).await?;
                let namespace = place::namespace(env, &config);
                let invalid = |error: kube::Error| RuntimeError::Config(error.to_string());
                (Client::try_from(config).map_err(invalid)?, namespace)
            }
        };
        Ok(Api::namespaced_with(client, &namespace, &self.resource))
    }

    async fn patch(
        &self,
        api: &Api<DynamicObject>,
        live: &DynamicObject,
        status: &Value,
    ) -> kube::Result<()> {
        let patch = json!({
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            "metadata": {"name": self.name, "resourceVersion": live.metadata.resource_version},
            "status": status,
        });
        let params = PatchParams::apply(PROXY_STATUS_MANAGER).force();
        api.patch_status(&self.name, &params, &Patch::Apply(patch)).await.map(drop)
    }

    fn object(&self) -> String {
        format!("{} {}", self.resource.kind, self.name)
    }
}

/// Waits until the server has stopped serving, and serves again.
async fn restarted(readiness: Option<&mut Readiness>) {
    let Some(readiness) = readiness else { return std::future::pending().await };
    while readiness.serves() {
        if !readiness.wait_for_change().await {
            return std::future::pending().await;
        }
    }
    if !readiness.wait_until_serving().await {
        std::future::pending().await
    }
}

/// Waits until the server announces other tools.
async fn announced(changes: &mut watch::Receiver<u64>) {
    if changes.changed().await.is_err() {
        std::future::pending().await
    }
}

/// Whether it is not permitted, or there is no such object: an attempt soon would not help.
fn is_denied(error: &RuntimeError) -> bool {
    matches!(error, RuntimeError::Request { error: kube::Error::Api(status), .. }
        if matches!(status.code, 401 | 403 | 404))
}
