//! Calling a tool of a server, with a client that others wrote.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The client of the official SDK for JavaScript.
pub(crate) struct Caller<'a> {
    pub(crate) sdk: &'a Path,
    pub(crate) script: PathBuf,
}

/// A call under way, which comes again until it is answered.
pub(crate) struct Calling(Child);

impl Caller<'_> {
    /// Calls the tool that says what it is told, once, and checks that it does.
    pub(crate) fn echo(&self, url: &str, transport: &str) -> Result<()> {
        Calling(self.start(url, transport, 16, false)?).answered().map(drop)
    }

    /// The same with a message of a megabyte, which comes in many pieces.
    pub(crate) fn echo_long(&self, url: &str, transport: &str) -> Result<()> {
        Calling(self.start(url, transport, 1 << 20, false)?).answered().map(drop)
    }

    /// The same until there is an answer.
    pub(crate) fn echo_until_answered(&self, url: &str, transport: &str) -> Result<Calling> {
        self.start(url, transport, 16, true).map(Calling)
    }

    fn start(&self, url: &str, transport: &str, size: usize, patient: bool) -> Result<Child> {
        Command::new("node")
            .arg(&self.script)
            .arg(self.sdk)
            .args([url, transport, &size.to_string()])
            .args(patient.then_some("patient"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start node")
    }
}

impl Calling {
    /// When the answer came.
    pub(crate) fn answered(self) -> Result<SystemTime> {
        let output = self.0.wait_with_output()?;
        if !output.status.success() {
            bail!("the client was not answered: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let said: Value = serde_json::from_slice(&output.stdout)?;
        let at = said["at"].as_u64().context("the client does not say when it was answered")?;
        Ok(UNIX_EPOCH + Duration::from_millis(at))
    }
}
