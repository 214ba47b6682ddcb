//! Third-party programs, which are installed once, and servers that run beside a test.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use skep_testkit::process::Process;

/// Our server, which is written with the Rust SDK of MCP.
pub(crate) const FIXTURE: &str = env!("CARGO_BIN_EXE_skep-fixture-server");

/// How long a program may take to print its URL.
const PATIENCE: Duration = Duration::from_secs(60);

/// Installs something by a script in `hack/`, once, and returns its path.
pub(crate) fn install(script: &str, name: &str) -> PathBuf {
    skep_testkit::install(script, &[name]).unwrap()
}

/// A folder of the test for the files of programs.
pub(crate) fn folder() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("interop-{}-{number}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A server that speaks HTTP.
pub(crate) struct HttpServer {
    pub(crate) url: String,
    folder: PathBuf,
    _process: Process,
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).ok();
    }
}

impl HttpServer {
    /// Starts a server that prints its address, and waits for that.
    pub(crate) async fn start(command: &[String]) -> Self {
        let folder = folder();
        let program = Path::new(&command[0]);
        let process = Process::start(program, &command[1..], &folder).unwrap();
        let log = folder.join(program.file_name().unwrap()).with_extension("log");
        let deadline = Instant::now() + PATIENCE;
        loop {
            let text = fs::read_to_string(&log).unwrap_or_default();
            let address = text.lines().find_map(|line| line.split_once("http://").map(|(_, rest)| rest));
            if let Some(address) = address.and_then(|rest| rest.split_whitespace().next()) {
                return Self { url: format!("http://{address}"), folder, _process: process };
            }
            process.check().unwrap();
            assert!(Instant::now() < deadline, "{command:?} does not print its URL: {text}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) fn port(&self) -> u16 {
        let (_, rest) = self.url.rsplit_once(':').unwrap();
        rest.split('/').next().unwrap().parse().unwrap()
    }
}
