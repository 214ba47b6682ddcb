//! The node: etcd, the control plane, containerd, kubelet, kube-proxy and CoreDNS.
//!
//! The network is the node's own, so every address and port is free. Nothing leads out of it: every image is imported.

use std::{
    cell::RefCell,
    ffi::OsStr,
    fs,
    path::Path,
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    Args,
    kubectl::{Kubectl, ready},
    pki::Authority,
    programs::{log, path},
    stopwatch::until,
};

/// The node's own address.
const NODE: &str = "10.250.0.1";
/// The machine of a user beside the node, as a network namespace. No pod that starts or stops changes its interfaces: a browser
/// ends all its requests when one does.
pub(crate) const USER_MACHINE: &str = "/run/netns/user";
const PODS: &str = "10.251.0.0/24";
const SERVICES: &str = "10.252.0.0/24";
/// The first of them is the API server's.
const API_SERVICE: &str = "10.252.0.1";
/// What its pods are made of.
const IMAGES: [&str; 4] = ["pause", "skep", "server-everything", "dex"];
const SOCKET: &str = "/run/containerd/containerd.sock";

/// A running node.
pub(crate) struct Node<'a> {
    args: &'a Args,
    folder: &'a Path,
    running: RefCell<Vec<(String, Child)>>,
    pub(crate) kubectl: Kubectl,
}

impl<'a> Node<'a> {
    /// Starts it, and waits until it is ready and has the images.
    pub(crate) fn start(args: &'a Args, folder: &'a Path) -> Result<Self> {
        let kubectl =
            Kubectl { program: args.programs.join("kubectl"), kubeconfig: folder.join("admin.kubeconfig") };
        let node = Self { args, folder, running: RefCell::default(), kubectl };
        node.own_folders()?;
        node.own_network()?;
        node.certificates()?;
        node.etcd()?;
        node.containerd()?;
        node.api_server()?;
        for image in IMAGES {
            node.import(image)?;
        }
        until("the API server", || {
            node.check()?;
            Ok(node.kubectl.run(&["get", "--raw", "/readyz"]).ok())
        })?;
        node.control_plane()?;
        node.kubelet()?;
        node.kubectl.wait(&["node", "node"], ready)?;
        node.check()?;
        Ok(node)
    }

    /// Fails if one of the programs exited, with the end of its log.
    pub(crate) fn check(&self) -> Result<()> {
        for (name, child) in &mut *self.running.borrow_mut() {
            if let Some(status) = child.try_wait()? {
                let log = fs::read_to_string(self.args.logs.join(format!("{name}.log"))).unwrap_or_default();
                let lines: Vec<&str> = log.lines().collect();
                bail!("{name} ended, {status}:\n{}", lines[lines.len().saturating_sub(15)..].join("\n"));
            }
        }
        Ok(())
    }

    /// Some paths of programs cannot be configured, so folders of the node are mounted there. The mounts are visible
    /// only in the namespace of the node.
    fn own_folders(&self) -> Result<()> {
        for place in ["lib", "log"] {
            let own = self.folder.join(place);
            fs::create_dir(&own)?;
            tool("mount", ["--bind".as_ref(), own.as_os_str(), format!("/var/{place}").as_ref()])?;
        }
        tool("mount", ["-t", "tmpfs", "tmpfs", "/run"])?;
        fs::create_dir("/run/containerd")?;
        let resolv = self.folder.join("resolv.conf");
        fs::write(&resolv, format!("nameserver {NODE}\n"))?;
        let theirs = fs::canonicalize("/etc/resolv.conf").context("/etc/resolv.conf")?;
        tool("mount", ["--bind".as_ref(), resolv.as_os_str(), theirs.as_os_str()])
    }

    fn own_network(&self) -> Result<()> {
        let address = format!("{NODE}/24");
        for line in [
            "link set lo up",
            "link add node0 type bridge",
            &format!("addr add {address} dev node0"),
            "link set node0 up",
            // A packet to a Service needs a route before the rules translate its address.
            "route add default dev node0",
            "netns add user",
            "link add user0 type veth peer name eth0 netns user",
            "link set user0 master node0 up",
            "-n user link set lo up",
            "-n user addr add 10.250.0.2/24 dev eth0",
            "-n user link set eth0 up",
        ] {
            tool("ip", line.split(' '))?;
        }
        fs::write("/proc/sys/net/ipv4/ip_forward", "1").context("cannot turn on forwarding")
    }

