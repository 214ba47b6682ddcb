//! Calling a server, with a client that others wrote.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};

/// The client of the official SDK for JavaScript.
pub(crate) struct Caller<'a> {
    pub(crate) sdk: &'a Path,
    pub(crate) script: PathBuf,
    /// Where it calls from, as `nsenter` is told: nothing is here.
    pub(crate) from: Vec<String>,
}

/// A client at work.
pub(crate) struct Calling {
    client: Child,
    says: BufReader<ChildStdout>,
}

/// What came of many calls.
#[derive(Debug, Deserialize)]
pub(crate) struct Load {
    /// Those with a session of their own each.
    pub(crate) fresh: Calls,
    /// Those in one session, which is begun again only when it is lost.
    pub(crate) kept: Calls,
}

/// How many calls were answered, and why others were not.
#[derive(Debug, Deserialize)]
pub(crate) struct Calls {
    pub(crate) calls: u32,
    pub(crate) failures: Vec<String>,
}

impl Caller<'_> {
    /// Calls the tool that says what it is told, once, and checks that it does.
    pub(crate) fn echo(&self, url: &str, transport: &str) -> Result<()> {
        self.start(&json!({"act": "echo", "url": url, "transport": transport}))?.answered().map(drop)
    }

    /// The same with a message of a megabyte, which comes in many pieces.
    pub(crate) fn echo_long(&self, url: &str, transport: &str) -> Result<()> {
        let act = json!({"act": "echo", "url": url, "transport": transport, "size": 1 << 20});
        self.start(&act)?.answered().map(drop)
    }

    /// The same until there is an answer, from now on: what the client itself takes to start is over.
    pub(crate) fn echo_until_answered(&self, url: &str, transport: &str) -> Result<Calling> {
        let mut calling =
            self.start(&json!({"act": "echo", "url": url, "transport": transport, "patient": true}))?;
        calling.says.read_line(&mut String::new())?;
        Ok(calling)
    }

    /// The same as somebody whom a token names, or as nobody.
    pub(crate) fn echo_as(&self, url: &str, token: Option<&str>) -> Result<()> {
        self.start(&json!({"act": "echo", "url": url, "token": token}))?.answered().map(drop)
    }

    /// The names of the tools that somebody is told of.
    pub(crate) fn tools_as(&self, url: &str, token: &str) -> Result<Vec<String>> {
        let mut said = self.start(&json!({"act": "tools", "url": url, "token": token}))?.said()?;
        Ok(serde_json::from_value(said["tools"].take())?)
    }

    /// Calls again and again, until it is told to end.
    pub(crate) fn load(&self, url: &str) -> Result<Calling> {
        self.start(&json!({"act": "load", "url": url}))
    }

    fn start(&self, act: &Value) -> Result<Calling> {
        let mut client = Command::new("nsenter")
            .args(&self.from)
            .arg("node")
            .arg(&self.script)
            .arg(self.sdk)
            .arg(act.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start node")?;
        let says = BufReader::new(client.stdout.take().context("node has no output")?);
        Ok(Calling { client, says })
    }
}

impl Calling {
    /// When the answer came.
    pub(crate) fn answered(self) -> Result<SystemTime> {
        let at = self.said()?["at"].as_u64().context("the client does not say when it was answered")?;
        Ok(UNIX_EPOCH + Duration::from_millis(at))
    }

    /// Tells it to end, and asks what came of its calls.
    pub(crate) fn ended(self) -> Result<Load> {
        Ok(serde_json::from_value(self.said()?)?)
    }

    /// What it says at its end. Its input ends now.
    fn said(mut self) -> Result<Value> {
        drop(self.client.stdin.take());
        let mut said = String::new();
        self.says.read_to_string(&mut said)?;
        let output = self.client.wait_with_output()?;
        if !output.status.success() {
            bail!("the client was not answered: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(serde_json::from_str(&said)?)
    }
}
