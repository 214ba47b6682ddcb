//! The log of the proxy, as a process writes it.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::proxy::Proxy;

impl Proxy {
    /// Calls a tool of a server that is not there.
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
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// The line with this message, once it is there.
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
    let answer = proxy.call();
    assert!(answer.starts_with("HTTP/1.1 502") && answer.contains("x-request-id: mine\r\n"), "{answer}");
    let mut line = proxy.line("answered");
    let line = line.as_object_mut().unwrap();
    assert!(line.remove("time").unwrap().as_str().unwrap().ends_with('Z'));
    assert!(line.remove("duration_ms").unwrap().is_u64() && line.remove("bytes").unwrap().is_u64());
    let expected = json!({
        "level": "DEBUG", "msg": "answered", "target": "skep_proxy::access", "request_id": "mine",
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
fn without_debug_a_request_that_goes_well_is_not_logged_and_lines_can_be_for_people() {
    let proxy = Proxy::start("plain", &[("UNSTRUCTURED_LOGS", "true")]);
    proxy.call();
    let log = proxy.log();
    assert!(log.contains("INFO") && log.contains("serving") && !log.contains("answered"), "{log}");
    assert!(!log.contains("s3cr3t") && !log.starts_with('{'), "{log}");
}
