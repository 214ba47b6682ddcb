//! A proxy or a virtual server as a process, with its log in a file.

use std::{
    fs,
    net::TcpStream,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use skep_testkit::free_port;

pub(crate) struct Proxy {
    folder: PathBuf,
    pub(crate) port: u16,
    pub(crate) process: Child,
}

impl Proxy {
    /// Starts one in front of a server that does not exist, with these variables and no others.
    pub(crate) fn start(name: &str, variables: &[(&str, &str)]) -> Self {
        let unused = free_port();
        let remote = json!({"remote_url": format!("http://127.0.0.1:{unused}/mcp")});
        Self::with(name, remote, variables)
    }

    /// The same with more in its RunConfig.
    pub(crate) fn with(name: &str, more: Value, variables: &[(&str, &str)]) -> Self {
        let (folder, port) = Self::folder(name, &more);
        Self::launch(folder, port, &["proxy", "run", "image"], variables)
    }

    /// The error with which one ends at its start.
    pub(crate) fn refused(name: &str, more: Value, variables: &[(&str, &str)]) -> String {
        let (folder, _) = Self::folder(name, &more);
        let mut command = Command::new(env!("CARGO_BIN_EXE_skep"));
        let command = command.args(["proxy", "run", "image"]).current_dir(&folder).env_clear();
        let ended = command.envs(variables.iter().copied()).output().unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(ended.status.code(), Some(1));
        let log = String::from_utf8(ended.stderr).unwrap();
        log.lines()
            .find_map(|line| line.strip_prefix("error: "))
            .unwrap_or_else(|| panic!("{log}"))
            .to_owned()
    }

    /// A folder with a RunConfig, and the port in it.
    fn folder(name: &str, more: &Value) -> (PathBuf, u16) {
        let folder = std::env::temp_dir().join(format!("skep-proxy-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let port = more["port"].as_u64().map_or_else(free_port, |port| port as u16);
        let mut config = json!({
            "schema_version": "v0.1.0", "name": "fetch", "transport": "streamable-http", "host": "127.0.0.1",
            "port": port, "middleware_configs": [{"type": "auth", "parameters": {}}],
        });
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fs::write(folder.join("runconfig.json"), config.to_string()).unwrap();
        (folder, port)
    }

    /// A virtual server with this configuration.
    pub(crate) fn virtual_server(name: &str, config: &Value, variables: &[(&str, &str)]) -> Self {
        let folder = std::env::temp_dir().join(format!("skep-vmcp-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("config.yaml"), config.to_string()).unwrap();
        let port = free_port();
        let arguments = ["vmcp", "serve", "--config", "config.yaml", "--host", "127.0.0.1", "--port"];
        Self::launch(folder, port, &[&arguments[..], &[&port.to_string()]].concat(), variables)
    }

    fn launch(folder: PathBuf, port: u16, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let process = Command::new(env!("CARGO_BIN_EXE_skep"))
            .args(arguments)
            .current_dir(&folder)
            .env_clear()
            .envs(variables.iter().copied())
            .stderr(Stdio::from(fs::File::create(folder.join("log")).unwrap()))
            .spawn()
            .unwrap();
        let proxy = Self { folder, port, process };
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(start.elapsed() < Duration::from_secs(60), "the proxy does not respond: {}", proxy.log());
            std::thread::sleep(Duration::from_millis(20));
        }
        proxy
    }

    /// Waits until its log has this.
    pub(crate) fn expect_log(&self, text: &str) {
        let start = Instant::now();
        while !self.log().contains(text) {
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "the log does not have {text:?}: {}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
        fs::remove_dir_all(&self.folder).ok();
    }
}
