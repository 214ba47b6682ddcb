//! The promises to users, one function each.

mod browsed;
mod deletion;
mod guarded;
mod installed;
mod login;
mod recovery;
mod rollout;
mod run;
mod scale;
mod seen;
mod transports;
mod virtual_server;

use std::{fs, path::Path, process::ExitCode, time::Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{
    Args,
    call::Caller,
    helm::Helm,
    kubectl::{Kubectl, ready},
    manifests::{self, SYSTEM, USERS},
    node::Node,
    nodes::Shared,
    podman::Podman,
    stopwatch::print_elapsed,
};

/// What a case uses.
struct Cluster<'a> {
    kubectl: &'a Kubectl,
    caller: Caller<'a>,
    node: &'a Node<'a>,
    helm: Helm<'a>,
    browser: Browser<'a>,
    /// The objects of the namespace for users before anything was installed.
    before: Vec<String>,
}

/// A browser, and what drives it.
struct Browser<'a> {
    modules: &'a Path,
    chromium: &'a Path,
    /// Where screenshots are written, if they are wanted.
    screenshots: Option<&'a Path>,
    /// How many further servers it is shown.
    servers: usize,
}

impl Cluster<'_> {
    /// Kills the process of a pod's first container, as a crash would; the kubelet starts it again.
    fn crash(&self, pod: &str) -> Result<()> {
        let live = self.kubectl.get(&["pod", pod, "-n", USERS])?;
        let id = text(&live, "/status/containerStatuses/0/containerID")?;
        self.node.ctr(&["tasks", "kill", "--signal", "SIGKILL", id.trim_start_matches("containerd://")])
    }
}

/// What cases create.
const KINDS: &str = "virtualmcpservers,mcpservers,mcpremoteproxies,mcpserverentries,mcpgroups,mcpoidcconfigs,mcpexternalauthconfigs,secrets";

