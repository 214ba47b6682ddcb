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
    Say(String),
    /// Writes these bytes as they are.
    Write(Vec<u8>),
    /// Ends.
    Die,
}

/// A line that the fake has read.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    pub(crate) line: String,
    pub(crate) json: Value,
    /// Which process has read it: 0 for the first.
    pub(crate) run: usize,
}

impl Heard {
    pub(crate) fn method(&self) -> &str {
        self.json["method"].as_str().unwrap_or_default()
    }

    /// An answer with this result.
    pub(crate) fn result(&self, result: impl std::fmt::Display) -> Act {
        Act::Say(format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, self.json["id"]))
    }
}

type Script = Arc<dyn Fn(&Heard) -> Vec<Act> + Send + Sync>;

/// Answers `initialize` and does for the rest what a test tells it. It remembers what it has read.
#[derive(Clone)]
pub(crate) struct Fake {
    script: Script,
    heard: Arc<Mutex<Vec<Heard>>>,
    says: Arc<Mutex<Option<mpsc::UnboundedSender<Act>>>>,
    runs: Arc<AtomicUsize>,
}

impl Fake {
    pub(crate) fn new(script: impl Fn(&Heard) -> Vec<Act> + Send + Sync + 'static) -> Self {
        let script: Script = Arc::new(move |heard| match heard.method() {
            "initialize" => {
                let version = &heard.json["params"]["protocolVersion"];
                vec![heard.result(json!({"protocolVersion": version, "serverInfo": {"name": "fake"}}))]
            }
            _ => script(heard),
        });
        Self { script, heard: Arc::default(), says: Arc::default(), runs: Arc::default() }
    }

    /// One whose every answer is made by the test.
    pub(crate) fn raw(script: impl Fn(&Heard) -> Vec<Act> + Send + Sync + 'static) -> Self {
        Self { script: Arc::new(script), ..Self::new(|_| Vec::new()) }
    }

    /// One that answers everything with its parameters.
    pub(crate) fn echo() -> Self {
        Self::new(|heard| match heard.json.get("id") {
            Some(_) => vec![heard.result(json!({"echo": heard.json["params"]}))],
            None => Vec::new(),
        })
    }

    /// A proxy in front of it.
    pub(crate) async fn proxied(&self) -> Fixture {
        self.configured(json!({}), Duration::from_secs(20)).await
    }

    /// A proxy with more in its RunConfig, and another patience.
    pub(crate) async fn configured(&self, more: Value, patience: Duration) -> Fixture {
        let mut config = json!({"name": "files", "transport": "stdio"});
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let config = RunConfig::parse(&config.to_string()).unwrap();
        Fixture::around(Proxy::attached(&config, self.clone(), patience).unwrap()).await
    }

    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }

    /// The names of the methods that it has read.
    pub(crate) fn methods(&self) -> Vec<String> {
        self.heard().iter().map(|heard| heard.method().to_owned()).collect()
    }

    /// Does something unasked.
    pub(crate) fn act(&self, act: Act) {
        self.says.lock().unwrap().as_ref().unwrap().send(act).unwrap();
    }

    pub(crate) fn say(&self, message: Value) {
        self.act(Act::Say(message.to_string()));
    }

    /// Waits until it has read a line of which this is true.
    pub(crate) async fn heard_where(&self, wanted: impl Fn(&Heard) -> bool) -> Heard {
        for _ in 0..2_000 {
            if let Some(heard) = self.heard().into_iter().find(&wanted) {
                return heard;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("the server has not read it, but {:?}", self.heard());
    }

    pub(crate) async fn heard_method(&self, method: &str) -> Heard {
        self.heard_where(|heard| heard.method() == method).await
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
                    let heard = Heard { json: serde_json::from_str(&line).unwrap(), line, run };
                    self.heard.lock().unwrap().push(heard.clone());
                    (self.script)(&heard)
                }
                act = acts.recv() => act.into_iter().collect(),
            };
            for act in acts {
                let bytes = match act {
                    Act::Say(line) => format!("{line}\n").into_bytes(),
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
        *self.says.lock().unwrap() = Some(sender);
        tokio::spawn(self.clone().run(input, output, acts));
        Ok((Box::new(from_output), Box::new(to_input)))
    }
}
