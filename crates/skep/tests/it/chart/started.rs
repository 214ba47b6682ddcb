//! The operator, started as in the chart's Deployment, with the chart's service account and permissions.

use std::{
    collections::BTreeMap,
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use k8s_openapi::api::{
    apps::v1::Deployment,
    authentication::v1::{TokenRequest, TokenRequestSpec},
    coordination::v1::Lease,
    core::v1::ServiceAccount,
};
use kube::{
    ResourceExt,
    api::{ListParams, PatchParams, PostParams},
};
use serde_json::{Value, json};
use skep_api::kinds::MCPServer;
use skep_operator::settings::{DEFAULT_PROXY_IMAGE, Settings};
use skep_testkit::{ControlPlane, Namespace, fixtures::TestServer, process::Process};
use tokio::time::{sleep, timeout};

use super::{SNAPSHOTS, apply, objects, only};

const PATIENCE: Duration = Duration::from_secs(60);
/// The chart's service account, and its other objects.
const NAME: &str = "skep";

fn container(objects: &[Value]) -> &Value {
    &only(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]
}

/// The variables of the container, with its namespace where a field reference needs it.
fn variables(container: &Value, namespace: &str) -> BTreeMap<String, String> {
    let variables = container["env"].as_array().unwrap().iter();
    let value = |variable: &Value| match &variable["valueFrom"]["fieldRef"]["fieldPath"] {
        Value::String(path) if path == "metadata.namespace" => namespace.to_owned(),
        _ => variable["value"].as_str().unwrap().to_owned(),
    };
    variables.map(|variable| (variable["name"].as_str().unwrap().to_owned(), value(variable))).collect()
}

fn arguments(container: &Value) -> Vec<String> {
    let arguments = container["args"].as_array().unwrap().iter();
    arguments.map(|argument| argument.as_str().unwrap().to_owned()).collect()
}

/// A kubeconfig with a token of the account, as a pod has one.
async fn kubeconfig(system: &Namespace, folder: &Path) -> PathBuf {
    let request = TokenRequest {
        spec: TokenRequestSpec {
            audiences: vec!["https://kubernetes.default.svc".into()],
            ..TokenRequestSpec::default()
        },
        ..TokenRequest::default()
    };
    let accounts = system.api::<ServiceAccount>();
    let response = accounts.create_token_request(NAME, &PostParams::default(), &request).await.unwrap();
    let server = fs::read_to_string(system.folder().join("server")).unwrap();
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster": {
            "server": server, "certificate-authority": system.folder().join("ca.crt"),
        }}],
        "users": [{"name": "test", "user": {"token": response.status.unwrap().token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    });
    let file = folder.join("kubeconfig");
    fs::write(&file, config.to_string()).unwrap();
    file
}

/// What was installed, and the running operator.
struct Installed {
    system: Namespace,
    folder: PathBuf,
    operator: Process,
}

