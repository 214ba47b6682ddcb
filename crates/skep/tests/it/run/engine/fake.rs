//! A container engine, faked: it speaks the paths of Docker's Engine API that `skep run` uses, and what it calls a container
//! is a process of this machine, with neither a file system nor a network of its own.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::net::{UnixListener, UnixStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, MutexGuard},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

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
fn served(stream: UnixStream, inner: &Arc<Mutex<Inner>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut head = String::new();
    let mut length = 0;
    while reader.read_line(&mut head).unwrap_or(0) > 2 {
        let line = head.lines().last().unwrap_or_default().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    let mut words = head.split_whitespace();
    let (Some(method), Some(target)) = (words.next(), words.next()) else { return };
    reader.read_exact(&mut body).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let path = target.strip_prefix("/v1.47").unwrap_or(target);
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let steps: Vec<&str> = path.trim_matches('/').split('/').collect();
    match (method, steps.as_slice()) {
        ("GET", ["_ping"]) => answer(stream, "200 OK", "OK"),
        ("GET", ["images", .., "json"]) => {
            let image = path.strip_prefix("/images/").and_then(|rest| rest.strip_suffix("/json")).unwrap();
            let known = inner.lock().unwrap().present.contains(image);
            if known {
                answer(stream, "200 OK", "{}")
            } else {
                refuse(stream, "404 Not Found", "No such image")
            }
        }
        ("POST", ["images", "create"]) => {
            pulled(stream, inner, &parameter(query, "fromImage"), &parameter(query, "tag"))
        }
        ("POST", ["containers", "create"]) => created(stream, inner, body),
        ("GET", ["containers", "json"]) => listed(stream, inner, &parameter(query, "filters")),
        ("POST", ["containers", id, "attach"]) => {
            let mut attached = stream.try_clone().unwrap();
            let upgraded = "HTTP/1.1 101 UPGRADED\r\ncontent-type: application/vnd.docker.multiplexed-stream\r\n\
                            connection: Upgrade\r\nupgrade: tcp\r\n\r\n";
            // Nobody starts it before it is known who is attached.
            let mut inner = inner.lock().unwrap();
            attached.write_all(upgraded.as_bytes()).unwrap();
            inner.containers.get_mut(*id).unwrap().attached = Some(attached);
        }
        ("POST", ["containers", id, "start"]) => started(stream, inner, id),
        ("POST", ["containers", id, "wait"]) => match ended(inner, id) {
            Some(status) => answer(stream, "200 OK", &json!({"StatusCode": status}).to_string()),
            None => refuse(stream, "404 Not Found", "No such container"),
        },
        ("POST", ["containers", id, "stop"]) => {
            let process = inner.lock().unwrap().containers[*id].process.as_ref().map(Child::id);
            if let Some(process) = process {
                Command::new("kill").arg(process.to_string()).status().unwrap();
            }
            ended(inner, id);
            answer(stream, "204 No Content", "");
        }
        ("DELETE", ["containers", id]) => {
            let removed = inner.lock().unwrap().containers.remove(*id);
            match removed {
                Some(mut container) => {
                    if let Some(process) = &mut container.process {
                        process.kill().ok();
                        process.wait().unwrap();
                    }
                    answer(stream, "204 No Content", "");
                }
                None => refuse(stream, "404 Not Found", "No such container"),
            }
        }
        _ => refuse(stream, "404 Not Found", "page not found"),
    }
}

fn answer(mut stream: UnixStream, status: &str, body: &str) {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\napi-version: 1.47\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .ok();
}

fn refuse(stream: UnixStream, status: &str, message: &str) {
    answer(stream, status, &json!({"message": message}).to_string());
}

fn parameter(query: &str, name: &str) -> String {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let value = pairs.filter(|(key, _)| *key == name).map(|(_, value)| value).next().unwrap_or_default();
    let mut bytes = Vec::new();
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
            }
            other => other,
        });
    }
    String::from_utf8(bytes).unwrap()
}

/// Gets an image, in two steps that are told one after the other.
fn pulled(mut stream: UnixStream, inner: &Mutex<Inner>, name: &str, tag: &str) {
    let image = format!("{name}:{tag}");
    let known = inner.lock().unwrap().programs.contains_key(&image);
    let layer = |now: u32| {
        let detail = json!({"current": now, "total": 100});
        json!({"status": "Downloading", "id": "a", "progressDetail": detail}).to_string()
    };
    let lines = if known {
        vec![
            layer(40),
            layer(100),
            json!({"status": format!("Downloaded newer image for {image}")}).to_string(),
        ]
    } else {
        let error = "manifest unknown";
        vec![json!({"errorDetail": {"message": error}, "error": error}).to_string()]
    };
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")
        .unwrap();
    for line in lines {
        write!(stream, "{:x}\r\n{line}\r\n\r\n", line.len() + 2).ok();
        while inner.lock().unwrap().held {
            thread::sleep(Duration::from_millis(20));
        }
    }
    if known {
        inner.lock().unwrap().present.insert(image);
    }
    write!(stream, "0\r\n\r\n").ok();
}

fn created(stream: UnixStream, inner: &Mutex<Inner>, body: Value) {
    let mut inner = inner.lock().unwrap();
    if !inner.present.contains(body["Image"].as_str().unwrap()) {
        return refuse(stream, "404 Not Found", "No such image");
    }
    let id = format!("c{}", inner.made.len());
    inner.made.push(body.clone());
    inner.containers.insert(id.clone(), Container { body, attached: None, process: None, status: None });
    answer(stream, "201 Created", &json!({"Id": id, "Warnings": []}).to_string());
}

