//! The console of a run.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    thread,
};

use serde_json::{Value, json};

use super::{DEMO, Manifests, PATIENCE, Run, server, until};

/// A page of the console.
struct Page {
    host: String,
    token: String,
}

impl Page {
    /// With the address that was printed.
    fn of(run: &Run) -> Self {
        let output = run.expect_output("Console: http://");
        let url = output.lines().find_map(|line| line.strip_prefix("Console: http://")).unwrap();
        let (host, token) = url.split_once("/#token=").unwrap();
        Self { host: host.into(), token: token.into() }
    }

    /// Sends a request with these lines of its head.
    fn send(&self, head: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let length = body.len();
        write!(stream, "{head}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
        stream
    }

    fn response(&self, head: &str, body: &str) -> String {
        let mut response = String::new();
        self.send(head, body).read_to_string(&mut response).unwrap();
        response
    }

    fn head(&self, request: &str) -> String {
        format!("{request} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}", self.host, self.token)
    }

    fn get(&self, path: &str) -> Value {
        let response = self.response(&self.head(&format!("GET /api/{path}")), "");
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{response}");
        serde_json::from_str(body).unwrap()
    }

    /// The objects of the overview, as names with phases.
    fn phases(&self) -> Vec<String> {
        let overview = self.get("objects");
        let line = |object: &Value| {
            format!("{} {}", object["name"].as_str().unwrap(), object["phase"].as_str().unwrap())
        };
        overview["objects"].as_array().unwrap().iter().map(line).collect()
    }
}

const POLICIES: &str = r#"  authzConfig:
    type: inline
    inline: {policies: ['permit(principal, action, resource == Tool::"echo");']}"#;

#[test]
fn servers_and_calls_are_shown_with_who_decided_and_without_arguments() {
    let run = Run::start(&server("demo", DEMO, POLICIES));
    let (page, client) = (Page::of(&run), run.client("demo"));
    client.call_tool("echo", json!({"message": "hunter2"}));
    client.call_tool("add", json!({"a": 1, "b": 1}));
    let detail = until(|| {
        let detail = page.get("objects/MCPServer/default/demo");
        (detail["calls"][0]["target"] == "add").then_some(detail)
    });
    let detail = detail.unwrap();
    assert_eq!((&detail["phase"], &detail["tools"]), (&json!("Ready"), &json!(1)), "{detail}");
    let call = |index: usize| {
        let call = &detail["calls"][index];
        json!([call["method"], call["target"], call["status"], call["failed"], call["decidedBy"]])
    };
    assert_eq!(call(0), json!(["tools/call", "add", 403, true, "authorization"]), "{detail}");
    assert_eq!(call(1), json!(["tools/call", "echo", 200, false, ""]), "{detail}");
    assert!(!detail.to_string().contains("hunter2"), "{detail}");
    assert!(detail["traffic"]["perSecond"].as_f64().unwrap() > 0.0, "{detail}");
}

#[test]
fn only_the_page_with_the_token_gets_data() {
    let page = Page::of(&Run::start(&server("demo", DEMO, "")));
    let run = Run::start(&server("demo", DEMO, ""));
    let other = Page::of(&run);
    assert_ne!(page.token, other.token);
    let paths =
        ["session", "objects", "objects/MCPServer/default/demo", "events", "mcp/MCPServer/default/demo", "x"];
    for path in paths {
        let (host, token) = (&other.host, &other.token);
        let without = format!("GET /api/{path} HTTP/1.1\r\nhost: {host}");
        let wrong = format!("{without}\r\nauthorization: Bearer {}", page.token);
        let rebound =
            format!("GET /api/{path} HTTP/1.1\r\nhost: evil.example\r\nauthorization: Bearer {token}");
        let framed = format!("{without}\r\nauthorization: Bearer {token}\r\nsec-fetch-site: same-site");
        for (head, status) in [(without.clone(), 401), (wrong, 401), (rebound, 403), (framed, 403)] {
            let response = other.response(&head, "");
            assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{head}\n{response}");
            assert!(!response.contains("demo"), "{response}");
        }
    }
    // The page itself has no data, and nothing else may be loaded or run in it.
    let page = other.response(&format!("GET / HTTP/1.1\r\nhost: {}", other.host), "");
    assert!(
        page.starts_with("HTTP/1.1 200") && page.contains("content-security-policy: default-src 'none'"),
        "{page}"
    );
    let rebound = other.response("GET / HTTP/1.1\r\nhost: evil.example", "");
    assert!(rebound.starts_with("HTTP/1.1 403"), "{rebound}");
}

#[test]
fn a_changed_file_appears_in_the_stream_and_in_the_overview() {
    let run = Run::start(&server("demo", DEMO, ""));
    let page = Page::of(&run);
    run.row("demo");
    let stream = page.send(&page.head("GET /api/events?calls=all"), "");
    let reading = thread::spawn(move || {
        let lines = BufReader::new(stream).lines().map_while(Result::ok);
        let wanted = ["\"name\":\"other\"", "event: deleted", "event: call"];
        let mut missing = wanted.to_vec();
        for line in lines {
            missing.retain(|text| !line.contains(text));
            if missing.is_empty() {
                break;
            }
        }
        missing
    });
    run.client("demo").call_tool("echo", json!({"message": "hi"}));
    fs::write(run.manifests.file(), server("other", DEMO, "")).unwrap();
    assert_eq!(reading.join().unwrap(), Vec::<&str>::new());
    until(|| (page.phases() == ["other Ready"]).then_some(())).unwrap();
}

#[test]
fn a_tool_is_called_through_the_console_like_by_any_client() {
    let run = Run::start(&server("demo", DEMO, ""));
    let page = Page::of(&run);
    run.row("demo");
    let head = |session: &str| {
        let head = page.head("POST /api/mcp/MCPServer/default/demo");
        format!(
            "{head}\r\nx-skep-console: 1\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream{session}"
        )
    };
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let initialized = page.response(&head(""), &message.to_string());
    let session = initialized.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
    let session = format!("\r\nmcp-session-id: {session}");
    let params = json!({"name": "echo", "arguments": {"message": "through the console"}});
    let message = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
    let response = page.response(&head(&session), &message.to_string());
    assert!(response.contains("\"text\":\"through the console\""), "{response}");
    // Without the header that no other page can send, nothing is called.
    let forged = head(&session).replace("x-skep-console: 1\r\n", "");
    assert!(page.response(&forged, &message.to_string()).starts_with("HTTP/1.1 403"));
}

#[test]
fn secrets_and_objects_of_other_groups_are_not_shown() {
    let spec = "---
apiVersion: v1
kind: Secret
metadata: {name: token}
stringData: {value: hunter2}";
    let run = Run::start(&format!("{}{spec}", server("demo", DEMO, "")));
    let page = Page::of(&run);
    run.row("demo");
    until(|| (page.phases() == ["demo Ready"]).then_some(())).unwrap();
    let missing = page.response(&page.head("GET /api/objects/Secret/default/token"), "");
    assert!(missing.starts_with("HTTP/1.1 404"), "{missing}");
}

#[test]
fn a_run_without_a_console_prints_no_address() {
    let manifests = Manifests::new(&server("demo", DEMO, ""));
    let mut command = manifests.command();
    command.arg("--no-console");
    let run = Run::of(manifests, command);
    run.row("demo");
    assert!(!run.output().contains("Console:"), "{}", run.output());
}