    fn certificates(&self) -> Result<()> {
        let authority = Authority::new(self.folder)?;
        let hosts = [NODE, API_SERVICE, "127.0.0.1", "kubernetes.default.svc"];
        authority.sign("apiserver", "kube-apiserver", None, &hosts)?;
        authority.sign("kubelet", "system:node:node", Some("system:nodes"), &["node", NODE])?;
        authority.sign("admin", "admin", Some("system:masters"), &[])?;
        // The key pair of service account tokens.
        authority.sign("tokens", "tokens", None, &[])?;
        for user in ["admin", "kubelet"] {
            let config = serde_json::json!({
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "e2e", "cluster": {
                    "server": format!("https://{NODE}:6443"), "certificate-authority": self.file("ca.crt"),
                }}],
                "users": [{"name": user, "user": {
                    "client-certificate": self.file(&format!("{user}.crt")),
                    "client-key": self.file(&format!("{user}.key")),
                }}],
                "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": user}}],
                "current-context": "e2e",
            });
            fs::write(self.folder.join(format!("{user}.kubeconfig")), config.to_string())?;
        }
        Ok(())
    }

    fn etcd(&self) -> Result<()> {
        let data = format!("--data-dir={}", self.file("etcd"));
        self.spawn(
            "etcd",
            // The machine does not crash within a run.
            &[&data, "--unsafe-no-fsync"],
        )
    }

    fn api_server(&self) -> Result<()> {
        let file = |flag: &str, name: &str| format!("--{flag}={}", self.file(name));
        let args = [
            "--etcd-servers=http://127.0.0.1:2379".into(),
            format!("--advertise-address={NODE}"),
            format!("--service-cluster-ip-range={SERVICES}"),
            "--authorization-mode=Node,RBAC".into(),
            file("client-ca-file", "ca.crt"),
            file("tls-cert-file", "apiserver.crt"),
            file("tls-private-key-file", "apiserver.key"),
            // It connects to the kubelet to attach to containers.
            file("kubelet-certificate-authority", "ca.crt"),
            file("kubelet-client-certificate", "admin.crt"),
            file("kubelet-client-key", "admin.key"),
            "--kubelet-preferred-address-types=InternalIP".into(),
            "--service-account-issuer=https://kubernetes.default.svc".into(),
            file("service-account-key-file", "tokens.crt"),
            file("service-account-signing-key-file", "tokens.key"),
        ];
        self.spawn("kube-apiserver", &args)
    }

    fn control_plane(&self) -> Result<()> {
        let kubeconfig = format!("--kubeconfig={}", self.file("admin.kubeconfig"));
        let alone = "--leader-elect=false".to_owned();
        let args = [
            kubeconfig.clone(),
            alone.clone(),
            "--use-service-account-credentials".into(),
            format!("--root-ca-file={}", self.file("ca.crt")),
            format!("--service-account-private-key-file={}", self.file("tokens.key")),
            // Often enough not to delay anything.
            "--horizontal-pod-autoscaler-sync-period=2s".into(),
        ];
        self.spawn("kube-controller-manager", &args)?;
        self.spawn("kube-scheduler", &[kubeconfig.clone(), alone])?;
        let args = [
            kubeconfig,
            "--hostname-override=node".into(),
            "--proxy-mode=nftables".into(),
            format!("--cluster-cidr={PODS}"),
            // These are for the whole machine, and not the node's to set.
            "--conntrack-max-per-core=0".into(),
            "--conntrack-tcp-timeout-established=0s".into(),
            "--conntrack-tcp-timeout-close-wait=0s".into(),
        ];
        self.spawn("kube-proxy", &args)?;
        let corefile = self.folder.join("Corefile");
        let kubeconfig = self.file("admin.kubeconfig");
        let zone = format!("kubernetes cluster.local {{\n    kubeconfig {kubeconfig} e2e\n    ttl 1\n  }}");
        fs::write(&corefile, format!(".:53 {{\n  bind {NODE}\n  errors\n  {zone}\n}}\n"))?;
        self.spawn("coredns", &["-conf".as_ref(), corefile.as_os_str()])
    }

    fn containerd(&self) -> Result<()> {
        let networks = self.folder.join("networks");
        fs::create_dir(&networks)?;
        // Each pod has its own link to the node, which routes between them: so the rules for Services see every packet.
        let network = serde_json::json!({
            "cniVersion": "1.0.0",
            "name": "pods",
            "plugins": [{"type": "ptp", "ipam": {
                "type": "host-local", "ranges": [[{"subnet": PODS}]], "routes": [{"dst": "0.0.0.0/0"}],
            }}],
        });
        fs::write(networks.join("pods.conflist"), network.to_string())?;
        let programs = self.args.node_programs.display();
        let config = format!(
            r#"version = 3
root = "{root}"
state = "/run/containerd"

[grpc]
address = "{SOCKET}"

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "localhost/pause:e2e"

[plugins."io.containerd.cri.v1.runtime"]
# Root may be one that cannot make a process more precious than itself: then no container would start.
restrict_oom_score_adj = true

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dir = "{programs}"
conf_dir = "{networks}"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
BinaryName = "{runc}"
SystemdCgroup = false
"#,
            root = self.file("containerd"),
            runc = self.args.packages.join("runc").display(),
            networks = networks.display(),
        );
        let file = self.folder.join("containerd.toml");
        fs::write(&file, config)?;
        self.spawn("containerd", &["--config".as_ref(), file.as_os_str()])
    }

    /// Imports an image that hack/image has built.
    pub(crate) fn import(&self, image: &str) -> Result<()> {
        let archive = self.args.images.join(format!("{image}.tar"));
        ensure!(archive.is_file(), "{} is missing: create it with hack/image {image}", archive.display());
        until("containerd", || {
            self.check()?;
            Ok(Path::new(SOCKET).exists().then_some(()))
        })?;
        self.ctr(&["images".as_ref(), "import".as_ref(), archive.as_os_str()])
    }

    /// Starts Redis, unless it runs, and returns its address.
    pub(crate) fn redis(&self) -> Result<String> {
        let name = "redis-server";
        if !self.running.borrow().iter().any(|(running, _)| running == name) {
            let args = ["--bind", NODE, "--protected-mode", "no", "--save", ""];
            self.spawn_program(name, &self.args.redis, &args)?;
        }
        Ok(format!("{NODE}:6379"))
    }

    /// Runs a command of containerd that Kubernetes does not have.
    pub(crate) fn ctr<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<()> {
        let to = ["--address", SOCKET, "--namespace", "k8s.io"].into_iter().map(OsStr::new);
        tool(self.args.node_programs.join("ctr"), to.chain(args.iter().map(AsRef::as_ref)))
    }

    fn kubelet(&self) -> Result<()> {
        let group = format!("/{}", self.folder.file_name().unwrap_or_default().to_string_lossy());
        own_group(&group)?;
        let config = serde_json::json!({
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {"anonymous": {"enabled": false}, "x509": {"clientCAFile": self.file("ca.crt")}},
            "tlsCertFile": self.file("kubelet.crt"),
            "tlsPrivateKeyFile": self.file("kubelet.key"),
            "containerRuntimeEndpoint": format!("unix://{SOCKET}"),
            "clusterDNS": [NODE],
            "clusterDomain": "cluster.local",
            "resolvConf": self.file("resolv.conf"),
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": group,
            "failCgroupV1": false,
            "enforceNodeAllocatable": [],
            "failSwapOn": false,
            // As in containerd's.
            "oomScoreAdj": 0,
            // The disk is shared with the machine, so its usage must not evict pods.
            "localStorageCapacityIsolation": false,
            "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            "imageGCHighThresholdPercent": 100,
        });
        let file = self.folder.join("kubelet.json");
        fs::write(&file, config.to_string())?;
        let args = [
            format!("--config={}", file.display()),
            format!("--kubeconfig={}", self.file("kubelet.kubeconfig")),
            "--hostname-override=node".into(),
            format!("--node-ip={NODE}"),
        ];
        self.spawn("kubelet", &args)
    }

    fn spawn<A: AsRef<OsStr>>(&self, name: &str, args: &[A]) -> Result<()> {
        let folders = [&self.args.programs, &self.args.node_programs];
        let program = folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
        let program = program.with_context(|| format!("{name} is missing: see hack/programs"))?;
        self.spawn_program(name, &program, args)
    }

    fn spawn_program<A: AsRef<OsStr>>(&self, name: &str, program: &Path, args: &[A]) -> Result<()> {
        let log = log(&self.args.logs.join(format!("{name}.log")))?;
        // So that they find each other.
        let path = path([self.args.node_programs.as_path(), &self.args.packages])?;
        let child = Command::new(program)
            .args(args)
            .env("PATH", path)
            // They spend much of their processor time with collecting garbage otherwise.
            .envs([("GOGC", "400"), ("GOMEMLIMIT", "1GiB")])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        self.running.borrow_mut().push((name.into(), child));
        Ok(())
    }

    fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }
}