impl Installed {
    /// Applies the objects of a snapshot, and does what the kubelet would do with the Deployment.
    async fn start(system: Namespace, objects: &[Value]) -> Self {
        for object in objects {
            apply(&system.client(), object, PatchParams::apply("chart").force()).await;
        }
        let folder = system.folder().join(format!("{}-operator", system.name()));
        fs::create_dir_all(&folder).unwrap();
        let kubeconfig = kubeconfig(&system, &folder).await;
        let container = container(objects);
        // `env` sets the variables of the container, and then becomes the program.
        let mut line = vec!["-i".to_owned(), format!("KUBECONFIG={}", kubeconfig.display())];
        let variables = variables(container, system.name());
        line.extend(variables.iter().map(|(name, value)| format!("{name}={value}")));
        line.push(env!("CARGO_BIN_EXE_skep").into());
        // A pod has all ports for itself; here some are in use.
        line.extend(arguments(container).iter().map(|argument| match argument.rsplit_once("=:") {
            Some((name, _)) => {
                let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
                format!("{name}={free}")
            }
            None => argument.clone(),
        }));
        let operator = Process::start(Path::new("/usr/bin/env"), line, &folder).unwrap();
        Self { system, folder, operator }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("env.log")).unwrap()
    }

    /// Creates a server in this namespace, and waits for the image of its proxy.
    async fn proxy_image(&self, team: &Namespace) -> String {
        team.create_object(&MCPServer::test("fetch")).await;
        let applied = async {
            loop {
                self.operator.check().unwrap();
                if let Some(proxy) = team.api::<Deployment>().get_opt("fetch").await.unwrap() {
                    let pods = proxy.spec.unwrap().template.spec.unwrap();
                    return pods.containers[0].image.clone().unwrap();
                }
                sleep(Duration::from_millis(50)).await;
            }
        };
        let applied = timeout(PATIENCE, applied).await;
        applied.unwrap_or_else(|_| panic!("the server is not reconciled:\n{}", self.log()))
    }

    /// Ends the operator, and checks that it was the leader and that no request was forbidden.
    async fn ends_well(self) {
        let leases = self.system.api::<Lease>().list(&ListParams::default()).await.unwrap();
        // One for some namespaces has a name of its own.
        let is_own = |lease: &&Lease| lease.name_any().starts_with("toolhive-operator-leader-election");
        let leases: Vec<&Lease> = leases.iter().filter(is_own).collect();
        let [lease] = leases[..] else { panic!("{leases:?}") };
        assert!(lease.spec.as_ref().unwrap().holder_identity.is_some(), "it leads");
        let log = self.log();
        assert!(!log.contains("forbidden") && !log.contains("ERROR"), "{log}");
        self.operator.stop().unwrap();
        fs::remove_dir_all(self.folder).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_for_the_cluster_works_with_the_permissions_of_the_chart() {
    // It reconciles every server of the cluster, so it has its own cluster.
    let plane = ControlPlane::start().await;
    let (system, team) = (plane.namespace().await, plane.namespace().await);
    let objects = objects("default", &[("skep-system", system.name())]);
    let installed = Installed::start(system, &objects).await;
    assert_eq!(installed.proxy_image(&team).await, DEFAULT_PROXY_IMAGE);
    installed.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_for_some_namespaces_works_there_and_nowhere_else() {
    let (system, a, b) =
        (skep_testkit::namespace().await, skep_testkit::namespace().await, skep_testkit::namespace().await);
    let others = skep_testkit::namespace().await;
    others.create_object(&MCPServer::test("fetch")).await;
    let places = [("skep-system", system.name()), ("team-a", a.name()), ("team-b", b.name())];
    let objects = objects("namespaced", &places);
    let installed = Installed::start(system, &objects).await;
    assert_eq!(installed.proxy_image(&a).await, DEFAULT_PROXY_IMAGE);
    assert_eq!(installed.proxy_image(&b).await, DEFAULT_PROXY_IMAGE);
    let untouched = others.api::<MCPServer>().get("fetch").await.unwrap();
    assert!(untouched.status.is_none(), "{untouched:?}");
    installed.ends_well().await;
}

fn help(arguments: &[String]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_skep")).args(arguments).arg("--help").output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_argument_and_variable_is_one_that_the_operator_reads() {
    for snapshot in SNAPSHOTS {
        let objects = objects(snapshot, &[]);
        let deployments = objects.iter().filter(|object| object["kind"] == "Deployment");
        // The other one never has a pod.
        let mut deployments = deployments.filter(|deployment| deployment["spec"]["replicas"] != 0);
        let container = &deployments.next().unwrap()["spec"]["template"]["spec"]["containers"][0];
        let help = help(&arguments(container));
        let variables = variables(container, "skep-system");
        let settings = Settings::from_env(&variables);
        for name in variables.keys().filter(|name| *name != "RUST_LOG") {
            // Another value makes a difference, or the operator's help lists it.
            let mut other = variables.clone();
            other.insert(name.clone(), "other".into());
            let named = help.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
            let known = Settings::from_env(&other) != settings || named.into_iter().any(|word| word == name);
            assert!(known, "{snapshot}: {name} is not read");
        }
    }
}