type Case = fn(&Cluster<'_>) -> Result<()>;

macro_rules! cases {
    ($type:ty; $($file:ident: $($case:ident),+;)+) => { [$($((stringify!($case), $file::$case as $type),)+)+] };
}

/// In this order. The last removes what the others need.
const CASES: &[(&str, Case)] = &cases! { Case;
    transports: a_stdio_server_responds, an_sse_server_responds, a_streamable_http_server_responds, a_remote_server_responds,
        a_server_that_does_not_speak_mcp_is_not_ready;
    guarded: only_a_token_for_the_server_is_accepted, a_policy_denies_what_it_does_not_permit;
    login: users_log_in_and_stay_logged_in_when_the_proxy_is_replaced;
    recovery: a_killed_proxy_is_replaced, the_proxy_attaches_to_a_recreated_stdio_server,
        the_proxy_attaches_to_a_restarted_stdio_server, a_proxy_that_cannot_start_reports_the_reason,
        a_drained_node_loses_nothing;
    rollout: an_older_proxy_does_not_undo_a_newer_one, a_change_under_load_loses_no_request;
    scale: kubectl_scale_changes_the_replicas, an_autoscaler_changes_the_replicas;
    virtual_server: a_virtual_server_follows_its_group_under_load, a_virtual_server_is_replaced_under_load,
        tools_are_searched_and_called_by_workflows_and_scripts;
    seen: the_plugin_of_kubectl_shows_and_calls_a_server, the_console_shows_servers_to_those_who_may_get_them;
    browsed: a_browser_shows_servers_as_they_are;
    deletion: a_deleted_server_leaves_nothing;
    installed: an_operator_upgrade_interrupts_nothing, an_uninstall_leaves_nothing;
};

type PodmanCase = fn(&Podman<'_>) -> Result<()>;

/// Those that need Podman, and no cluster.
const PODMAN_CASES: &[(&str, PodmanCase)] = &cases! { PodmanCase;
    run: skep_run_runs_images_with_podman, podman_keeps_nothing_of_a_killed_skep_run;
};

/// How many cases there are.
pub(crate) fn count() -> usize {
    CASES.len() + PODMAN_CASES.len()
}

/// Runs the cases one after the other, and starts what they need.
pub(crate) fn run(args: &Args, folder: &Path) -> Result<ExitCode> {
    let part = args.only.as_deref().unwrap_or_default();
    let begin = Instant::now();
    let podman: Vec<_> = PODMAN_CASES.iter().copied().filter(|(name, _)| name.contains(part)).collect();
    let cluster: Vec<_> = CASES.iter().copied().filter(|(name, _)| name.contains(part)).collect();
    ensure!(!podman.is_empty() || !cluster.is_empty(), "no case has {part:?} in its name: see e2e/README.md");
    let mut results = Results { shared: Shared(args.shared.clone()), all: 0, passed: 0 };
    // Podman is started by the node that has the first of its cases.
    if podman.first().is_some_and(|(name, _)| results.shared.claim(name)) {
        with_podman(args, folder, &podman, &mut results)?;
    }
    if !cluster.is_empty() {
        with_cluster(args, folder, &cluster, &mut results)?;
    }
    if args.shared.is_none() {
        print_elapsed(begin, &format!("{} of {} cases passed", results.passed, results.all));
    }
    Ok(if results.passed == results.all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// How many cases have run on this node, how many of them have passed, and what other nodes see of that.
struct Results {
    shared: Shared,
    all: usize,
    passed: usize,
}

impl Results {
    /// Prints how a case ended, and returns whether it passed.
    fn add(&mut self, name: &str, begin: Instant, result: &Result<()>) -> Result<bool> {
        let passed = print_result(name, begin, result);
        self.all += 1;
        if passed {
            self.passed += 1;
            self.shared.pass(name)?;
        }
        Ok(passed)
    }
}

/// Prints how a case ended, and returns whether it passed.
pub(crate) fn print_result(name: &str, begin: Instant, result: &Result<()>) -> bool {
    let seconds = begin.elapsed().as_secs_f64();
    match result {
        Ok(()) => println!("ok      {seconds:5.1} s  {name}"),
        Err(error) => println!("FAILED  {seconds:5.1} s  {name}\n{error:#}"),
    }
    result.is_ok()
}

/// Starts Podman for cases, and runs them.
fn with_podman(
    args: &Args,
    folder: &Path,
    chosen: &[(&str, PodmanCase)],
    results: &mut Results,
) -> Result<()> {
    let begin = Instant::now();
    let podman = Podman::start(args, folder, "server-everything")?;
    print_elapsed(begin, "Podman is ready, with its image");
    for (name, case) in chosen {
        let begin = Instant::now();
        results.add(name, begin, &case(&podman))?;
    }
    Ok(())
}

/// Starts the node for cases, and runs those that no other node has begun.
fn with_cluster(args: &Args, folder: &Path, chosen: &[(&str, Case)], results: &mut Results) -> Result<()> {
    let begin = Instant::now();
    let node = Node::start(args, folder)?;
    print_elapsed(begin, "the node is ready, with its images");
    let kubectl = &node.kubectl;
    // Both are created a moment after their namespace, and pods are rejected before.
    for what in ["serviceaccount/default", "configmap/kube-root-ca.crt"] {
        kubectl.wait(&[what, "-n", USERS], |_| true)?;
    }
    let mut cluster = Cluster {
        kubectl,
        caller: Caller::new(args, Vec::new())?,
        node: &node,
        helm: Helm { program: &args.helm, kubeconfig: &kubectl.kubeconfig },
        browser: Browser {
            modules: &args.browser,
            chromium: &args.chromium,
            screenshots: args.screenshots.as_deref(),
            servers: args.servers,
        },
        before: Vec::new(),
    };
    cluster.before = everything(&cluster)?;
    if let Err(error) = install(&cluster) {
        print_diagnosis(kubectl);
        return Err(error);
    }
    print_elapsed(begin, "the operator is ready");
    for (name, case) in chosen {
        if !results.shared.claim(name) {
            continue;
        }
        let begin = Instant::now();
        let result = case(&cluster).and_then(|()| node.check());
        if !results.add(name, begin, &result)? {
            print_diagnosis(kubectl);
        }
        // The next case starts with an empty cluster. After the last one, the kind no longer exists.
        if kubectl.run(&["get", "crd", "mcpservers.toolhive.stacklok.dev"]).is_ok() {
            kubectl.run(&["delete", KINDS, "--all", "-n", USERS, "--wait"])?;
        }
    }
    Ok(())
}

/// Installs the charts as they are, and measures how long any pod takes here.
fn install(cluster: &Cluster<'_>) -> Result<()> {
    let begin = Instant::now();
    cluster.kubectl.apply(&[manifests::empty_pod()])?;
    cluster.kubectl.wait(&["pod", "empty", "-n", USERS], ready)?;
    // The first cases measure the same for servers. Other nodes beside this one make both longer.
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    print_elapsed(begin, &format!("from kubectl apply until an empty pod is ready (load average {load})"));
    cluster.kubectl.run(&["delete", "pod", "empty", "-n", USERS])?;
    cluster.helm.upgrade("skep-crds", &["crds.keep=false"])?;
    cluster.helm.upgrade("skep", &[])?;
    // The first kubectl command is slow, because it discovers the API.
    cluster.kubectl.run(&["get", "mcpservers", "-A"]).map(drop)
}

/// The objects of the namespace for users, by kind and name.
fn everything(cluster: &Cluster<'_>) -> Result<Vec<String>> {
    let kinds = "deployments,statefulsets,replicasets,pods,services,configmaps,secrets,serviceaccounts,roles,rolebindings";
    let name = |one: Value| format!("{} {}", one["kind"], one["metadata"]["name"]);
    let mut names: Vec<_> = cluster.kubectl.list(&[kinds, "-n", USERS])?.into_iter().map(name).collect();
    names.sort();
    Ok(names)
}

/// Creates a server and waits until it responds.
fn create_server(cluster: &Cluster<'_>, name: &str, transport: &str) -> Result<Value> {
    cluster.kubectl.apply(&[manifests::server(name, transport)])?;
    let live = server_ready(cluster, name)?;
    cluster.caller.echo_until_response(&url(name, transport), transport)?.response_time()?;
    Ok(live)
}

fn server_ready(cluster: &Cluster<'_>, name: &str) -> Result<Value> {
    cluster.kubectl.wait(&["mcpserver", name, "-n", USERS], |live| live["status"]["phase"] == "Ready")
}

/// The URL of a server. A stdio server is offered with its `proxyMode`, which is streamable HTTP.
pub(crate) fn url(name: &str, transport: &str) -> String {
    let path = if transport == "sse" { "sse" } else { "mcp" };
    format!("http://mcp-{name}-proxy.{USERS}.svc.cluster.local:8080/{path}")
}

fn uid(cluster: &Cluster<'_>, pod: &str) -> Result<Value> {
    Ok(cluster.kubectl.get(&["pod", pod, "-n", USERS])?["metadata"]["uid"].take())
}

/// The pods of the proxy in front of a server: those of a Deployment.
fn proxy_pods(cluster: &Cluster<'_>, name: &str) -> Result<Vec<Value>> {
    let prefix = format!("{name}-");
    let is = |pod: &Value| {
        let meta = &pod["metadata"];
        meta["ownerReferences"][0]["kind"] == "ReplicaSet"
            && meta["name"].as_str().is_some_and(|name| name.starts_with(&prefix))
    };
    Ok(cluster.kubectl.list(&["pods", "-n", USERS])?.into_iter().filter(is).collect())
}

fn only(mut pods: Vec<Value>) -> Result<Value> {
    ensure!(pods.len() == 1, "there are {} proxies", pods.len());
    pods.pop().context("no proxy exists")
}

fn text<'a>(object: &'a Value, pointer: &str) -> Result<&'a str> {
    object.pointer(pointer).and_then(Value::as_str).with_context(|| format!("{pointer} is missing"))
}

/// Prints what helps to find the cause of a failure.
fn print_diagnosis(kubectl: &Kubectl) {
    for args in [
        &["get", &format!("{KINDS},all"), "-A", "-o", "wide"][..],
        &["get", "events", "-A", "--sort-by=.lastTimestamp"],
        &["logs", "-n", SYSTEM, "deployment/skep", "--tail=30"],
    ] {
        show(kubectl, args);
    }
    for pod in kubectl.list(&["pods", "-n", USERS]).unwrap_or_default() {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        show(kubectl, &["logs", "-n", USERS, name, "--tail=30"]);
    }
}

fn show(kubectl: &Kubectl, args: &[&str]) {
    println!("--- kubectl {}", args.join(" "));
    println!("{}", kubectl.run(args).unwrap_or_else(|error| format!("{error:#}")));
}
