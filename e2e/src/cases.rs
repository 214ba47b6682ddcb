//! What users are promised, one function each.

use std::{
    path::Path,
    process::{Command, ExitCode},
    time::{Instant, SystemTime},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{
    Args,
    call::Caller,
    kubectl::Kubectl,
    manifests::{self, SYSTEM, USERS},
    node::Node,
    stopwatch::{say, until},
};

/// What a case works with.
struct Cluster<'a> {
    kubectl: &'a Kubectl,
    caller: Caller<'a>,
    node: &'a Node<'a>,
}

impl Cluster<'_> {
    /// Kills the process of a pod's first container, as a crash would; the kubelet starts it again.
    fn crash(&self, pod: &str) -> Result<()> {
        let live = self.kubectl.get(&["pod", pod, "-n", USERS])?;
        let id = text(&live, "/status/containerStatuses/0/containerID")?;
        self.node.ctr(&["tasks", "kill", "--signal", "SIGKILL", id.trim_start_matches("containerd://")])
    }
}

type Case = fn(&Cluster<'_>) -> Result<()>;

const CASES: [(&str, Case); 9] = [
    ("a_stdio_server_answers", a_stdio_server_answers),
    ("an_sse_server_answers", an_sse_server_answers),
    ("a_streamable_http_server_answers", a_streamable_http_server_answers),
    ("a_remote_server_answers", a_remote_server_answers),
    ("a_proxy_that_is_killed_comes_back", a_proxy_that_is_killed_comes_back),
    (
        "a_stdio_server_that_is_killed_is_attached_to_again",
        a_stdio_server_that_is_killed_is_attached_to_again,
    ),
    ("a_stdio_server_that_crashes_is_attached_to_again", a_stdio_server_that_crashes_is_attached_to_again),
    ("an_older_proxy_does_not_undo_a_newer_one", an_older_proxy_does_not_undo_a_newer_one),
    ("what_is_deleted_leaves_nothing", what_is_deleted_leaves_nothing),
];

/// Starts the node, and runs the cases one after the other.
pub(crate) fn run(args: &Args, folder: &Path) -> Result<ExitCode> {
    let begin = Instant::now();
    let node = Node::start(args, folder, &["pause", "skep", "server-everything"])?;
    say(begin, "the node is ready, with its images");
    let kubectl = &node.kubectl;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("client.mjs");
    let cluster = Cluster { kubectl, caller: Caller { sdk: &args.sdk, script }, node: &node };
    if let Err(error) = install(&cluster, &args.skep) {
        tell(kubectl);
        return Err(error);
    }
    say(begin, "the operator is ready");
    let wanted = |name: &str| args.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    let mut failed = 0;
    for (name, case) in CASES.into_iter().filter(|(name, _)| wanted(name)) {
        let begin = Instant::now();
        let result = case(&cluster).and_then(|()| node.check());
        match result {
            Ok(()) => println!("ok      {:5.1} s  {name}", begin.elapsed().as_secs_f64()),
            Err(error) => {
                failed += 1;
                println!("FAILED  {:5.1} s  {name}\n{error:#}", begin.elapsed().as_secs_f64());
                tell(kubectl);
            }
        }
        // The next begins with nothing.
        kubectl.run(&["delete", "mcpservers,mcpremoteproxies", "--all", "-n", USERS, "--wait"])?;
    }
    say(begin, "all cases were run");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Installs the CRDs and the operator, and measures what any pod takes here.
fn install(cluster: &Cluster<'_>, skep: &Path) -> Result<()> {
    let crds = Command::new(skep).arg("crds").output().context("cannot start skep")?;
    ensure!(crds.status.success(), "skep crds: {}", String::from_utf8_lossy(&crds.stderr));
    cluster.kubectl.apply_text(&crds.stdout)?;
    // It is made a moment after its namespace, and a pod is refused before.
    cluster.kubectl.wait(&["serviceaccount", "default", "-n", USERS], |_| true)?;
    let begin = Instant::now();
    cluster.kubectl.apply(&[manifests::empty_pod()])?;
    cluster.kubectl.wait(&["pod", "empty", "-n", USERS], ready)?;
    say(begin, "from kubectl apply until an empty pod is ready");
    cluster.kubectl.run(&["delete", "pod", "empty", "-n", USERS])?;
    cluster.kubectl.apply(&manifests::operator())?;
    cluster
        .kubectl
        .wait(&["deployment", "skep", "-n", SYSTEM], |live| live["status"]["readyReplicas"] == 1)?;
    Ok(())
}

fn a_stdio_server_answers(cluster: &Cluster<'_>) -> Result<()> {
    answers(cluster, "by-stdio", "stdio")
}

fn an_sse_server_answers(cluster: &Cluster<'_>) -> Result<()> {
    answers(cluster, "by-sse", "sse")
}

fn a_streamable_http_server_answers(cluster: &Cluster<'_>) -> Result<()> {
    answers(cluster, "by-http", "streamable-http")
}

/// Applies a server, with a client that waits for it since before; both its first answer and its status are waited for.
fn answers(cluster: &Cluster<'_>, name: &str, transport: &str) -> Result<()> {
    let url = url(name, transport);
    let calling = cluster.caller.echo_until_answered(&url, transport)?;
    let begin = SystemTime::now();
    cluster.kubectl.apply(&[manifests::server(name, transport)])?;
    let at = calling.answered()?;
    println!(
        "    {:5.1} s  from kubectl apply until the first answer",
        at.duration_since(begin)?.as_secs_f64()
    );
    let live = server_ready(cluster, name)?;
    ensure!(
        live["status"]["url"].as_str().is_some_and(|said| said.starts_with(&url)),
        "its url is {}",
        live["status"]["url"]
    );
    cluster.caller.echo_long(&url, transport)
}

fn a_remote_server_answers(cluster: &Cluster<'_>) -> Result<()> {
    let begin = Instant::now();
    made(cluster, "there", "streamable-http")?;
    say(begin, "until the remote server answers");
    cluster.kubectl.apply(&[manifests::remote("remote", &url("there", "streamable-http"))])?;
    let live = cluster
        .kubectl
        .wait(&["mcpremoteproxy", "remote", "-n", USERS], |live| live["status"]["phase"] == "Ready")?;
    let url = live["status"]["url"].as_str().context("it has no url")?.to_owned();
    cluster.caller.echo_until_answered(&url, "streamable-http")?.answered().map(drop)
}

fn a_proxy_that_is_killed_comes_back(cluster: &Cluster<'_>) -> Result<()> {
    made(cluster, "killed", "stdio")?;
    let before = uid(cluster, "killed-0")?;
    let proxy = only(proxy_pods(cluster, "killed")?)?;
    let name = text(&proxy, "/metadata/name")?;
    cluster.kubectl.run(&["delete", "pod", name, "-n", USERS, "--grace-period=0", "--force"])?;
    cluster.caller.echo_until_answered(&url("killed", "stdio"), "stdio")?.answered()?;
    ensure!(uid(cluster, "killed-0")? == before, "the server was made anew with its proxy");
    Ok(())
}

fn a_stdio_server_that_is_killed_is_attached_to_again(cluster: &Cluster<'_>) -> Result<()> {
    made(cluster, "again", "stdio")?;
    let url = url("again", "stdio");
    let before = uid(cluster, "again-0")?;
    cluster.kubectl.run(&["delete", "pod", "again-0", "-n", USERS, "--grace-period=0", "--force"])?;
    cluster.caller.echo_until_answered(&url, "stdio")?.answered()?;
    ensure!(uid(cluster, "again-0")? != before, "the pod is the same");
    cluster.caller.echo(&url, "stdio")
}

/// The pod stays, and its container is started again.
fn a_stdio_server_that_crashes_is_attached_to_again(cluster: &Cluster<'_>) -> Result<()> {
    made(cluster, "crashes", "stdio")?;
    let url = url("crashes", "stdio");
    let before = uid(cluster, "crashes-0")?;
    cluster.crash("crashes-0")?;
    cluster.caller.echo_until_answered(&url, "stdio")?.answered()?;
    let pod = cluster.kubectl.get(&["pod", "crashes-0", "-n", USERS])?;
    ensure!(pod["metadata"]["uid"] == before, "the pod is another");
    let restarts = &pod["status"]["containerStatuses"][0]["restartCount"];
    ensure!(*restarts == 1, "the server restarted {restarts} times");
    cluster.caller.echo(&url, "stdio")
}

/// The new server never gets ready, so its proxy does not either, and the old proxy stays beside it: then that restarts.
fn an_older_proxy_does_not_undo_a_newer_one(cluster: &Cluster<'_>) -> Result<()> {
    made(cluster, "rolls", "stdio")?;
    let old = only(proxy_pods(cluster, "rolls")?)?;
    let old = text(&old, "/metadata/name")?;
    let image = |image: &str| {
        let mut server = manifests::server("rolls", "stdio");
        server["spec"]["image"] = image.into();
        cluster.kubectl.apply(&[server])
    };
    let nowhere = "localhost/nowhere:e2e";
    image(nowhere)?;
    let runs = |image: &str| {
        let container = "/spec/template/spec/containers/0/image";
        let image = image.to_owned();
        move |live: &Value| live.pointer(container).is_some_and(|live| *live == image)
    };
    let set = ["statefulset", "rolls", "-n", USERS];
    cluster.kubectl.wait(&set, runs(nowhere))?;
    cluster.crash(old)?;
    until("the old proxy starts again and holds back", || {
        let log = cluster.kubectl.run(&["logs", old, "-n", USERS])?;
        Ok(log.contains("newer generation").then_some(()))
    })?;
    let pod = cluster.kubectl.get(&["pod", old, "-n", USERS])?;
    let restarts = &pod["status"]["containerStatuses"][0]["restartCount"];
    ensure!(*restarts == 1, "the old proxy restarted {restarts} times");
    ensure!(runs(nowhere)(&cluster.kubectl.get(&set)?), "the old proxy undid what the new one did");
    // The user sees what is wrong, and mends it.
    image(manifests::EVERYTHING)?;
    cluster.kubectl.wait(&set, runs(manifests::EVERYTHING))?;
    // A StatefulSet does not replace a pod that never got ready: Kubernetes leaves that to its user.
    cluster.kubectl.run(&["delete", "pod", "rolls-0", "-n", USERS, "--ignore-not-found"])?;
    cluster.caller.echo_until_answered(&url("rolls", "stdio"), "stdio")?.answered().map(drop)
}

fn what_is_deleted_leaves_nothing(cluster: &Cluster<'_>) -> Result<()> {
    let kinds = "deployments,statefulsets,replicasets,pods,services,configmaps,secrets,serviceaccounts,roles,rolebindings";
    let names = || -> Result<Vec<String>> {
        let name = |one: Value| format!("{} {}", one["kind"], one["metadata"]["name"]);
        let mut names: Vec<_> = cluster.kubectl.list(&[kinds, "-n", USERS])?.into_iter().map(name).collect();
        names.sort();
        Ok(names)
    };
    let before = until("the cases before are gone", || {
        let before = names()?;
        Ok((!before.iter().any(|name| name.contains("Pod"))).then_some(before))
    })?;
    made(cluster, "short", "stdio")?;
    ensure!(names()? != before, "nothing was made");
    cluster.kubectl.run(&["delete", "mcpserver", "short", "-n", USERS])?;
    until("what the server left", || {
        let after = names()?;
        ensure!(after == before, "there were {before:?}, and there are {after:?}");
        Ok(Some(()))
    })
}

/// Makes a server and waits until it answers.
fn made(cluster: &Cluster<'_>, name: &str, transport: &str) -> Result<Value> {
    cluster.kubectl.apply(&[manifests::server(name, transport)])?;
    let live = server_ready(cluster, name)?;
    cluster.caller.echo_until_answered(&url(name, transport), transport)?.answered()?;
    Ok(live)
}

fn server_ready(cluster: &Cluster<'_>, name: &str) -> Result<Value> {
    cluster.kubectl.wait(&["mcpserver", name, "-n", USERS], |live| live["status"]["phase"] == "Ready")
}

/// Where a client finds a server. One behind stdio is spoken to as `proxyMode` says, which is streamable HTTP.
fn url(name: &str, transport: &str) -> String {
    let path = if transport == "sse" { "sse" } else { "mcp" };
    format!("http://mcp-{name}-proxy.{USERS}.svc.cluster.local:8080/{path}")
}

fn uid(cluster: &Cluster<'_>, pod: &str) -> Result<Value> {
    Ok(cluster.kubectl.get(&["pod", pod, "-n", USERS])?["metadata"]["uid"].take())
}

/// The pods of the proxy before a server: those that come of a Deployment.
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
    pods.pop().context("there is no proxy")
}

fn text<'a>(object: &'a Value, pointer: &str) -> Result<&'a str> {
    object.pointer(pointer).and_then(Value::as_str).with_context(|| format!("{pointer} is missing"))
}

fn ready(live: &Value) -> bool {
    let conditions = live["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|one| one["type"] == "Ready" && one["status"] == "True")
}

/// What helps to find out why.
fn tell(kubectl: &Kubectl) {
    for args in [
        &["get", "mcpservers,mcpremoteproxies,all", "-A", "-o", "wide"][..],
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
