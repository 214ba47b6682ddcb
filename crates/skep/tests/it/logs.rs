//! The logs of the proxy and of the operator, as processes write them.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::proxy::Proxy;

impl Proxy {
    /// Calls a tool of a server that does not exist.
    fn call(&self) -> String {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"a":"s3cr3t"}}}"#;
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let head = "content-type: application/json\r\nauthorization: Bearer s3cr3t\r\nconnection: close\r\n";
        let length = body.len();
        write!(
            stream,
            "POST /mcp?key=s3cr3t HTTP/1.1\r\nhost: proxy\r\nx-request-id: mine\r\n{head}content-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    }

    /// The line with this message, once it is written.
    fn line(&self, message: &str) -> Value {
        let start = Instant::now();
        loop {
            let log = self.log();
            let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            if let Some(line) = lines.into_iter().find(|line| line["msg"] == message) {
                return line;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "no {message:?} in {log}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn lines_are_json_with_the_id_of_the_request_and_nothing_secret() {
    let proxy = Proxy::start("json", &[("TOOLHIVE_DEBUG", "true"), ("UNSTRUCTURED_LOGS", "false")]);
    let response = proxy.call();
    assert!(
        response.starts_with("HTTP/1.1 502") && response.contains("x-request-id: mine\r\n"),
        "{response}"
    );
    let mut line = proxy.line("request completed");
    let line = line.as_object_mut().unwrap();
    assert!(line.remove("time").unwrap().as_str().unwrap().ends_with('Z'));
    assert!(line.remove("duration_ms").unwrap().is_u64() && line.remove("bytes").unwrap().is_u64());
    let expected = json!({
        "level": "DEBUG", "msg": "request completed", "target": "skep_gateway::http::access_log", "request_id": "mine",
        "mcp_method": "tools/call", "tool": "read", "method": "POST", "path": "/mcp", "status": 502,
    });
    assert_eq!(Value::Object(line.clone()), expected);
    let warned = proxy.line("the server cannot be reached");
    assert_eq!((&warned["level"], &warned["request_id"]), (&json!("WARN"), &json!("mine")));
    let log = proxy.log();
    assert!(!log.contains("s3cr3t"), "{log}");
    for line in log.lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok(), "{line}");
    }
}

#[test]
fn without_debug_a_successful_request_is_not_logged_and_lines_can_be_plain_text() {
    let proxy = Proxy::start("plain", &[("UNSTRUCTURED_LOGS", "true")]);
    proxy.call();
    let log = proxy.log();
    assert!(log.contains("INFO") && log.contains("serving") && !log.contains("request completed"), "{log}");
    assert!(!log.contains("s3cr3t") && !log.starts_with('{'), "{log}");
}

/// The first line of the log of an operator whose cluster is unreachable.
fn first_line_of_an_operator(variables: &[(&str, &str)]) -> String {
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": format!("http://{unused}")}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "users": [{"name": "it", "user": {}}],
    });
    let file =
        std::env::temp_dir().join(format!("skep-unreachable-{}-{}", unused.port(), std::process::id()));
    fs::write(&file, kubeconfig.to_string()).unwrap();
    let mut process = Command::new(env!("CARGO_BIN_EXE_skep"))
        .args(["operator", "--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=127.0.0.1:0"])
        .env_clear()
        .env("KUBECONFIG", &file)
        // The log lines of the client library are not tested.
        .env("RUST_LOG", "warn,kube_client=off")
        .envs(variables.iter().copied())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(process.stderr.take().unwrap()).read_line(&mut line).unwrap();
    process.kill().unwrap();
    process.wait().unwrap();
    fs::remove_file(file).unwrap();
    line
}

#[test]
fn the_log_of_an_operator_is_json_or_plain_text() {
    for variables in [&[][..], &[("UNSTRUCTURED_LOGS", "false")]] {
        let line = first_line_of_an_operator(variables);
        let entry: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(
            (&entry["level"], &entry["fields"]["message"]),
            (&json!("WARN"), &json!(INTERRUPTED)),
            "{line}"
        );
    }
    let line = first_line_of_an_operator(&[("UNSTRUCTURED_LOGS", "true")]);
    assert!(
        line.contains(" WARN ") && line.contains(INTERRUPTED) && !line.contains(['{', '\u{1b}']),
        "{line}"
    );
}

const INTERRUPTED: &str = "the watch is interrupted";
