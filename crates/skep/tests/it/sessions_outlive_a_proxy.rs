//! Two proxies of one server, each a process, with a Redis that requires a password: a client continues when the
//! proxy that started its session is killed.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus},
    thread,
    time::{Duration, Instant},
};

use serde_json::json;
use skep_testkit::{Redis, free_port};

const PASSWORD: &str = "correct-horse-battery-staple";
const ID: &str = "0b0ef4f6-2c5e-4f0f-9f3b-9d2f2e3f5a10";

/// A fake MCP server with one session: every request in it gets a response.
fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || {
                let mut stream = stream.unwrap();
                let request = read(&mut stream);
                let begins = request.contains(r#""method":"initialize""#);
                let session = if begins { format!("mcp-session-id: {ID}\r\n") } else { String::new() };
                let status = if begins || request.contains(ID) { "200 OK" } else { "404 Not Found" };
                let body = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
                write!(
                    stream,
                    "HTTP/1.1 {status}\r\n{session}content-type: application/json\r\nconnection: close\r\n\
                     content-length: {}\r\n\r\n{body}",
                    body.len()
                )
                .unwrap();
            });
        }
    });
    address
}

/// An HTTP message, in lower case up to its body.
fn read(stream: &mut TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap() == 0 || line == "\r\n" {
            break;
        }
        let line = line.to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    head + &String::from_utf8(body).unwrap()
}

/// A proxy as a process, as in a pod.
struct Pod {
    process: Child,
    port: u16,
    folder: PathBuf,
}

impl Pod {
    fn start(name: &str, server: SocketAddr, redis: &Redis, password: &str) -> Self {
        Self::start_at(name, server, &redis.address(), password, None)
    }

    /// Starts one with its sessions and limits at this address, which trusts the authorities of a file.
    fn start_at(
        name: &str,
        server: SocketAddr,
        address: &str,
        password: &str,
        authorities: Option<&Path>,
    ) -> Self {
        let folder = std::env::temp_dir().join(format!("skep-sessions-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let port = free_port();
        let redis = json!({"address": address});
        let bucket = json!({"maxTokens": 1000, "refillPeriod": "1s"});
        let limit = json!({
            "namespace": "ns", "server_name": "files", "redis_addr": redis["address"], "redis_db": 0,
            "config": {"shared": bucket},
        });
        let config = json!({
            "schema_version": "v0.1.0", "name": "files", "transport": "streamable-http", "host": "127.0.0.1",
            "port": port, "target_host": "127.0.0.1", "target_port": server.port(),
            "scaling_config": {"session_redis": redis},
            "middleware_configs": [{"type": "ratelimit", "parameters": limit}],
        });
        fs::write(folder.join("runconfig.json"), config.to_string()).unwrap();
        let process = Command::new(env!("CARGO_BIN_EXE_skep"))
            .args(["proxy", "run", "--debug", "none"])
            .current_dir(&folder)
            .env_clear()
            .env("THV_SESSION_REDIS_PASSWORD", password)
            .envs(authorities.map(|file| ("SSL_CERT_FILE", file)))
            .stderr(File::create(folder.join("log")).unwrap())
            .spawn()
            .unwrap();
        Self { process, port, folder }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap()
    }

    /// The response to a call, once the proxy listens.
    fn call(&self, method: &str, session: &str) -> String {
        let start = Instant::now();
        let mut stream = loop {
            match TcpStream::connect(("127.0.0.1", self.port)) {
                Ok(stream) => break stream,
                Err(error) => assert!(start.elapsed() < Duration::from_secs(60), "{error}: {}", self.log()),
            }
            thread::sleep(Duration::from_millis(20));
        };
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let body =
            json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"name": "read"}}).to_string();
        let length = body.len();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nhost: proxy\r\ncontent-type: application/json\r\n{session}connection: close\r\n\
             content-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        read(&mut stream)
    }

    fn ended(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "it does not exit: {}", self.log());
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
        fs::remove_dir_all(&self.folder).ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_continues_when_its_proxy_is_killed() {
    let (redis, server) = (Redis::with_password(PASSWORD).await, server());
    let one = Pod::start("one", server, &redis, PASSWORD);
    let two = Pod::start("two", server, &redis, PASSWORD);
    let started = one.call("initialize", "");
    assert!(started.starts_with("http/1.1 200") && started.contains(ID), "{started}\n{}", one.log());
    let within = format!("mcp-session-id: {ID}\r\n");
    let response = one.call("tools/call", &within);
    assert!(response.starts_with("http/1.1 200"), "{response}\n{}", one.log());
    let logged = one.log();
    // Like SIGKILL: it cannot notify its clients.
    drop(one);
    let response = two.call("tools/call", &within);
    assert!(response.starts_with("http/1.1 200"), "{response}\n{}", two.log());
    for log in [logged, two.log()] {
        assert!(log.contains("connected to Redis"), "{log}");
        assert!(!log.contains(PASSWORD) && !log.contains(ID), "{log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_continues_at_another_proxy_with_tls_to_redis() {
    let (redis, server) = (Redis::with_tls(PASSWORD).await, server());
    let address = format!("rediss://{}", redis.address());
    let start = |name| Pod::start_at(name, server, &address, PASSWORD, Some(&redis.authority_file()));
    let (one, two) = (start("tls-one"), start("tls-two"));
    let started = one.call("initialize", "");
    assert!(started.starts_with("http/1.1 200") && started.contains(ID), "{started}\n{}", one.log());
    let response = two.call("tools/call", &format!("mcp-session-id: {ID}\r\n"));
    assert!(response.starts_with("http/1.1 200"), "{response}\n{}", two.log());
    assert!(two.log().contains(&format!("\"address\":\"{address}\"")), "{}", two.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_with_a_wrong_password_exits_and_names_the_variable_to_set() {
    let redis = Redis::with_password(PASSWORD).await;
    for wrong in ["another-horse", ""] {
        let mut pod = Pod::start("wrong", server(), &redis, wrong);
        assert!(!pod.ended().success());
        let log = pod.log();
        assert!(log.contains("THV_SESSION_REDIS_PASSWORD"), "{log}");
        assert!(!log.contains("another-horse"), "{log}");
    }
}
