//! The steps of docs/migrating-from-toolhive.md under load: with ToolHive's own operator, proxies and charts, or with what they left.

mod cluster;
mod program;
mod recording;
mod toolhive;

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Instant,
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{
    Args,
    call::{Caller, Calling, Load},
    cases::{print_result, url},
    helm::Helm,
    kubectl::ready,
    manifests::{SYSTEM, USERS},
    node::Node,
    stopwatch::{print_elapsed, until},
};

use cluster::Cluster;
use program::Program;
use recording::Recording;
use toolhive::{Calls, Proxy, Toolhive};

/// Runs all steps.
pub(crate) fn run(args: &Args, folder: &Path) -> Result<ExitCode> {
    let begin = Instant::now();
    let node = Node::start(args, folder)?;
    let toolhive: Box<dyn Toolhive> = match (&args.toolhive, &args.recording) {
        (Some(sources), _) => Box::new(Program::new(sources, &node)?),
        (None, recording) => {
            Box::new(Recording::new(recording.as_deref().context("no recording is named")?, &node)?)
        }
    };
    let migration = Migration::new(args, &node, toolhive)?;
    print_elapsed(begin, "the node is ready, with its images");
    let passed = migration.run_all(&node)?;
    print_elapsed(begin, if passed { "all steps passed" } else { "a step failed" });
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

struct Migration<'a> {
    cluster: Cluster<'a>,
    toolhive: Box<dyn Toolhive + 'a>,
    /// The program that an administrator runs.
    skep: PathBuf,
}

/// A step of a migration.
type Step<'a> = fn(&Migration<'a>) -> Result<()>;

