//! An operator under constant change: servers are created, changed and deleted, references change their targets, and the API
//! server restarts. What the operator holds must not grow.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::ApiResource,
};
use serde_json::{Value, json};
use skep_api::kinds::{MCPOIDCConfig, MCPServer, MCPToolConfig};
use skep_bench_harness::{Usage, ensure_flat};
use skep_testkit::ControlPlane;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::{
    operator::{Operator, Started},
    print_progress,
};

/// How many servers and configurations of each kind there are at most: primes, so that each gets each kind of change.
const SERVERS: u64 = 61;
const CONFIGS: u64 = 7;
/// The time between two changes.
const PAUSE: Duration = Duration::from_millis(200);
const MINUTE: Duration = Duration::from_secs(60);
/// How often the API server restarts, in minutes.
const RESTART: u64 = 10;
/// How long the operator may take to forget what was deleted.
const FORGOTTEN_WITHIN: Duration = Duration::from_secs(120);

pub(crate) async fn run(plane: &mut ControlPlane, operator: &Operator, minutes: u32) -> Result<()> {
    let test = plane.namespace().await;
    let started = operator.start(&test, &test.admin("operator")).await?;
    let mut changes = Changes::new(test.admin("user").client(), test.name());
    let mut before = Held::now(&started).await?;
    print_progress(&format!("skep reconciles up to {SERVERS} servers, with a change every {PAUSE:?}"));
    println!("{:>6} {:>8} {:>8}  {}", "minute", "changes", "rejected", Held::TITLE);
    let mut memory = Vec::new();
    for minute in 1..=u64::from(minutes) {
        changes.go_on_for(MINUTE).await;
        started.process.check()?;
        let held = Held::now(&started).await?;
        println!("{minute:>6} {:>8} {:>8}  {held}", changes.sent, changes.rejected);
        memory.push(held.usage.memory);
        // Some tasks start with the first request, those of connections for example.
        if minute == 1 {
            before.gauges[Held::TASKS] = held.gauges[Held::TASKS];
        }
        if minute % RESTART == 0 {
            plane.kill_api_server();
            plane.start_api_server().await;
        }
    }
    ensure_flat(&memory)?;
    ensure!(changes.rejected * 2 < changes.sent, "most changes were rejected");
    print_progress("All objects are deleted");
    changes.delete_all().await?;
    let deadline = Instant::now() + FORGOTTEN_WITHIN;
    loop {
        let held = Held::now(&started).await?;
        if held.leftovers(&before).is_empty() {
            println!("{:>24}  {held}", "in the end");
            return started.process.stop();
        }
        ensure!(Instant::now() < deadline, "left behind: {}", held.leftovers(&before).join(", "));
        sleep(Duration::from_secs(1)).await;
    }
}

/// What the operator holds.
struct Held {
    usage: Usage,
    /// Gauges of its metrics, in the order of [`Held::GAUGES`].
    gauges: [i64; 3],
}

impl Held {
    const GAUGES: [&str; 3] = ["subscriptions", "delayed", "tasks"];
    const TASKS: usize = 2;
    const TITLE: &str = "memory MB  allocated MB  subscriptions  delayed  tasks";

    async fn now(started: &Started) -> Result<Self> {
        let mut gauges = [0; 3];
        for (gauge, name) in gauges.iter_mut().zip(Self::GAUGES) {
            *gauge = started.gauge(name).await?;
        }
        Ok(Self { usage: Usage::of(started.process.pid())?, gauges })
    }

    /// The gauges that are higher than they were before.
    fn leftovers(&self, before: &Self) -> Vec<String> {
        let gauges = self.gauges.iter().zip(before.gauges).zip(Self::GAUGES);
        let higher = gauges.filter(|((now, before), _)| *now > before);
        higher.map(|((now, before), name)| format!("{name} {now}, before {before}")).collect()
    }
}

impl std::fmt::Display for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Usage { memory, allocated, .. } = self.usage;
        let [subscriptions, delayed, tasks] = self.gauges;
        let (memory, allocated) = (memory as f64 / 1e6, allocated as f64 / 1e6);
        write!(f, "{memory:>9.1}  {allocated:>12.1}  {subscriptions:>13}  {delayed:>7}  {tasks:>5}")
    }
}