fn listed(stream: UnixStream, inner: &Mutex<Inner>, filters: &str) {
    let filters: Value = serde_json::from_str(filters).unwrap();
    let (label, wanted) = filters["label"][0].as_str().unwrap().split_once('=').unwrap();
    let inner = inner.lock().unwrap();
    let found = inner.containers.iter().filter(|(_, container)| container.body["Labels"][label] == wanted);
    let list: Vec<Value> =
        found.map(|(id, container)| json!({"Id": id, "Labels": container.body["Labels"]})).collect();
    answer(stream, "200 OK", &Value::Array(list).to_string());
}

fn started(stream: UnixStream, shared: &Arc<Mutex<Inner>>, id: &str) {
    let mut inner = shared.lock().unwrap();
    let container = &inner.containers[id];
    let program = inner.programs[container.body["Image"].as_str().unwrap()].clone();
    let env = container.body["Env"].as_array().unwrap().iter().map(|pair| pair.as_str().unwrap());
    let spawned = Command::new(&program[0])
        .args(&program[1..])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .envs(env.map(|pair| pair.split_once('=').unwrap()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut process = match spawned {
        Ok(process) => process,
        Err(error) => return refuse(stream, "400 Bad Request", &format!("exec: {}: {error}", program[0])),
    };
    let container = inner.containers.get_mut(id).unwrap();
    publish(&container.body, shared, id);
    let attached = container.attached.clone_stream();
    let mut input = process.stdin.take().unwrap();
    let mut from = attached.lock().unwrap().try_clone().unwrap();
    // Chunk by chunk: a copy within the kernel may wait for more.
    thread::spawn(move || {
        let mut chunk = [0; 4096];
        while let Ok(read @ 1..) = from.read(&mut chunk) {
            input.write_all(&chunk[..read]).ok();
        }
    });
    let output = framed(1, process.stdout.take().unwrap(), &attached);
    let errors = framed(2, process.stderr.take().unwrap(), &attached);
    thread::spawn(move || {
        output.join().unwrap();
        errors.join().unwrap();
        attached.lock().unwrap().shutdown(std::net::Shutdown::Both).ok();
    });
    container.process = Some(process);
    answer(stream, "204 No Content", "");
}

trait CloneStream {
    fn clone_stream(&self) -> Arc<Mutex<UnixStream>>;
}

impl CloneStream for Option<UnixStream> {
    fn clone_stream(&self) -> Arc<Mutex<UnixStream>> {
        Arc::new(Mutex::new(self.as_ref().expect("nobody is attached").try_clone().unwrap()))
    }
}

/// Copies what a process writes into frames of this kind.
fn framed(
    kind: u8,
    mut from: impl Read + Send + 'static,
    to: &Arc<Mutex<UnixStream>>,
) -> thread::JoinHandle<()> {
    let to = to.clone();
    thread::spawn(move || {
        let mut chunk = [0; 4096];
        while let Ok(read @ 1..) = from.read(&mut chunk) {
            let length = u32::try_from(read).unwrap().to_be_bytes();
            let frame = [&[kind, 0, 0, 0][..], &length, &chunk[..read]].concat();
            to.lock().unwrap().write_all(&frame).ok();
        }
    })
}

/// Leads the published port to the one of the process, for as long as the container is there.
fn publish(body: &Value, inner: &Arc<Mutex<Inner>>, id: &str) {
    let Some((port, here)) =
        body["HostConfig"]["PortBindings"].as_object().and_then(|ports| ports.iter().next())
    else {
        return;
    };
    let port: u16 = port.strip_suffix("/tcp").unwrap().parse().unwrap();
    let place = format!("{}:{}", here[0]["HostIp"].as_str().unwrap(), here[0]["HostPort"].as_str().unwrap());
    let listener = TcpListener::bind(place).unwrap();
    listener.set_nonblocking(true).unwrap();
    let (inner, id) = (inner.clone(), id.to_owned());
    thread::spawn(move || {
        while inner.lock().unwrap().containers.contains_key(&id) {
            let Ok((client, _)) = listener.accept() else {
                thread::sleep(Duration::from_millis(10));
                continue;
            };
            client.set_nonblocking(false).unwrap();
            if let Ok(server) = TcpStream::connect(("127.0.0.1", port)) {
                let (mut a, mut b) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let (mut c, mut d) = (client, server);
                thread::spawn(move || {
                    std::io::copy(&mut a, &mut b).ok();
                    b.shutdown(std::net::Shutdown::Write).ok();
                });
                thread::spawn(move || {
                    std::io::copy(&mut d, &mut c).ok();
                    c.shutdown(std::net::Shutdown::Write).ok();
                });
            }
        }
    });
}

/// Waits until the process of a container has ended.
fn ended(inner: &Mutex<Inner>, id: &str) -> Option<i32> {
    loop {
        let mut held = inner.lock().unwrap();
        let container = held.containers.get_mut(id)?;
        if let Some(process) = &mut container.process
            && let Some(status) = process.try_wait().unwrap()
        {
            container.status = status.code();
            return Some(container.status.unwrap_or(137));
        }
        drop(held);
        thread::sleep(Duration::from_millis(20));
    }
}
