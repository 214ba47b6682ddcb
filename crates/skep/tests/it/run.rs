//! `skep run`: servers from manifests, with no cluster.

mod authorization_server;
mod clients;
mod command_line;
mod console;
mod detached;
mod end;
mod engine;
mod errors;
mod examples;
mod files;
mod identity_provider;
mod json;
mod judges;
mod life;
mod oidc;
mod policies;
mod ports;
mod real;
mod trouble;
mod virtual_servers;

use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

/// The timeout of waiting.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with a file of manifests.
struct Manifests(PathBuf);

impl Manifests {
    fn new(text: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("skep-run-test-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let manifests = Self(folder);
        manifests.write(text);
        manifests
    }

    fn file(&self) -> PathBuf {
        self.0.join("servers.yaml")
    }

    fn write(&self, text: &str) {
        fs::write(self.file(), text).unwrap();
    }

    /// The output of a run that exits by itself.
    fn ended(&self) -> Output {
        self.command().output().unwrap()
    }

    fn command(&self) -> Command {
        let mut command = self.skep_run();
        command.arg("-f").arg(self.file());
        command
    }

    /// `skep run` with nothing to run yet.
    fn skep_run(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_skep"));
        command.arg("run");
        self.isolate(&mut command);
        command
    }

    /// Tests use neither the container engine of this machine nor the state of its user.
    fn isolate(&self, command: &mut Command) {
        command.env("DOCKER_HOST", "unix:///nowhere/engine.sock").env("XDG_STATE_HOME", self.0.join("state"));
    }

    /// Programs of these names that run the demo server, after they have printed their variables. Returns a search path.
    fn programs(&self, names: &[&str]) -> String {
        let skep = env!("CARGO_BIN_EXE_skep");
        let script = format!("#!/bin/sh\nenv >&2\necho \"args: $*\" >&2\nexec {skep} demo-server\n");
        names.iter().fold(String::new(), |_, name| self.program(name, &script))
    }

    /// A program with this text, and a search path with its folder.
    fn program(&self, name: &str, text: &str) -> String {
        let folder = self.0.join("bin");
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join(name);
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        format!("{}:{}", folder.display(), std::env::var("PATH").unwrap())
    }
}

impl Drop for Manifests {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// `skep run` as a process, with its output in a file.
struct Run {
    manifests: Manifests,
    process: Child,
}

impl Run {
    fn start(text: &str) -> Self {
        let manifests = Manifests::new(text);
        let command = manifests.command();
        Self::of(manifests, command)
    }

    fn of(manifests: Manifests, mut command: Command) -> Self {
        let output = fs::File::create(manifests.0.join("output")).unwrap();
        let process =
            command.stdin(Stdio::null()).stderr(output.try_clone().unwrap()).stdout(output).spawn().unwrap();
        Self { manifests, process }
    }

    fn output(&self) -> String {
        fs::read_to_string(self.manifests.0.join("output")).unwrap()
    }

    /// Waits until it prints this, and returns all of its output.
    fn expect_output(&self, text: &str) -> String {
        let output = until(|| Some(self.output()).filter(|output| output.contains(text)));
        output.unwrap_or_else(|| panic!("it does not print {text:?}: {}", self.output()))
    }

    /// The line of the table that begins with this name.
    fn row(&self, name: &str) -> String {
        let output = self.expect_output("For an MCP client:");
        let row = output.lines().rfind(|line| line.starts_with(&format!("{name} ")));
        row.unwrap_or_else(|| panic!("no {name} in {output}")).to_owned()
    }

    /// A client of the server of this name.
    fn client(&self, name: &str) -> Client {
        Client::new(self.address(name))
    }

    /// The URL of the server of this name.
    fn address(&self, name: &str) -> SocketAddr {
        let row = self.row(name);
        let url = row.split_whitespace().nth(1).unwrap();
        let address = url.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/mcp"));
        address.unwrap_or_else(|| panic!("{}", self.output())).parse().unwrap()
    }