/// A user who changes one object after another.
struct Changes {
    servers: Objects,
    oidc: Objects,
    tools: Objects,
    /// How many changes there were, and how many of these the API server rejected or did not receive: it restarts, and some are
    /// for objects that do not exist.
    sent: u64,
    rejected: u64,
}

impl Changes {
    fn new(client: Client, namespace: &str) -> Self {
        let objects =
            |kind: ApiResource| Objects { api: Api::namespaced_with(client.clone(), namespace, &kind), kind };
        Self {
            servers: objects(ApiResource::erase::<MCPServer>(&())),
            oidc: objects(ApiResource::erase::<MCPOIDCConfig>(&())),
            tools: objects(ApiResource::erase::<MCPToolConfig>(&())),
            sent: 0,
            rejected: 0,
        }
    }

    async fn go_on_for(&mut self, time: Duration) {
        let end = Instant::now() + time;
        let mut pauses = interval(PAUSE);
        pauses.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while Instant::now() < end {
            pauses.tick().await;
            self.sent += 1;
            self.rejected += u64::from(self.change().await.is_err());
        }
    }

    /// One change.
    async fn change(&self) -> kube::Result<()> {
        let number = self.sent;
        let config = format!("config-{}", number % CONFIGS);
        let server = format!("server-{}", number % SERVERS);
        match number % 10 {
            0 => {
                let issuer = format!("https://issuer-{number}.example");
                self.oidc.write(&config, json!({"type": "inline", "inline": {"issuer": issuer}})).await
            }
            1 => self.tools.write(&config, json!({"toolsFilter": [format!("tool-{number}")]})).await,
            // Blocked while servers refer to it; then its next version is written over the one that is being deleted.
            2 if number.is_multiple_of(3) => self.oidc.delete(&config).await,
            3 => self.servers.delete(&server).await,
            4 | 5 => {
                let oidc = json!({"name": config, "audience": server});
                self.servers.change(&server, json!({"oidcConfigRef": oidc, "toolConfigRef": null})).await
            }
            6 => {
                let tools = json!({"name": "config-that-does-not-exist"});
                self.servers.change(&server, json!({"oidcConfigRef": null, "toolConfigRef": tools})).await
            }
            _ => {
                let image = format!("registry.example/mcp:{number}");
                let env = json!([{"name": "NUMBER", "value": number.to_string()}]);
                self.servers.write(&server, json!({"image": image, "transport": "stdio", "env": env})).await
            }
        }
    }

    async fn delete_all(&self) -> Result<()> {
        let deadline = Instant::now() + FORGOTTEN_WITHIN;
        for objects in [&self.servers, &self.oidc, &self.tools] {
            objects.api.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
        }
        for objects in [&self.servers, &self.oidc, &self.tools] {
            while !objects.api.list_metadata(&ListParams::default()).await?.items.is_empty() {
                ensure!(
                    Instant::now() < deadline,
                    "objects still exist {FORGOTTEN_WITHIN:?} after their deletion"
                );
                sleep(Duration::from_millis(500)).await;
            }
        }
        Ok(())
    }
}

/// The objects of a kind.
struct Objects {
    api: Api<DynamicObject>,
    kind: ApiResource,
}

impl Objects {
    /// Creates an object, or gives an existing one this spec.
    async fn write(&self, name: &str, spec: Value) -> kube::Result<()> {
        match self.change(name, spec.clone()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {
                let object = DynamicObject::new(name, &self.kind).data(json!({"spec": spec}));
                self.api.create(&PostParams::default(), &object).await.map(drop)
            }
            result => result,
        }
    }

    async fn change(&self, name: &str, spec: Value) -> kube::Result<()> {
        let patch = Patch::Merge(json!({"spec": spec}));
        self.api.patch(name, &PatchParams::default(), &patch).await.map(drop)
    }

    async fn delete(&self, name: &str) -> kube::Result<()> {
        self.api.delete(name, &DeleteParams::default()).await.map(drop)
    }
}