/// The load on all proxies that can be called.
struct AllLoad(Vec<(&'static str, Calling)>);

impl<'a> Migration<'a> {
    fn new(args: &'a Args, node: &'a Node<'a>, toolhive: Box<dyn Toolhive + 'a>) -> Result<Self> {
        let cluster = Cluster {
            kubectl: &node.kubectl,
            helm: Helm { program: &args.helm, kubeconfig: &node.kubectl.kubeconfig },
            caller: Caller::new(args, Vec::new())?,
        };
        Ok(Self { cluster, toolhive, skep: env::current_exe()?.with_file_name("skep") })
    }

    /// Runs the steps one after the other, and returns whether all passed.
    fn run_all(&self, node: &Node<'_>) -> Result<bool> {
        let steps: [(&str, Step<'a>); 7] = [
            ("ToolHive's operator runs servers", Self::install_toolhive),
            ("`skep plan` replaces no pod", Self::plan),
            ("`skep operator --observe` writes nothing", Self::observe),
            ("the switch replaces no pod and loses no call", Self::switch_to_skep),
            ("the switch back replaces no pod and loses no call", Self::switch_back),
            ("the second switch does neither", Self::switch_to_skep),
            ("each proxy is replaced by skep's", Self::replace_proxies),
        ];
        for (name, step) in steps {
            let begin = Instant::now();
            let result = step(self).and_then(|()| node.check());
            if !print_result(name, begin, &result) {
                self.print_diagnosis();
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn install_toolhive(&self) -> Result<()> {
        self.toolhive.install(&self.cluster)
    }

    fn plan(&self) -> Result<()> {
        let (code, plan) = self.planned()?;
        ensure!(code == Some(2), "exit code {code:?}:\n{plan}");
        ensure!(plan.contains("No pod is replaced. Nothing was written."), "{plan}");
        for Proxy { name, .. } in self.toolhive.proxies() {
            ensure!(plan.contains(&format!("take-over Deployment {name} (from thv-operator)")), "{plan}");
        }
        Ok(())
    }

    /// The exit code of `skep plan`, and what it prints.
    fn planned(&self) -> Result<(Option<i32>, String)> {
        let output = Command::new(&self.skep)
            .args(["plan", "-A"])
            .env("KUBECONFIG", &self.cluster.kubectl.kubeconfig)
            .env("TOOLHIVE_RUNNER_IMAGE", &self.toolhive.images().runner)
            .env("VMCP_IMAGE", &self.toolhive.images().vmcp)
            .output()
            .context("cannot start skep")?;
        let text = [output.stdout, output.stderr].concat();
        Ok((output.status.code(), String::from_utf8_lossy(&text).into_owned()))
    }

    fn observe(&self) -> Result<()> {
        let before = self.versions()?;
        self.install_skep(&["operator.observe=true"])?;
        until("it has observed every server", || {
            let log = self.cluster.kubectl.run(&["logs", "-n", SYSTEM, "deployment/skep"])?;
            let is_seen = |name: &str| {
                log.lines()
                    .any(|line| line.contains("observed") && line.contains(&format!("\"name\":\"{name}\"")))
            };
            Ok(self.toolhive.proxies().iter().all(|proxy| is_seen(proxy.name)).then_some(()))
        })?;
        ensure!(self.versions()? == before, "children were written");
        Ok(())
    }

    /// skep with ToolHive's images, as the docs set them.
    fn install_skep(&self, more: &[&str]) -> Result<()> {
        let images = self.toolhive.images();
        let runner = format!("operator.toolhiveRunnerImage={}", images.runner);
        let vmcp = format!("operator.vmcpImage={}", images.vmcp);
        let values = [&runner, &vmcp, "operator.quickProxies=false"];
        self.cluster.helm.upgrade("skep", &[&values[..], more].concat())
    }

    fn switch_to_skep(&self) -> Result<()> {
        let (pods, load) = (self.pods()?, self.load()?);
        self.toolhive.stop(&self.cluster)?;
        self.cluster.helm.upgrade("skep-crds", &["--take-ownership"])?;
        self.install_skep(&["operator.observe=false"])?;
        self.cluster.scale(SYSTEM, "deployment/skep", 1)?;
        until("there is nothing left to do", || {
            let (code, plan) = self.planned()?;
            ensure!(code == Some(0), "exit code {code:?}:\n{plan}");
            Ok(Some(()))
        })?;
        load.check_nothing_lost()?;
        self.check_same(&pods)
    }

    fn switch_back(&self) -> Result<()> {
        let (pods, load) = (self.pods()?, self.load()?);
        self.cluster.scale(SYSTEM, "deployment/skep", 0)?;
        self.toolhive.start(&self.cluster)?;
        load.check_nothing_lost()?;
        self.check_same(&pods)
    }

    /// Each is replaced once. Sessions that only ToolHive's proxies know end with them.
    fn replace_proxies(&self) -> Result<()> {
        let load = self.load()?;
        let image = skep_operator::settings::DEFAULT_PROXY_IMAGE;
        self.install_skep(&["operator.toolhiveRunnerImage=", "operator.quickProxies=true"])?;
        for Proxy { name, .. } in self.toolhive.proxies() {
            self.cluster.wait_for_pods(name, |live| {
                live["spec"]["template"]["spec"]["containers"][0]["image"] == image
            })?;
        }
        for (name, load) in load.0 {
            let Load { fresh, kept } = load.ended()?;
            println!(
                "            {name}: {} calls in sessions of their own, {} failed; {} in one session, {} failed",
                fresh.calls,
                fresh.failures.len(),
                kept.calls,
                kept.failures.len()
            );
        }
        self.toolhive.proxies().iter().try_for_each(|proxy| self.cluster.wait_until_ready(*proxy))
    }

    fn load(&self) -> Result<AllLoad> {
        let called = self.toolhive.proxies().iter().filter(|proxy| proxy.calls == Calls::Continuous);
        let start = |proxy: &Proxy| {
            let url = url(proxy.name, proxy.transport);
            Ok((proxy.name, self.cluster.caller.load(&url)?))
        };
        Ok(AllLoad(called.map(start).collect::<Result<_>>()?))
    }

    /// The pods of servers and proxies, with how often their containers were started.
    fn pods(&self) -> Result<Vec<(String, u64)>> {
        let pods = self.cluster.kubectl.list(&["pods", "-n", USERS])?;
        let described = |pod: &Value| {
            let restarts = pod.pointer("/status/containerStatuses/0/restartCount").and_then(Value::as_u64);
            (
                format!("{} {}", text(pod, "/metadata/name"), text(pod, "/metadata/uid")),
                restarts.unwrap_or_default(),
            )
        };
        let is_kept = |pod: &&Value| {
            let name = text(pod, "/metadata/name");
            self.toolhive.proxies().iter().any(|proxy| name.starts_with(proxy.name))
        };
        let mut all: Vec<_> = pods.iter().filter(is_kept).filter(|pod| ready(pod)).map(described).collect();
        all.sort();
        Ok(all)
    }

    fn check_same(&self, before: &[(String, u64)]) -> Result<()> {
        let pods = self.pods()?;
        ensure!(pods == before, "pods changed: {before:?}, and now {pods:?}");
        Ok(())
    }

    /// The children, by the versions of their specs: reports of their status are no writes of an operator.
    fn versions(&self) -> Result<Vec<(String, Value)>> {
        let kinds = "deployments,statefulsets,services,configmaps,serviceaccounts,roles,rolebindings";
        let version = |one: Value| {
            let fields = one["metadata"]["managedFields"].as_array().map(Vec::len);
            (
                text(&one, "/metadata/name").to_owned(),
                serde_json::json!([one["metadata"]["generation"], fields]),
            )
        };
        Ok(self
            .cluster
            .kubectl
            .list(&[kinds, "-n", USERS, "--show-managed-fields"])?
            .into_iter()
            .map(version)
            .collect())
    }

    fn print_diagnosis(&self) {
        for args in [
            &["get", "mcpservers,mcpremoteproxies,all", "-A", "-o", "wide"][..],
            &["get", "events", "-A", "--sort-by=.lastTimestamp"],
            &["logs", "-n", SYSTEM, "deployment/skep", "--tail=30"],
        ] {
            println!("--- kubectl {}", args.join(" "));
            println!("{}", self.cluster.kubectl.run(args).unwrap_or_else(|error| format!("{error:#}")));
        }
        let log = self.toolhive.log(&self.cluster).unwrap_or_else(|error| format!("{error:#}"));
        println!("--- ToolHive's operator\n{log}");
    }
}

impl AllLoad {
    fn check_nothing_lost(self) -> Result<()> {
        for (name, load) in self.0 {
            let Load { fresh, kept } = load.ended()?;
            ensure!(
                fresh.failures.is_empty() && kept.failures.is_empty(),
                "calls of {name} were lost: {fresh:?}, {kept:?}"
            );
            ensure!(fresh.calls > 0 && kept.calls > 0, "{name} was not called");
            println!("            {name}: {} calls, none lost", fresh.calls + kept.calls);
        }
        Ok(())
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
