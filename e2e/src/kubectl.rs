//! What a user does: kubectl.

use std::{
    io::Write as _,
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{manifests, stopwatch::until};

/// kubectl, as an administrator.
pub(crate) struct Kubectl {
    pub(crate) program: PathBuf,
    pub(crate) kubeconfig: PathBuf,
}

impl Kubectl {
    /// Runs it, and returns its output.
    pub(crate) fn run(&self, args: &[&str]) -> Result<String> {
        self.with_input(args, b"")
    }

    /// Applies these objects.
    pub(crate) fn apply(&self, objects: &[Value]) -> Result<()> {
        self.send(&["apply"], objects)
    }

    /// Runs a command that reads a file, with these objects.
    pub(crate) fn send(&self, args: &[&str], objects: &[Value]) -> Result<()> {
        let args = [args, &["-f", "-"]].concat();
        self.with_input(&args, manifests::file(objects).as_bytes()).map(drop)
    }

    /// The objects of a file, none of which is created.
    pub(crate) fn parse(&self, file: &str) -> Result<Vec<Value>> {
        let args = ["create", "--dry-run=client", "--validate=false", "-o", "json", "-f", "-"];
        let output = self.with_input(&args, file.as_bytes())?;
        let parsed = serde_json::Deserializer::from_str(&output).into_iter();
        Ok(parsed.collect::<Result<_, _>>()?)
    }

    /// An object, or a list of them.
    pub(crate) fn get(&self, args: &[&str]) -> Result<Value> {
        let all: Vec<&str> = ["get", "-o", "json"].into_iter().chain(args.iter().copied()).collect();
        Ok(serde_json::from_str(&self.run(&all)?)?)
    }

    /// The items of a list.
    pub(crate) fn list(&self, args: &[&str]) -> Result<Vec<Value>> {
        match self.get(args)?["items"].take() {
            Value::Array(items) => Ok(items),
            other => bail!("kubectl get {args:?} is no list: {other}"),
        }
    }

    /// Waits until an object meets the predicate.
    pub(crate) fn wait(&self, args: &[&str], predicate: impl Fn(&Value) -> bool) -> Result<Value> {
        let mut last = Value::Null;
        let seen = until(&format!("kubectl get {}", args.join(" ")), || {
            last = self.get(args)?;
            Ok(predicate(&last).then(|| last.clone()))
        });
        seen.with_context(|| format!("its status was {}", last["status"]))
    }

    /// It with these arguments.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--kubeconfig").arg(&self.kubeconfig).args(args);
        command
    }

    fn with_input(&self, args: &[&str], input: &[u8]) -> Result<String> {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start kubectl")?;
        child.stdin.take().context("kubectl has no input")?.write_all(input).ok();
        let output = child.wait_with_output()?;
        if !output.status.success() {
            bail!("kubectl {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8(output.stdout)?)
    }
}

/// Whether an object reports that it is ready.
pub(crate) fn ready(live: &Value) -> bool {
    let conditions = live["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|one| one["type"] == "Ready" && one["status"] == "True")
}
