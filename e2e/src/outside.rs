//! The environment of the node: its namespaces, and the clean-up after it.

use std::{
    env, fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio, id},
};

use anyhow::{Context, Result, bail, ensure};

use crate::Args;

/// Waits until its standard input is closed, which the kernel guarantees however this program ends. Then it kills `unshare`, with
/// which the first process of the namespaces dies, and with that everything in them: processes, mounts, the network and
/// its rules. What outlives namespaces is removed: control groups, which can be once they are empty, and the folder.
const CLEAN_UP: &str = r#"
trap '' INT TERM HUP
read -r unshare
cat >/dev/null
kill -KILL "$unshare" 2>/dev/null
left() { find /sys/fs/cgroup -maxdepth 2 -name "${1##*/}" -type d 2>/dev/null; }
tries=0
while [ -n "$(left "$1")" ] && [ $tries -lt 100 ]; do
  for group in $(left "$1"); do find "$group" -depth -type d -exec rmdir {} + 2>/dev/null; done
  tries=$((tries + 1))
  [ -z "$(left "$1")" ] || sleep 0.1
done
rm -rf --one-file-system "$1"
"#;

/// The first process of the namespaces. It reaps every process whose parent has ended, as the first one must.
const FIRST: &str = r#""$@"; exit $?"#;

/// Runs this program again, inside.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    check_prerequisites()?;
    let logs = &args.logs;
    fs::create_dir_all(logs).with_context(|| format!("cannot create the folder {}", logs.display()))?;
    let folder = env::temp_dir().join(format!("skep-e2e-{}", id()));
    fs::create_dir(&folder).with_context(|| format!("cannot create the folder {}", folder.display()))?;
    let mut clean_up = Command::new("sh")
        .args(["-c", CLEAN_UP, "clean-up"])
        .arg(&folder)
        .stdin(Stdio::piped())
        .spawn()
        .context("cannot start sh")?;
    let mut unshare = Command::new("unshare")
        .args([
            "--net",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "sh",
            "-c",
            FIRST,
            "first",
        ])
        .arg(env::current_exe()?)
        .args(env::args_os().skip(1))
        .arg("--inside")
        .arg(&folder)
        .stdin(if args.shell { Stdio::inherit() } else { Stdio::null() })
        .spawn()
        .context("cannot start unshare")?;
    let mut until = clean_up.stdin.take().context("the clean-up has no input")?;
    writeln!(until, "{}", unshare.id())?;
    let status = unshare.wait()?;
    drop(until);
    clean_up.wait()?;
    ensure!(!folder.exists(), "{} could not be removed", folder.display());
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Fails with the reason if it cannot run here.
fn check_prerequisites() -> Result<()> {
    if !cfg!(target_os = "linux") {
        bail!("the end-to-end cases need Linux: a node of Kubernetes runs nowhere else");
    }
    if !rustix::process::geteuid().is_root() {
        bail!(
            "the end-to-end cases need root: a node of Kubernetes mounts, and creates networks and control groups"
        );
    }
    for tool in ["unshare", "nsenter", "ip", "mount", "node"] {
        ensure!(is_installed(tool), "{tool} is missing: the end-to-end cases need it");
    }
    ensure!(Path::new("/sys/fs/cgroup").exists(), "there are no control groups under /sys/fs/cgroup");
    Ok(())
}

fn is_installed(tool: &str) -> bool {
    let path: Vec<PathBuf> = env::var_os("PATH").iter().flat_map(env::split_paths).collect();
    path.iter().any(|folder| folder.join(tool).is_file())
}
