//! `skep run` with Podman.

use std::{
    env, fs,
    path::PathBuf,
    process::{Child, ExitStatus, Stdio},
};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::{manifests, podman::Podman, programs, stopwatch::until};

/// With a umask that hides files from other users.
const STRICT_UMASK: &str = r#"umask 077; exec "$@""#;

/// A running process.
pub(crate) struct SkepRun {
    process: Child,
    log: PathBuf,
    /// The folder for the files of this and earlier processes.
    files: PathBuf,
}

impl SkepRun {
    /// Starts it with these objects. It finds Podman by itself.
    pub(crate) fn start(podman: &Podman<'_>, objects: &[Value]) -> Result<Self> {
        let file = podman.folder.join("servers.yaml");
        fs::write(&file, manifests::file(objects))?;
        let log = podman.args.logs.join("skep-run.log");
        let output = programs::log(&log)?;
        let files = podman.folder.join("files");
        let process = podman
            .within("sh")
            .args(["-c", STRICT_UMASK, "sh"])
            // The one of this build, beside this program.
            .arg(env::current_exe()?.with_file_name("skep"))
            .args(["run", "-f"])
            .arg(file)
            .env_remove("DOCKER_HOST")
            .env_remove("XDG_RUNTIME_DIR")
            .env("HOME", &podman.folder)
            .env("XDG_STATE_HOME", &files)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .context("cannot start skep run")?;
        Ok(Self { process, log, files })
    }

    /// The URL of a server, once it is ready.
    pub(crate) fn url(&mut self, server: &str) -> Result<String> {
        self.line(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                [name, url, _, "Ready", ..] if name == server => Some(url.to_owned()),
                _ => None,
            }
        })
        .with_context(|| format!("{server} is not ready"))
    }

    /// Waits until it prints this.
    pub(crate) fn expect_line(&mut self, what: &str) -> Result<()> {
        self.line(|line| line.contains(what).then_some(()))
            .with_context(|| format!("it does not print {what:?}"))
    }

    fn line<T>(&mut self, matching: impl Fn(&str) -> Option<T>) -> Result<T> {
        let line = until("a line of skep run", || {
            let output = self.output();
            match output.lines().find_map(&matching) {
                None if self.process.try_wait()?.is_some() => Ok(Some(None)),
                None => Ok(None),
                line => Ok(Some(line)),
            }
        });
        match line {
            Ok(Some(line)) => Ok(line),
            Ok(None) => bail!("skep run exited:\n{}", self.output()),
            Err(error) => Err(error.context(self.output())),
        }
    }

    /// Its output so far.
    pub(crate) fn output(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The files of all processes.
    pub(crate) fn files(&self) -> Result<Vec<PathBuf>> {
        fs::read_dir(self.files.join("skep/run"))?.map(|entry| Ok(entry?.path())).collect()
    }

    /// Sends it a signal, and waits until it exits.
    pub(crate) fn end(&mut self, signal: Signal) -> Result<ExitStatus> {
        let id = i32::try_from(self.process.id())?;
        kill_process(Pid::from_raw(id).context("it has no process id")?, signal)?;
        until("the end of skep run", || Ok(self.process.try_wait()?))
    }
}

impl Drop for SkepRun {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
