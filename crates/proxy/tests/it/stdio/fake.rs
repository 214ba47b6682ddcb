//! A fake of a stdio server, for what no real one does on demand.

use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use skep_config::RunConfig;
use skep_proxy::{
    Proxy,
    runtime::{Attach, BoxRead, BoxWrite},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream},
    sync::mpsc,
};

use crate::fixture::Fixture;

/// What the fake does when it reads a line.
#[derive(Clone)]
pub(crate) enum Act {
    /// Writes a line.
    Send(String),
    /// Writes these bytes as they are.
    Write(Vec<u8>),
    /// Ends.
    Die,
}

/// A line that the fake has read.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedMessage {
    pub(crate) line: String,
    pub(crate) json: Value,
    /// Which process has read it: 0 for the first.
    pub(crate) run: usize,
}

impl ReceivedMessage {
    pub(crate) fn method(&self) -> &str {
        self.json["method"].as_str().unwrap_or_default()
    }

    /// A response with this result.
    pub(crate) fn result(&self, result: impl std::fmt::Display) -> Act {
        Act::Send(format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, self.json["id"]))
    }
}

type Script = Arc<dyn Fn(&ReceivedMessage) -> Vec<Act> + Send + Sync>;

/// Responds to `initialize`, and to the rest as scripted by a test. It records what it has read.
#[derive(Clone)]
pub(crate) struct Fake {
    script: Script,
    received: Arc<Mutex<Vec<ReceivedMessage>>>,
    acts: Arc<Mutex<Option<mpsc::UnboundedSender<Act>>>>,
    runs: Arc<AtomicUsize>,
}

impl Fake {
    pub(crate) fn new(script: impl Fn(&ReceivedMessage) -> Vec<Act> + Send + Sync + 'static) -> Self {
        let script: Script = Arc::new(move |received| match received.method() {
            "initialize" => {
                let version = &received.json["params"]["protocolVersion"];
                vec![received.result(json!({"protocolVersion": version, "serverInfo": {"name": "fake"}}))]
            }
            _ => script(received),
        });
        Self { script, received: Arc::default(), acts: Arc::default(), runs: Arc::default() }
    }

    /// One whose responses are all scripted by the test.
    pub(crate) fn raw(script: impl Fn(&ReceivedMessage) -> Vec<Act> + Send + Sync + 'static) -> Self {
        Self { script: Arc::new(script), ..Self::new(|_| Vec::new()) }
    }

    /// One that responds to every request with its parameters.
    pub(crate) fn echo() -> Self {
        Self::new(|received| match received.json.get("id") {
            Some(_) => vec![received.result(json!({"echo": received.json["params"]}))],
            None => Vec::new(),
        })
    }

    /// A proxy in front of it.
    pub(crate) async fn proxy(&self) -> Fixture {
        self.configured(json!({}), Duration::from_secs(20)).await
    }

    /// A proxy with more in its RunConfig, and another timeout.
    pub(crate) async fn configured(&self, more: Value, patience: Duration) -> Fixture {
        let mut config = json!({"name": "files", "transport": "stdio"});
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let config = RunConfig::parse(&config.to_string()).unwrap();
        Fixture::around(Proxy::with_attached(&config, self.clone(), patience).unwrap()).await
    }

    pub(crate) fn received(&self) -> Vec<ReceivedMessage> {
        self.received.lock().unwrap().clone()
    }

    /// The names of the methods that it has read.
    pub(crate) fn methods(&self) -> Vec<String> {
        self.received().iter().map(|received| received.method().to_owned()).collect()
    }

    /// Does something unsolicited.
    pub(crate) fn act(&self, act: Act) {
        self.acts.lock().unwrap().as_ref().unwrap().send(act).unwrap();
    }

    pub(crate) fn send(&self, message: Value) {
        self.act(Act::Send(message.to_string()));
    }

    /// Waits until it has read a line of which this is true.
    pub(crate) async fn received_where(
        &self,
        is_wanted: impl Fn(&ReceivedMessage) -> bool,
    ) -> ReceivedMessage {
        for _ in 0..2_000 {
            if let Some(received) = self.received().into_iter().find(&is_wanted) {
                return received;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("the server has not read it, but {:?}", self.received());
    }

    pub(crate) async fn received_method(&self, method: &str) -> ReceivedMessage {
        self.received_where(|received| received.method() == method).await
    }

    async fn run(
        self,
        input: DuplexStream,
        mut output: DuplexStream,
        mut acts: mpsc::UnboundedReceiver<Act>,
    ) {
        let run = self.runs.fetch_add(1, Ordering::SeqCst);
        let mut lines = BufReader::new(input).lines();
        loop {
            let acts = tokio::select! {
                line = lines.next_line() => {
                    let Ok(Some(line)) = line else { return };
                    let received = ReceivedMessage { json: serde_json::from_str(&line).unwrap(), line, run };
                    self.received.lock().unwrap().push(received.clone());
                    (self.script)(&received)
                }
                act = acts.recv() => act.into_iter().collect(),
            };
            for act in acts {
                let bytes = match act {
                    Act::Send(line) => format!("{line}\n").into_bytes(),
                    Act::Write(bytes) => bytes,
                    Act::Die => return,
                };
                if output.write_all(&bytes).await.is_err() {
                    return;
                }
            }
        }
    }
}

impl Attach for Fake {
    async fn attach(&self) -> io::Result<(BoxRead, BoxWrite)> {
        let (input, to_input) = tokio::io::duplex(1 << 16);
        let (from_output, output) = tokio::io::duplex(1 << 16);
        let (sender, acts) = mpsc::unbounded_channel();
        *self.acts.lock().unwrap() = Some(sender);
        tokio::spawn(self.clone().run(input, output, acts));
        Ok((Box::new(from_output), Box::new(to_input)))
    }
}
