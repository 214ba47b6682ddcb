//! A proxy that is asked to end while others still send to it.

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(60);

struct Proxy {
    folder: PathBuf,
    port: u16,
    process: Child,
}

impl Proxy {
    fn start(name: &str, variables: &[(&str, &str)]) -> Self {
        let folder = std::env::temp_dir().join(format!("skep-leaving-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let config = json!({
            "schema_version": "v0.1.0", "name": "fetch", "transport": "streamable-http", "host": "127.0.0.1",
            "port": port, "remote_url": "http://127.0.0.1:9/mcp",
        });
        fs::write(folder.join("runconfig.json"), config.to_string()).unwrap();
        let process = Command::new(env!("CARGO_BIN_EXE_skep"))
            .args(["proxy", "run", "image"])
            .current_dir(&folder)
            .env_clear()
            .envs(variables.iter().copied())
            .stderr(Stdio::from(fs::File::create(folder.join("log")).unwrap()))
            .spawn()
            .unwrap();
        let proxy = Self { folder, port, process };
        let start = Instant::now();
        while proxy.health().is_err() {
            assert!(start.elapsed() < PATIENCE, "the proxy does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
        proxy
    }

    /// What a new connection is answered.
    fn health(&self) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        write!(stream, "GET /health HTTP/1.1\r\nhost: proxy\r\n\r\n")?;
        let mut answer = vec![0; 4096];
        let read = stream.read(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer[..read]).into_owned())
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap()
    }

    fn asked_to_end(&self) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").arg(id).status().unwrap().success());
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
        fs::remove_dir_all(&self.folder).ok();
    }
}

#[test]
fn in_a_pod_a_proxy_goes_on_for_a_while_and_keeps_no_connection() {
    let mut proxy = Proxy::start("pod", &[("KUBERNETES_SERVICE_HOST", "192.0.2.1")]);
    assert!(!proxy.health().unwrap().contains("connection: close"));
    proxy.asked_to_end();
    let start = Instant::now();
    let answered = loop {
        let answer = proxy.health().expect("it goes on");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        if answer.contains("connection: close") {
            break start.elapsed();
        }
        assert!(start.elapsed() < PATIENCE, "it has not heard that it is to end");
    };
    assert!(proxy.process.wait().unwrap().success());
    assert!(start.elapsed() - answered > Duration::from_secs(3), "it ended after {:?}", start.elapsed());
}

#[test]
fn elsewhere_it_ends_at_once() {
    let mut proxy = Proxy::start("process", &[]);
    proxy.asked_to_end();
    assert!(proxy.process.wait().unwrap().success());
    assert!(!proxy.log().contains("leaving"), "{}", proxy.log());
}
