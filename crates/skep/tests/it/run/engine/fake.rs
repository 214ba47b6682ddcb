//! A fake container engine: it serves the paths of Docker's Engine API that `skep run` uses, and its containers are
//! processes of this machine, with the file system and the network of this machine.

mod containers;
mod http;
mod images;
mod processes;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpListener},
    os::unix::net::{UnixListener, UnixStream},
    path::PathBuf,
    process::Child,
    sync::{Arc, Mutex, MutexGuard},
    thread,
};

use serde_json::{Value, json};

use self::http::{Request, parameter, respond, respond_error};

pub(super) struct FakeEngine {
    folder: PathBuf,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    /// The command line of each image.
    programs: BTreeMap<String, Vec<String>>,
    /// The pulled images.
    present: BTreeSet<String>,
    containers: BTreeMap<String, Container>,
    /// Whether a pull makes no progress.
    held: bool,
    /// Whether requests get no response any more.
    hung: bool,
    /// How many requests to remove a container are still to fail.
    removals_to_fail: usize,
    /// The specifications of all containers, including removed ones.
    made: Vec<Value>,
    /// The credentials of all pulls.
    credentials: Vec<Value>,
}

struct Container {
    body: Value,
    attached: Option<UnixStream>,
    process: Option<Child>,
    status: Option<i32>,
}

impl FakeEngine {
    /// An engine that can pull these images: each is the command line of a process.
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

    /// The value of `DOCKER_HOST` for this engine.
    pub(super) fn host(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    /// Holds all pulls after their first layer, or continues them.
    pub(super) fn hold(&self, held: bool) {
        self.inner().held = held;
    }

    /// Responds to no request any more.
    pub(super) fn hang(&self) {
        self.inner().hung = true;
    }

    /// Fails to remove a container this often, as Podman does if one exits at that moment.
    pub(super) fn fail_removals(&self, times: usize) {
        self.inner().removals_to_fail = times;
    }

    /// How many containers there are, whether they run or not.
    pub(super) fn count(&self) -> usize {
        self.inner().containers.len()
    }

    /// The specifications of all containers, in the order of their creation.
    pub(super) fn made(&self) -> Vec<Value> {
        self.inner().made.clone()
    }

    /// The credentials that images were pulled with.
    pub(super) fn credentials(&self) -> Vec<Value> {
        self.inner().credentials.clone()
    }

    /// A port of this machine whose connections are forwarded to the socket.
    pub(super) fn forwarded_port(&self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, socket) = (listener.local_addr().unwrap(), self.socket());
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let Ok(inner) = UnixStream::connect(&socket) else { return };
                let (mut from, mut to) = (stream.try_clone().unwrap(), inner.try_clone().unwrap());
                thread::spawn(move || {
                    forward(&mut from, &mut to);
                    to.shutdown(Shutdown::Write).ok();
                });
                let (mut from, mut to) = (inner, stream);
                thread::spawn(move || {
                    forward(&mut from, &mut to);
                    to.shutdown(Shutdown::Write).ok();
                });
            }
        });
        address
    }

    /// The processes of the running containers.
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

/// Chunk by chunk: a copy within the kernel may wait for more.
fn forward(from: &mut impl Read, to: &mut impl Write) {
    let mut chunk = [0; 4096];
    while let Ok(read @ 1..) = from.read(&mut chunk) {
        if to.write_all(&chunk[..read]).is_err() {
            return;
        }
    }
}

/// Responds to the request of one connection.
fn served(stream: UnixStream, inner: &Mutex<Inner>) {
    let Some(Request { method, path, query, body, auth }) = Request::read(&stream) else { return };
    while inner.lock().unwrap().hung {
        thread::park();
    }
    let steps: Vec<&str> = path.trim_matches('/').split('/').collect();
    match (method.as_str(), steps.as_slice()) {
        ("GET", ["_ping"]) => respond(stream, "200 OK", "OK"),
        ("GET", ["images", .., "json"]) => {
            images::looked_up(stream, inner, path.trim_start_matches("/images/").trim_end_matches("/json"))
        }
        ("POST", ["images", "create"]) => {
            inner.lock().unwrap().credentials.extend(auth);
            images::pulled(stream, inner, &parameter(&query, "fromImage"), &parameter(&query, "tag"))
        }
        ("POST", ["containers", "create"]) => containers::created(stream, inner, body),
        ("GET", ["containers", "json"]) => containers::listed(stream, inner, &parameter(&query, "filters")),
        ("POST", ["containers", id, "attach"]) => containers::attached(stream, inner, id),
        ("POST", ["containers", id, "start"]) => processes::started(stream, inner, id),
        ("POST", ["containers", id, "wait"]) => match processes::ended(inner, id) {
            Some(status) => respond(stream, "200 OK", &json!({"StatusCode": status}).to_string()),
            None => respond_error(stream, "404 Not Found", "No such container"),
        },
        ("POST", ["containers", id, "stop"]) => processes::stopped(stream, inner, id),
        ("DELETE", ["containers", id]) => containers::removed(stream, inner, id),
        _ => respond_error(stream, "404 Not Found", "page not found"),
    }
}
