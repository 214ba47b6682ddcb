//! The steps of docs/migrating-from-toolhive.md, with ToolHive's own operator, proxies and charts, under load.

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
    kubectl::{Kubectl, ready},
    manifests::{self, SYSTEM, USERS},
    node::Node,
    stopwatch::{print_elapsed, until},
};

/// Where ToolHive's operator runs.
const TOOLHIVE: &str = "toolhive-system";
const OPERATOR: &str = "deployment/toolhive-operator";
/// The servers, with their transports. Clients of streamable HTTP call the first two all the time.
const SERVERS: [(&str, &str); 3] = [("web", "streamable-http"), ("local", "stdio"), ("events", "sse")];
const CALLED: usize = 2;

/// Runs all steps.
pub(crate) fn run(args: &Args, folder: &Path) -> Result<ExitCode> {
    let begin = Instant::now();
    let node = Node::start(args, folder)?;
    for image in ["thv-operator", "thv-proxyrunner"] {
        node.import(image)?;
    }
    let migration = Migration::new(args, &node)?;
    print_elapsed(begin, "the node is ready, with its images");
    let passed = migration.run_all(&node)?;
    print_elapsed(begin, if passed { "all steps passed" } else { "a step failed" });
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

struct Migration<'a> {
    kubectl: &'a Kubectl,
    helm: Helm<'a>,
    caller: Caller<'a>,
    /// The program that an administrator runs.
    skep: PathBuf,
    /// The sources of ToolHive.
    toolhive: &'a Path,
    /// ToolHive's images, as the docs name them.
    runner: String,
    vmcp: String,
}

/// A step of a migration.
type Step<'a> = fn(&Migration<'a>) -> Result<()>;

