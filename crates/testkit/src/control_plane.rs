//! etcd and kube-apiserver, and what can be done to them.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use k8s_openapi::{
    ByteString, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Config,
    api::{Patch, PatchParams},
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    Link, Namespace, User, audit, free_port,
    pki::{Authority, Identity},
    process::Process,
    programs,
    scratch::Scratch,
};

/// How long a program may take to get ready. It takes seconds; a loaded machine gets more.
const READY_WITHIN: Duration = Duration::from_secs(90);

/// A control plane that one test has for itself, to stop, slow down and cut off.
pub struct ControlPlane {
    // Processes before the scratch folder: fields are dropped in this order.
    controller_manager: Option<Process>,
    api_server: Option<Process>,
    etcd: Option<Process>,
    /// Further flags of the API server.
    flags: Vec<String>,
    ports: Ports,
    api_link: Link,
    etcd_link: Link,
    scratch: Scratch,
}

#[derive(Clone, Copy)]
struct Ports {
    etcd: u16,
    etcd_peer: u16,
    api_server: u16,
}

impl ControlPlane {
    /// Starts etcd and kube-apiserver, and installs the CRDs.
    ///
    /// # Panics
    /// If the programs are missing or do not start: there is nothing to test then.
    pub async fn start() -> Self {
        Self::try_start().await.unwrap_or_else(|error| panic!("cannot start a control plane: {error:#}"))
    }

    /// The same with further flags of the API server.
    ///
    /// # Panics
    /// If the programs are missing or do not start.
    pub async fn start_with(flags: &[String]) -> Self {
        let started = Self::try_start_with(flags).await;
        started.unwrap_or_else(|error| panic!("cannot start a control plane: {error:#}"))
    }

    /// The same for programs that report errors themselves.
    pub async fn try_start() -> Result<Self> {
        Self::try_start_with(&[]).await
    }

    async fn try_start_with(flags: &[String]) -> Result<Self> {
        let scratch = Scratch::new()?;
        let ports = Ports { etcd: free_port(), etcd_peer: free_port(), api_server: free_port() };
        let authority = Authority::create(scratch.path())?;
        write_identity(scratch.path(), "apiserver", &authority.server()?)?;
        // The key of service account tokens.
        write_identity(scratch.path(), "service-account", &authority.user("service-account", &[])?)?;
        fs::write(scratch.path().join("audit-policy.yaml"), audit::POLICY)?;
        audit::create(scratch.path())?;

        let api_link = Link::to(ports.api_server).await?;
        let etcd_link = Link::to(ports.etcd).await?;
        fs::write(scratch.path().join("server"), format!("https://{}", api_link.address()))?;
        let mut plane = Self {
            controller_manager: None,
            api_server: None,
            etcd: None,
            flags: flags.to_vec(),
            ports,
            api_link,
            etcd_link,
            scratch,
        };
        plane.try_start_etcd()?;
        plane.try_start_api_server().await?;
        install_crds(&plane.admin().client()).await?;
        Ok(plane)
    }

    /// The folder with the address and credentials for other processes.
    pub fn folder(&self) -> &Path {
        self.scratch.path()
    }

    /// A user who may do everything.
    pub fn admin(&self) -> User {
        User::admin(self.folder())
    }

    /// A new namespace.
    pub async fn namespace(&self) -> Namespace {
        Namespace::create(self.folder().to_owned()).await
    }

    /// The connection between clients and the API server.
    pub fn api_link(&self) -> &Link {
        &self.api_link
    }

    /// The connection between the API server and etcd.
    pub fn etcd_link(&self) -> &Link {
        &self.etcd_link
    }

    /// Shuts the API server down gracefully.
    pub fn stop_api_server(&mut self) {
        if let Some(api_server) = self.api_server.take() {
            api_server.stop().expect("the API server stops");
            audit::record_end(self.folder());
        }
    }

    /// Ends the API server as a crash would.
    pub fn kill_api_server(&mut self) {
        drop(self.api_server.take());
        audit::record_end(self.folder());
    }

    /// Starts the API server again, with the same address and data.
    pub async fn start_api_server(&mut self) {
        self.try_start_api_server().await.expect("the API server starts");
    }

    /// Shuts etcd down gracefully.
    pub fn stop_etcd(&mut self) {
        if let Some(etcd) = self.etcd.take() {
            etcd.stop().expect("etcd stops");
        }
    }

    /// Ends etcd as a crash would.
    pub fn kill_etcd(&mut self) {
        drop(self.etcd.take());
    }

    /// Starts etcd again, with the same address and data.
    pub fn start_etcd(&mut self) {
        self.try_start_etcd().expect("etcd starts");
    }

    /// The custom resources in etcd under this part of their path, such as `mcpgroups/team/`: each as the
    /// API server stored it, by the end of its path.
    pub async fn stored(&self, path: &str) -> BTreeMap<String, Value> {
        let prefix = format!("/registry/{}/{path}", skep_api::GROUP);
        self.try_stored(&prefix).await.expect("etcd returns its data")
    }

    async fn try_stored(&self, prefix: &str) -> Result<BTreeMap<String, Value>> {
        // The first key after the prefix.
        let mut end = prefix.as_bytes().to_vec();
        *end.last_mut().context("no path")? += 1;
        let range = json!({"key": ByteString(prefix.into()), "range_end": ByteString(end)});
        let etcd = Client::try_from(Config::new(format!("http://127.0.0.1:{}", self.ports.etcd).parse()?))?;
        let answer: Range =
            etcd.request(http::Request::post("/v3/kv/range").body(serde_json::to_vec(&range)?)?).await?;
        let object = |entry: &Entry| {
            let key = String::from_utf8(entry.key.0.clone())?;
            Ok((key.trim_start_matches(prefix).to_owned(), serde_json::from_slice(&entry.value.0)?))
        };
        answer.kvs.iter().map(object).collect()
    }

