//! Podman, in its own namespaces: its networks and rules, what it mounts, and its control groups are neither the machine's
//! nor the node's.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    Args,
    programs::{log, path},
    stopwatch::until,
};

/// Moves to its own control group, in the one hierarchy or in that of each controller. The namespace that is made then
/// takes it for the root.
const ENTER: &str = r#"
set -e
own=$1/podman
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  hierarchies=/sys/fs/cgroup
else
  hierarchies=$(find /sys/fs/cgroup -mindepth 1 -maxdepth 1 -type d)
fi
for hierarchy in $hierarchies; do
  mkdir -p "$hierarchy/$own"
  # With one hierarchy, a new group has the controllers that it is handed.
  if [ -e "$hierarchy/cgroup.controllers" ]; then
    sed 's/[^ ]*/+&/g' "$hierarchy/$1/cgroup.controllers" >"$hierarchy/$1/cgroup.subtree_control"
  fi
  # With one for each controller, it has no processors.
  for file in cpuset.cpus cpuset.mems; do
    if [ -e "$hierarchy/$file" ]; then
      cat "$hierarchy/$file" >"$hierarchy/$1/$file"
      cat "$hierarchy/$file" >"$hierarchy/$own/$file"
    fi
  done
  echo $$ >"$hierarchy/$own/cgroup.procs"
done
export own hierarchies
exec unshare --cgroup --mount --net sh -c "$2" serve "$3"
"#;

/// Mounts over the machine's paths that Podman's settings cannot change, and waits for users.
const SERVE: &str = r#"
set -e
for hierarchy in $hierarchies; do mount --bind "$hierarchy/$own" "$hierarchy"; done
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  # A group has processes, or hands out controllers.
  mkdir /sys/fs/cgroup/service
  echo $$ >/sys/fs/cgroup/service/cgroup.procs
fi
for place in /run /dev/shm /var/lib; do mount -t tmpfs tmpfs "$place"; done
mkdir /run/podman
ip link set lo up
exec "$1" system service --time=0 unix:///run/podman/podman.sock
"#;

/// A Podman that serves at its usual socket, for programs within its namespaces.
pub(crate) struct Podman<'a> {
    pub(crate) args: &'a Args,
    /// Values that must live as long as it does.
    pub(crate) folder: PathBuf,
    service: Child,
}

impl<'a> Podman<'a> {
    /// Starts it, with an image.
    pub(crate) fn start(args: &'a Args, folder: &Path, image: &str) -> Result<Self> {
        let group = folder.file_name().context("the folder has no name")?;
        let folder = folder.join("podman");
        fs::create_dir(&folder)?;
        configure(args, &folder)?;
        let log = log(&args.logs.join("podman.log"))?;
        let service = configured(Command::new("sh"), args, &folder)?
            .args(["-c", ENTER, "enter"])
            .arg(group)
            .arg(SERVE)
            .arg(args.podman.join("podman"))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("cannot start sh")?;
        let mut podman = Self { args, folder, service };
        let socket = format!("/proc/{}/root/run/podman/podman.sock", podman.service.id());
        until("the socket of Podman", || {
            podman.check()?;
            Ok(Path::new(&socket).exists().then_some(()))
        })?;
        let archive = args.images.join(format!("{image}.tar"));
        let policy = podman.folder.join("policy.json");
        podman.run(["load", "--signature-policy", &text(&policy), "--input", &text(&archive)])?;
        Ok(podman)
    }

    /// Runs podman, and returns its output.
    pub(crate) fn run<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Result<String> {
        let podman = self.args.podman.join("podman");
        let output = configured(self.within(podman), self.args, &self.folder)?.args(args).output()?;
        ensure!(output.status.success(), "podman: {}", String::from_utf8_lossy(&output.stderr).trim());
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }

    /// The ids of all containers, whether they run or not.
    pub(crate) fn containers(&self) -> Result<Vec<String>> {
        let ids = self.run(["ps", "--all", "--quiet", "--no-trunc"])?;
        Ok(ids.lines().map(ToOwned::to_owned).collect())
    }

    /// A program that finds this Podman. It is the very process, so that a signal to it is one to the program.
    pub(crate) fn within(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.args(self.entrance()).arg(program);
        command
    }

    /// The arguments of `nsenter`.
    pub(crate) fn entrance(&self) -> Vec<String> {
        vec![format!("--target={}", self.service.id()), "--cgroup".into(), "--mount".into(), "--net".into()]
    }

    fn check(&mut self) -> Result<()> {
        if let Some(status) = self.service.try_wait()? {
            let log = fs::read_to_string(self.args.logs.join("podman.log")).unwrap_or_default();
            bail!("podman ended, {status}:\n{log}");
        }
        Ok(())
    }
}

impl Drop for Podman<'_> {
    fn drop(&mut self) {
        self.run(["rm", "--all", "--force", "--time=0"]).ok();
        self.service.kill().ok();
        self.service.wait().ok();
    }
}

/// Where Podman finds what it calls, and where it stores what it has: in memory.
fn configure(args: &Args, folder: &Path) -> Result<()> {
    let engine = format!(
        r#"[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
conmon_path = ["{podman}/conmon"]
helper_binaries_dir = ["{podman}"]
[engine.runtimes]
runc = ["{packages}/runc"]
[network]
network_backend = "netavark"
"#,
        podman = args.podman.display(),
        packages = args.packages.display(),
    );
    let storage = r#"[storage]
driver = "overlay"
graphroot = "/var/lib/containers/storage"
runroot = "/run/containers/storage"
"#;
    fs::write(folder.join("containers.conf"), engine)?;
    fs::write(folder.join("storage.conf"), storage)?;
    fs::write(folder.join("policy.json"), r#"{"default": [{"type": "insecureAcceptAnything"}]}"#)?;
    Ok(())
}

fn configured(mut command: Command, args: &Args, folder: &Path) -> Result<Command> {
    command
        .env("PATH", path([args.podman.as_path(), &args.packages])?)
        .env("CONTAINERS_CONF", folder.join("containers.conf"))
        .env("CONTAINERS_STORAGE_CONF", folder.join("storage.conf"));
    Ok(command)
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
