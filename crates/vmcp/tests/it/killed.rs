//! Workflows whose backends are processes that are killed.

use std::{
    fs::{self, File},
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use skep_testkit::process::Process;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

use crate::{Server, backend::Backend, client::text, until};

const FOLDER: &str = "SKEP_TEST_BACKEND";
const HANGS: &str = "SKEP_TEST_BACKEND_HANGS";

/// The process of a backend, which runs this function alone.
#[tokio::test]
#[ignore = "it is a process of other tests"]
async fn backend_process() {
    let Ok(folder) = std::env::var(FOLDER).map(PathBuf::from) else { return };
    let log = File::options().create(true).append(true).open(folder.join("calls")).unwrap();
    let backend = Backend::logging(log, std::env::var(HANGS).is_ok()).await;
    let written = folder.join("address.new");
    fs::write(&written, backend.address().to_string()).unwrap();
    fs::rename(&written, folder.join("address")).unwrap();
    std::future::pending::<()>().await;
}

/// A backend at an address that stays the same while its process is killed and replaced. Who connects while there is none waits
/// for the next.
struct Killable {
    folder: PathBuf,
    address: SocketAddr,
    target: Arc<watch::Sender<Option<SocketAddr>>>,
    process: Option<Process>,
    forwards: JoinHandle<()>,
}

impl Killable {
    async fn start(name: &str, hangs: bool) -> Self {
        let folder = std::env::temp_dir().join(format!("skep-killed-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let target = Arc::new(watch::Sender::new(None));
        let forwards = tokio::spawn(forward(listener, target.clone()));
        let mut backend = Self { folder, address, target, process: None, forwards };
        backend.run(hangs).await;
        backend
    }

    /// Starts a process.
    async fn run(&mut self, hangs: bool) {
        let file = self.folder.join("address");
        fs::remove_file(&file).ok();
        let mut args = vec![format!("{FOLDER}={}", self.folder.display())];
        args.extend(hangs.then(|| format!("{HANGS}=1")));
        args.push(std::env::current_exe().unwrap().display().to_string());
        args.extend(["--exact", "killed::backend_process", "--ignored", "--nocapture"].map(str::to_owned));
        self.process = Some(Process::start(Path::new("/usr/bin/env"), args, &self.folder).unwrap());
        until(|| file.exists()).await;
        let address = fs::read_to_string(&file).unwrap().parse().unwrap();
        self.target.send_replace(Some(address));
    }

    fn kill(&mut self) {
        self.target.send_replace(None);
        self.process = None;
    }

    /// How many calls its processes have run.
    fn calls(&self) -> usize {
        fs::read_to_string(self.folder.join("calls")).unwrap_or_default().lines().count()
    }
}

impl Drop for Killable {
    fn drop(&mut self) {
        self.forwards.abort();
        self.process = None;
        fs::remove_dir_all(&self.folder).ok();
    }
}

async fn forward(listener: TcpListener, target: Arc<watch::Sender<Option<SocketAddr>>>) {
    loop {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut target = target.subscribe();
        tokio::spawn(async move {
            let address = target.wait_for(Option::is_some).await.ok().and_then(|address| *address);
            if let Some(address) = address
                && let Ok(mut server) = TcpStream::connect(address).await
            {
                copy_bidirectional(&mut client, &mut server).await.ok();
            }
        });
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OnError {
    Abort,
    Continue,
    Retry,
}

impl OnError {
    fn text(self) -> &'static str {
        match self {
            Self::Abort => "{action: abort}",
            Self::Continue => "{action: continue}",
            Self::Retry => "{action: retry, retryCount: 2, retryDelay: 10ms}",
        }
    }
}

const NAMES: [&str; 4] = ["first", "left", "right", "last"];

/// What each step waits for: two run beside each other.
const BEFORE: [&[&str]; 4] = [&[], &["first"], &["first"], &["left", "right"]];

/// Whether a step waits for another, also by way of others.
fn follows(step: &str, other: &str) -> bool {
    let place = NAMES.iter().position(|name| *name == step).unwrap();
    BEFORE[place].iter().any(|before| *before == other || follows(before, other))
}

#[tokio::test]
async fn a_process_killed_at_any_step_runs_it_as_often_as_the_retries_allow_and_no_step_follows_an_abort() {
    for on_error in [OnError::Abort, OnError::Continue, OnError::Retry] {
        for killed in 0..NAMES.len() {
            run(on_error, killed).await;
        }
    }
}

async fn run(on_error: OnError, killed: usize) {
    let start = |place: usize| Killable::start(NAMES[place], place == killed);
    let mut backends = futures::future::join_all((0..NAMES.len()).map(start)).await;
    let urls: Vec<(&str, String)> = NAMES
        .into_iter()
        .zip(&backends)
        .map(|(name, backend)| (name, format!("http://{}/mcp", backend.address)))
        .collect();
    let steps = NAMES.iter().zip(BEFORE).enumerate().map(|(place, (name, before))| {
        let on_error =
            if place == killed { format!(", onError: {}", on_error.text()) } else { String::new() };
        format!("{{id: {name}, tool: {name}_echo, dependsOn: [{}]{on_error}}}", before.join(", "))
    });
    let steps = steps.collect::<Vec<_>>().join(", ");
    let tools = format!("compositeTools: [{{name: combo, description: d, steps: [{steps}]}}]\n");
    let server = Server::with_urls(&urls, &tools, None).await;
    let client = server.client().await;
    let attempts = if on_error == OnError::Retry { 3 } else { 1 };
    let kills = async {
        for attempt in 1..=attempts {
            until(|| backends[killed].calls() == attempt).await;
            backends[killed].kill();
            if attempt < attempts {
                backends[killed].run(true).await;
            }
        }
        // For whatever would come after the last attempt.
        backends[killed].run(false).await;
    };
    let (response, ()) = tokio::join!(client.call("combo"), kills);
    let (message, is_error) = text(&response);
    let ends = on_error == OnError::Continue;
    assert_eq!(is_error, !ends, "{on_error:?} {killed}: {response}");
    assert!(ends || message.contains(&format!("step {:?} failed", NAMES[killed])), "{message}");
    for (place, backend) in backends.iter().enumerate() {
        let (calls, name) = (backend.calls(), NAMES[place]);
        let case = format!("{name}, {on_error:?}, killed at {}", NAMES[killed]);
        match () {
            () if place == killed => assert_eq!(calls, attempts, "{case}"),
            () if follows(name, NAMES[killed]) => assert_eq!(calls, usize::from(ends), "{case}"),
            // One beside it may have been cancelled.
            () if !ends && !follows(NAMES[killed], name) => assert!(calls <= 1, "{case}"),
            () => assert_eq!(calls, 1, "{case}"),
        }
    }
    server.stop().await;
}