/// The load on all servers.
struct AllLoad(Vec<(&'static str, Calling)>);

impl<'a> Migration<'a> {
    fn new(args: &'a Args, node: &'a Node<'a>) -> Result<Self> {
        let toolhive = args.toolhive.as_deref().context("ToolHive's sources are not named")?;
        // A module's folder ends with its version.
        let version =
            toolhive.to_str().and_then(|path| path.rsplit_once('@')).context("no version of ToolHive")?.1;
        let image = |name: &str| format!("ghcr.io/stacklok/toolhive/{name}:{version}");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("client.mjs");
        Ok(Self {
            kubectl: &node.kubectl,
            helm: Helm { program: &args.helm, kubeconfig: &node.kubectl.kubeconfig },
            caller: Caller { sdk: &args.sdk, script, from: Vec::new() },
            skep: env::current_exe()?.with_file_name("skep"),
            toolhive,
            runner: image("proxyrunner"),
            vmcp: image("vmcp"),
        })
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
        let chart = |name: &str| self.toolhive.join("deploy/charts").join(name);
        self.helm.install("toolhive-operator-crds", &chart("operator-crds"), TOOLHIVE, &[])?;
        self.helm.install("toolhive-operator", &chart("operator"), TOOLHIVE, &[])?;
        for (name, transport) in SERVERS {
            self.kubectl.apply(&[manifests::server(name, transport)])?;
        }
        SERVERS.into_iter().try_for_each(|(name, transport)| self.wait_until_ready(name, transport))
    }

    fn wait_until_ready(&self, name: &str, transport: &str) -> Result<()> {
        self.kubectl.wait(&["mcpserver", name, "-n", USERS], |live| {
            ["Ready", "Running"].contains(&live["status"]["phase"].as_str().unwrap_or_default())
        })?;
        self.caller.echo_until_response(&url(name, transport), transport)?.response_time().map(drop)
    }

    fn plan(&self) -> Result<()> {
        let (code, plan) = self.planned()?;
        ensure!(code == Some(2), "exit code {code:?}:\n{plan}");
        ensure!(plan.contains("No pod is replaced. Nothing was written."), "{plan}");
        ensure!(plan.contains("take-over Deployment web (from thv-operator)"), "{plan}");
        Ok(())
    }

    /// The exit code of `skep plan`, and what it prints.
    fn planned(&self) -> Result<(Option<i32>, String)> {
        let output = Command::new(&self.skep)
            .args(["plan", "-A"])
            .env("KUBECONFIG", &self.kubectl.kubeconfig)
            .env("TOOLHIVE_RUNNER_IMAGE", &self.runner)
            .env("VMCP_IMAGE", &self.vmcp)
            .output()
            .context("cannot start skep")?;
        let text = [output.stdout, output.stderr].concat();
        Ok((output.status.code(), String::from_utf8_lossy(&text).into_owned()))
    }

    fn observe(&self) -> Result<()> {
        let before = self.versions()?;
        self.install_skep(&["operator.observe=true"])?;
        until("it has observed every server", || {
            let log = self.kubectl.run(&["logs", "-n", SYSTEM, "deployment/skep"])?;
            let is_seen = |name: &str| {
                log.lines()
                    .any(|line| line.contains("observed") && line.contains(&format!("\"name\":\"{name}\"")))
            };
            Ok(SERVERS.into_iter().all(|(name, _)| is_seen(name)).then_some(()))
        })?;
        ensure!(self.versions()? == before, "children were written");
        Ok(())
    }

    /// skep with ToolHive's images, as the docs set them.
    fn install_skep(&self, more: &[&str]) -> Result<()> {
        let runner = format!("operator.toolhiveRunnerImage={}", self.runner);
        let vmcp = format!("operator.vmcpImage={}", self.vmcp);
        let values = [&runner, &vmcp, "operator.quickProxies=false"];
        self.helm.upgrade("skep", &[&values[..], more].concat())
    }

    fn switch_to_skep(&self) -> Result<()> {
        let (pods, load) = (self.pods()?, self.load()?);
        self.scale(TOOLHIVE, OPERATOR, 0)?;
        self.helm.upgrade("skep-crds", &["--take-ownership"])?;
        self.install_skep(&["operator.observe=false"])?;
        self.scale(SYSTEM, "deployment/skep", 1)?;
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
        self.scale(SYSTEM, "deployment/skep", 0)?;
        self.scale(TOOLHIVE, OPERATOR, 1)?;
        // Once it serves a new one, it has seen the others.
        self.kubectl.apply(&[manifests::server("late", "streamable-http")])?;
        self.wait_until_ready("late", "streamable-http")?;
        self.kubectl.run(&["delete", "mcpserver", "late", "-n", USERS, "--wait"])?;
        load.check_nothing_lost()?;
        self.check_same(&pods)
    }

    /// Each is replaced once. Sessions that only ToolHive's proxies know end with them.
    fn replace_proxies(&self) -> Result<()> {
        let load = self.load()?;
        let image = skep_operator::settings::DEFAULT_PROXY_IMAGE;
        self.install_skep(&["operator.toolhiveRunnerImage=", "operator.quickProxies=true"])?;
        for (name, _) in SERVERS {
            self.kubectl.wait(&["deployment", name, "-n", USERS], |live| {
                let (spec, status) = (&live["spec"], &live["status"]);
                spec["template"]["spec"]["containers"][0]["image"] == image
                    && status["updatedReplicas"] == spec["replicas"]
                    && status["replicas"] == spec["replicas"]
                    && status["readyReplicas"] == spec["replicas"]
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
        SERVERS
            .into_iter()
            .try_for_each(|(name, transport)| self.caller.echo(&url(name, transport), transport))
    }

    fn scale(&self, namespace: &str, deployment: &str, replicas: u32) -> Result<()> {
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

    fn load(&self) -> Result<AllLoad> {
        let start = |(name, transport)| Ok((name, self.caller.load(&url(name, transport))?));
        Ok(AllLoad(SERVERS.into_iter().take(CALLED).map(start).collect::<Result<_>>()?))
    }

    /// The pods of servers and proxies, with how often their containers were started.
    fn pods(&self) -> Result<Vec<(String, u64)>> {
        let pods = self.kubectl.list(&["pods", "-n", USERS])?;
        let described = |pod: &Value| {
            let restarts = pod.pointer("/status/containerStatuses/0/restartCount").and_then(Value::as_u64);
            (
                format!("{} {}", text(pod, "/metadata/name"), text(pod, "/metadata/uid")),
                restarts.unwrap_or_default(),
            )
        };
        let is_kept =
            |pod: &&Value| SERVERS.iter().any(|(name, _)| text(pod, "/metadata/name").starts_with(name));
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
            &["logs", "-n", TOOLHIVE, OPERATOR, "--tail=30"],
        ] {
            println!("--- kubectl {}", args.join(" "));
            println!("{}", self.kubectl.run(args).unwrap_or_else(|error| format!("{error:#}")));
        }
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