/// Makes the control group under which all pods are, in each hierarchy: there is one, or one for each controller.
fn own_group(group: &str) -> Result<()> {
    let root = Path::new("/sys/fs/cgroup");
    if root.join("cgroup.controllers").is_file() {
        let own = root.join(&group[1..]);
        fs::create_dir_all(&own)?;
        let all = fs::read_to_string(own.join("cgroup.controllers"))?;
        let all: Vec<String> = all.split_whitespace().map(|one| format!("+{one}")).collect();
        fs::write(own.join("cgroup.subtree_control"), all.join(" "))
            .context("cannot give out controllers")?;
        return Ok(());
    }
    for hierarchy in fs::read_dir(root)? {
        let hierarchy = hierarchy?.path();
        if hierarchy.is_dir() && !hierarchy.is_symlink() {
            fs::create_dir_all(hierarchy.join(&group[1..]))
                .with_context(|| format!("cannot create a control group in {}", hierarchy.display()))?;
        }
    }
    Ok(())
}

/// Runs a program to its end.
fn tool<A: AsRef<OsStr>>(program: impl AsRef<OsStr>, args: impl IntoIterator<Item = A>) -> Result<()> {
    let name = program.as_ref().to_string_lossy().into_owned();
    let output =
        Command::new(&program).args(args).output().with_context(|| format!("cannot start {name}"))?;
    ensure!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}