    /// Runs kube-controller-manager with these controllers, for example `["deployment", "replicaset"]`.
    pub fn start_controller_manager(&mut self, controllers: &[&str]) {
        self.try_start_controller_manager(controllers).expect("kube-controller-manager starts");
    }

    fn try_start_controller_manager(&mut self, controllers: &[&str]) -> Result<()> {
        ensure!(self.controller_manager.is_none(), "it runs already");
        let kubeconfig = self.admin().kubeconfig_file();
        let args = [
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--controllers={}", controllers.join(",")),
            "--leader-elect=false".into(),
            "--secure-port=0".into(),
        ];
        let program = programs::path_of("kube-controller-manager")?;
        self.controller_manager = Some(Process::start(&program, args, self.folder())?);
        Ok(())
    }

    fn try_start_etcd(&mut self) -> Result<()> {
        ensure!(self.etcd.is_none(), "it runs already");
        let client = format!("http://127.0.0.1:{}", self.ports.etcd);
        let peer = format!("http://127.0.0.1:{}", self.ports.etcd_peer);
        let args = [
            format!("--data-dir={}", self.path("etcd").display()),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
            // The machine does not crash within a test; a killed etcd keeps what the kernel has.
            "--unsafe-no-fsync".into(),
        ];
        self.etcd = Some(Process::start(&programs::path_of("etcd")?, args, self.folder())?);
        Ok(())
    }

    async fn try_start_api_server(&mut self) -> Result<()> {
        ensure!(self.api_server.is_none(), "it runs already");
        let file = |name: &str| self.path(name).display().to_string();
        let args = [
            format!("--etcd-servers=http://{}", self.etcd_link.address()),
            "--bind-address=127.0.0.1".into(),
            "--advertise-address=127.0.0.1".into(),
            format!("--secure-port={}", self.ports.api_server),
            format!("--tls-cert-file={}", file("apiserver.crt")),
            format!("--tls-private-key-file={}", file("apiserver.key")),
            format!("--client-ca-file={}", file("ca.crt")),
            "--service-account-issuer=https://kubernetes.default.svc".into(),
            format!("--service-account-key-file={}", file("service-account.crt")),
            format!("--service-account-signing-key-file={}", file("service-account.key")),
            "--authorization-mode=RBAC".into(),
            "--service-cluster-ip-range=10.96.0.0/16".into(),
            // No controller creates the default ServiceAccounts of namespaces, so pods could not be created.
            "--disable-admission-plugins=ServiceAccount".into(),
            "--allow-privileged=true".into(),
            // The address is on loopback, which is not allowed in Endpoints: registering would fail, and stopping
            // would wait twenty seconds for the removal.
            "--endpoint-reconciler-type=none".into(),
            format!("--audit-policy-file={}", file("audit-policy.yaml")),
            format!("--audit-log-path={}", file(audit::LOG)),
            // An event is in the file before its response ends, and the file is never rotated.
            "--audit-log-mode=blocking".into(),
            "--audit-log-maxsize=1000000".into(),
        ];
        let program = programs::path_of("kube-apiserver")?;
        let args = args.into_iter().chain(self.flags.iter().cloned());
        self.api_server = Some(Process::start(&program, args, self.folder())?);
        self.until_ready().await
    }

    async fn until_ready(&self) -> Result<()> {
        let client = self.admin().client();
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            self.etcd.as_ref().map_or(Ok(()), Process::check)?;
            self.api_server.as_ref().map_or(Ok(()), Process::check)?;
            if is_ready(&client).await {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "kube-apiserver is not ready after {READY_WITHIN:?}");
            sleep(Duration::from_millis(100)).await;
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }
}

/// A part of etcd's response.
#[derive(Deserialize)]
struct Range {
    #[serde(default)]
    kvs: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    key: ByteString,
    value: ByteString,
}

async fn is_ready(client: &Client) -> bool {
    let request = http::Request::get("/readyz").body(Vec::new());
    let Ok(request) = request else { return false };
    client.request_text(request).await.is_ok()
}

/// Installs the CRDs, and waits until the API server serves them all.
async fn install_crds(client: &Client) -> Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let crds = skep_api::crd::crds()?;
    for crd in &crds {
        let name = crd.metadata.name.as_deref().context("a CRD has a name")?;
        let params = PatchParams::apply("skep-testkit").force();
        api.patch(name, &params, &Patch::Apply(crd))
            .await
            .with_context(|| format!("the CRD {name} is rejected"))?;
    }
    let deadline = Instant::now() + READY_WITHIN;
    for crd in &crds {
        let path =
            format!("/apis/{}/{}/{}", crd.spec.group, crd.spec.versions[0].name, crd.spec.names.plural);
        while client.request_text(http::Request::get(&path).body(Vec::new())?).await.is_err() {
            ensure!(Instant::now() < deadline, "{path} is not served");
            sleep(Duration::from_millis(50)).await;
        }
    }
    Ok(())
}

fn write_identity(folder: &Path, name: &str, identity: &Identity) -> Result<()> {
    fs::write(folder.join(format!("{name}.crt")), &identity.certificate)?;
    fs::write(folder.join(format!("{name}.key")), &identity.key)?;
    Ok(())
}
