//! A container engine, faked: it speaks the paths of Docker's Engine API that `skep run` uses, and what it calls a container
//! is a process of this machine, with neither a file system nor a network of its own.

mod containers;
mod http;
mod images;
mod processes;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::net::{UnixListener, UnixStream},
    path::PathBuf,
    process::Child,
    sync::{Arc, Mutex, MutexGuard},
    thread,
};

use serde_json::{Value, json};

use self::http::{Request, answer, parameter, refuse};

pub(super) struct FakeEngine {
    folder: PathBuf,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    /// What each image runs.
    programs: BTreeMap<String, Vec<String>>,
    /// Those that need not be got any more.
    present: BTreeSet<String>,
    containers: BTreeMap<String, Container>,
    /// Whether an image that is being got stays where it is.
    held: bool,
    /// How many requests to remove a container are still to fail.
    removals_to_fail: usize,
    /// What containers were made of, whether they are still there or not.
    made: Vec<Value>,
}

struct Container {
    body: Value,
    attached: Option<UnixStream>,
    process: Option<Child>,
    status: Option<i32>,
}

impl FakeEngine {
    /// An engine that can get these images: each is the command line of a process.
    pub(super) fn start(images: &[(&str, &str)]) -> Self {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("skep-engine-test-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let words = |line: &str| line.split_whitespace().map(ToOwned::to_owned).collect();
        let programs = images.iter().map(|(image, line)| ((*image).to_owned(), words(line))).collect();
        let inner = Arc::new(Mutex::new(Inner { programs, ..Inner::default() }));
        let engine = Self { folder, inner: inner.clone() };
        let listener = UnixListener::bind(engine.socket()).unwrap();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let inner = inner.clone();
                thread::spawn(move || served(stream, &inner));
            }
        });
        engine
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("engine.sock")
    }

    /// What `DOCKER_HOST` must be for it to be found.
    pub(super) fn host(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    /// Lets no image go on after its first layer, or lets them go on again.
    pub(super) fn hold(&self, held: bool) {
        self.inner().held = held;
    }

    /// Fails to remove a container this often, as Podman does if one ends by itself at the very moment.
    pub(super) fn fail_removals(&self, times: usize) {
        self.inner().removals_to_fail = times;
    }

    /// How many containers there are, whether they run or not.
    pub(super) fn count(&self) -> usize {
        self.inner().containers.len()
    }

    /// What containers were made of, from the first to the last.
    pub(super) fn made(&self) -> Vec<Value> {
        self.inner().made.clone()
    }

    /// The processes of the containers that run.
    pub(super) fn processes(&self) -> Vec<u32> {
        let mut inner = self.inner();
        let running = inner.containers.values_mut().filter_map(|container| {
            let process = container.process.as_mut()?;
            process.try_wait().unwrap().is_none().then(|| process.id())
        });
        running.collect()
    }
}

impl Drop for FakeEngine {
    fn drop(&mut self) {
        for container in self.inner().containers.values_mut() {
            if let Some(process) = &mut container.process {
                process.kill().ok();
                process.wait().ok();
            }
        }
        fs::remove_dir_all(&self.folder).ok();
    }
}

/// Answers what comes over one connection.
fn served(stream: UnixStream, inner: &Mutex<Inner>) {
    let Some(Request { method, path, query, body }) = Request::read(&stream) else { return };
    let steps: Vec<&str> = path.trim_matches('/').split('/').collect();
    match (method.as_str(), steps.as_slice()) {
        ("GET", ["_ping"]) => answer(stream, "200 OK", "OK"),
        ("GET", ["images", .., "json"]) => {
            images::looked_up(stream, inner, path.trim_start_matches("/images/").trim_end_matches("/json"))
        }
        ("POST", ["images", "create"]) => {
            images::pulled(stream, inner, &parameter(&query, "fromImage"), &parameter(&query, "tag"))
        }
        ("POST", ["containers", "create"]) => containers::created(stream, inner, body),
        ("GET", ["containers", "json"]) => containers::listed(stream, inner, &parameter(&query, "filters")),
        ("POST", ["containers", id, "attach"]) => containers::attached(stream, inner, id),
        ("POST", ["containers", id, "start"]) => processes::started(stream, inner, id),
        ("POST", ["containers", id, "wait"]) => match processes::ended(inner, id) {
            Some(status) => answer(stream, "200 OK", &json!({"StatusCode": status}).to_string()),
            None => refuse(stream, "404 Not Found", "No such container"),
        },
        ("POST", ["containers", id, "stop"]) => processes::stopped(stream, inner, id),
        ("DELETE", ["containers", id]) => containers::removed(stream, inner, id),
        _ => refuse(stream, "404 Not Found", "page not found"),
    }
}
