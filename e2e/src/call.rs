//! Calling a server with a third-party client.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Args, programs::repository};

/// The client of the official SDK for JavaScript.
pub(crate) struct Caller<'a> {
    sdk: &'a Path,
    script: PathBuf,
    from: Vec<String>,
}

/// A running client.
pub(crate) struct Calling {
    client: Child,
    stdout: BufReader<ChildStdout>,
}

/// The results of many calls.
#[derive(Debug, Deserialize)]
pub(crate) struct Load {
    /// Calls with a new session each.
    pub(crate) fresh: Calls,
    /// Calls in one session, which is replaced only when it is lost.
    pub(crate) kept: Calls,
}

/// How many calls succeeded, and why others failed.
#[derive(Debug, Deserialize)]
pub(crate) struct Calls {
    pub(crate) calls: u32,
    pub(crate) failures: Vec<String>,
}

impl<'a> Caller<'a> {
    /// It calls from this namespace, or from that of the `nsenter` arguments.
    pub(crate) fn new(args: &'a Args, from: Vec<String>) -> Result<Self> {
        Ok(Self { sdk: &args.sdk, script: repository("e2e/client.mjs")?, from })
    }

    /// Calls the echo tool once, and checks its result.
    pub(crate) fn echo(&self, url: &str, transport: &str) -> Result<()> {
        self.start(&json!({"act": "echo", "url": url, "transport": transport}))?.response_time().map(drop)
    }

    /// The same with a message of a megabyte, which arrives in many pieces.
    pub(crate) fn echo_long(&self, url: &str, transport: &str) -> Result<()> {
        let act = json!({"act": "echo", "url": url, "transport": transport, "size": 1 << 20});
        self.start(&act)?.response_time().map(drop)
    }

    /// The same until there is a response, with a client that has already started.
    pub(crate) fn echo_until_response(&self, url: &str, transport: &str) -> Result<Calling> {
        let mut calling =
            self.start(&json!({"act": "echo", "url": url, "transport": transport, "patient": true}))?;
        calling.stdout.read_line(&mut String::new())?;
        Ok(calling)
    }

    /// The same with a token, or without.
    pub(crate) fn echo_as(&self, url: &str, token: Option<&str>) -> Result<()> {
        self.start(&json!({"act": "echo", "url": url, "token": token}))?.response_time().map(drop)
    }

    /// The names of the tools that a caller sees.
    pub(crate) fn tools_as(&self, url: &str, token: &str) -> Result<Vec<String>> {
        let mut report = self.start(&json!({"act": "tools", "url": url, "token": token}))?.output()?;
        Ok(serde_json::from_value(report["tools"].take())?)
    }

    /// The names of the tools.
    pub(crate) fn tools(&self, url: &str) -> Result<Vec<String>> {
        let mut report = self.start(&json!({"act": "tools", "url": url}))?.output()?;
        Ok(serde_json::from_value(report["tools"].take())?)
    }

    /// Calls a tool once, and returns its text.
    pub(crate) fn call(&self, url: &str, tool: &str, input: &Value) -> Result<String> {
        let report =
            self.start(&json!({"act": "call", "url": url, "tool": tool, "input": input}))?.output()?;
        Ok(report["text"].as_str().unwrap_or_default().to_owned())
    }

    /// Calls repeatedly until it is stopped.
    pub(crate) fn load(&self, url: &str) -> Result<Calling> {
        self.load_tool(url, "echo")
    }

    /// The same with the echo tool under another name.
    pub(crate) fn load_tool(&self, url: &str, tool: &str) -> Result<Calling> {
        self.start(&json!({"act": "load", "url": url, "tool": tool}))
    }

    /// Registers a client, logs a user in, and calls a tool. It goes on when it is ended.
    pub(crate) fn log_in(&self, url: &str) -> Result<Calling> {
        let mut calling = self.start(&json!({"act": "login", "url": url}))?;
        let mut line = String::new();
        calling.stdout.read_line(&mut line)?;
        if line.trim() == "logged in" {
            return Ok(calling);
        }
        calling.output()?;
        bail!("the client printed {line:?}")
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
        let stdout = BufReader::new(client.stdout.take().context("node has no output")?);
        Ok(Calling { client, stdout })
    }
}

impl Calling {
    /// When the response arrived.
    pub(crate) fn response_time(self) -> Result<SystemTime> {
        let at = self.output()?["at"].as_u64().context("the client reports no time of the response")?;
        Ok(UNIX_EPOCH + Duration::from_millis(at))
    }

    /// Stops it, and returns the results of its calls.
    pub(crate) fn ended(self) -> Result<Load> {
        Ok(serde_json::from_value(self.output()?)?)
    }

    /// Its final report. Its input is closed now.
    pub(crate) fn output(mut self) -> Result<Value> {
        drop(self.client.stdin.take());
        let mut report = String::new();
        self.stdout.read_to_string(&mut report)?;
        let output = self.client.wait_with_output()?;
        if !output.status.success() {
            bail!("the client got no response: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(serde_json::from_str(&report)?)
    }
}