    /// The configuration for a client.
    fn pasted(&self) -> Value {
        let output = self.expect_output("For an MCP client:\n{");
        let pasted = output.lines().find(|line| line.starts_with('{')).unwrap();
        serde_json::from_str(pasted).unwrap()
    }

    /// The processes that it has started, by a word of their command lines.
    fn children(&self, word: &str) -> Vec<u32> {
        let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let is_child = |pid: &u32| {
            let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
            let parent =
                read("stat").rsplit(") ").next().and_then(|stat| stat.split(' ').nth(1)?.parse().ok());
            parent == Some(self.process.id()) && read("cmdline").contains(word)
        };
        pids.filter(is_child).collect()
    }

    /// The only such process, once it exists.
    fn child(&self, word: &str) -> u32 {
        let child = until(|| match self.children(word).as_slice() {
            [child] => Some(*child),
            _ => None,
        });
        child.unwrap_or_else(|| panic!("no process of {word}: {}", self.output()))
    }

    fn signal(&self, signal: &str) {
        kill(signal, self.process.id());
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if self.process.try_wait().unwrap().is_none() {
            self.signal("TERM");
            let ended = until(|| self.process.try_wait().unwrap());
            if ended.is_none() {
                self.process.kill().unwrap();
                self.process.wait().unwrap();
            }
        }
    }
}

fn kill(signal: &str, pid: u32) {
    let killed = Command::new("kill").args([format!("-{signal}"), pid.to_string()]).status().unwrap();
    assert!(killed.success());
}

/// The result, once there is one; none after the timeout.
fn until<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        let result = look();
        if result.is_some() || start.elapsed() > PATIENCE {
            return result;
        }
        std::thread::sleep(Duration::from_millis(30));
    }
}

/// A client in a session of streamable HTTP.
struct Client {
    address: SocketAddr,
    session: String,
    token: String,
}

impl Client {
    fn new(address: SocketAddr) -> Self {
        Self::with_token(address, "")
    }

    fn with_token(address: SocketAddr, token: &str) -> Self {
        let mut client = Self { address, session: String::new(), token: token.into() };
        let who = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": who});
        let (head, response) =
            client.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}));
        assert_eq!(response["result"]["protocolVersion"], "2025-06-18", "{head}{response}");
        let session = head.lines().find_map(|line| {
            line.to_ascii_lowercase().strip_prefix("mcp-session-id: ").map(|_| line[16..].to_owned())
        });
        client.session = session.unwrap_or_default();
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    /// The response to a request.
    fn call(&self, method: &str, params: Value) -> Value {
        self.send(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})).1
    }

    fn call_tool(&self, tool: &str, arguments: Value) -> Value {
        self.call("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    fn tools(&self) -> Vec<String> {
        let response = self.call("tools/list", json!({}));
        let tools = response["result"]["tools"].as_array().unwrap_or_else(|| panic!("{response}"));
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// The head and the message of a response, which may be in a stream.
    fn send(&self, message: &Value) -> (String, Value) {
        let body = message.to_string();
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let header = |name: &str, value: &str| match value {
            "" => String::new(),
            value => format!("{name}{value}\r\n"),
        };
        let session = header("mcp-session-id: ", &self.session);
        let token = header("authorization: Bearer ", &self.token);
        let (address, length) = (self.address, body.len());
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nhost: {address}\r\naccept: application/json, text/event-stream\r\n{session}{token}\
             content-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        // Alone in the body, or after other messages in a stream.
        let lines = body.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
        let mut messages = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let message = messages.find(|message| message["id"] == 1);
        (head.to_owned(), message.unwrap_or_default())
    }
}

/// The manifest of a server, with more lines for its spec.
fn server(name: &str, command: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: toolhive.stacklok.dev/v1beta1\nkind: MCPServer\nmetadata:\n  name: {name}\n  annotations:\n    \
         skep.dev/local-command: {command}\nspec:\n  image: registry.example/mcp:1\n{spec}\n"
    )
}

const DEMO: &str = "skep demo-server";
