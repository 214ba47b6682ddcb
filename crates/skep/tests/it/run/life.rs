//! From the first line to Ctrl-C.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::{IpAddr, TcpListener, UdpSocket},
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};
use skep_testkit::repository;

use super::{Client, DEMO, Run, kill, server, until};

/// The quickstart with another URL of its remote server.
pub(super) fn quickstart(remote: &str) -> String {
    let file = repository("examples/quickstart.yaml");
    let text = fs::read_to_string(file).unwrap();
    let address = text.lines().find(|line| line.contains("remoteUrl:")).unwrap();
    text.replace(address, &format!("  remoteUrl: {remote}\n  allowPrivateEndpoint: true"))
}

/// An address of this machine that is not loopback, which a remote server cannot have. What is sent to it stays here.
pub(super) fn own_address() -> IpAddr {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect("192.0.2.1:9").expect("this test needs a network interface");
    socket.local_addr().unwrap().ip()
}

/// A fake remote server with one tool. It listens on this port, or on any.
pub(super) fn fake_remote(port: u16) -> String {
    recording_remote(port, Arc::default())
}

/// The same, which adds the head of each request to the list.
pub(super) fn recording_remote(port: u16, heads: Arc<Mutex<Vec<String>>>) -> String {
    let listener = TcpListener::bind((own_address(), port)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let heads = heads.clone();
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                while let Some((head, request)) = request(&mut reader) {
                    heads.lock().unwrap().push(head);
                    let result = match request["method"].as_str().unwrap_or_default() {
                        "initialize" => json!({
                            "protocolVersion": request["params"]["protocolVersion"], "capabilities": {"tools": {}},
                            "serverInfo": {"name": "fake", "version": "1"},
                        }),
                        _ => json!({"tools": [{"name": "search", "inputSchema": {"type": "object"}}]}),
                    };
                    let (status, body) = match &request["id"] {
                        Value::Null => ("202 Accepted", String::new()),
                        id => ("200 OK", json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()),
                    };
                    let length = body.len();
                    write!(
                        stream,
                        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
                    )
                    .ok();
                }
            });
        }
    });
    format!("http://{address}/mcp")
}

fn request(reader: &mut impl BufRead) -> Option<(String, Value)> {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        head += &line;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((head, serde_json::from_slice(&body).unwrap_or_default()))
}

#[test]
fn the_quickstart_serves_its_tools_and_prints_the_configuration_of_a_client() {
    let run = Run::start(&quickstart(&fake_remote(0)));
    let row = run.row("demo");
    assert!(row.ends_with("streamable-http  Ready    echo, add, time"), "{row}");
    let row = run.row("docs");
    assert!(row.ends_with("streamable-http  Ready    search"), "{row}");
    let output = run.output();
    let pasted = output.lines().find(|line| line.starts_with('{')).unwrap();
    let pasted: Value = serde_json::from_str(pasted).unwrap();
    let address = run.client("demo").address;
    assert_eq!(pasted["mcpServers"]["demo"], json!({"type": "http", "url": format!("http://{address}/mcp")}));

    let client = run.client("demo");
    assert_eq!(client.tools(), ["echo", "add", "time"]);
    let sum = client.call_tool("add", json!({"a": 2, "b": 3}));
    assert_eq!(sum["result"]["content"][0]["text"], "5");
    assert_eq!(run.client("docs").tools(), ["search"]);

    run.expect_output("demo_add, demo_echo, demo_time, docs_search\n");
    let all = run.client("all");
    let sum = all.call_tool("demo_add", json!({"a": 20, "b": 22}));
    assert_eq!(sum["result"]["content"][0]["text"], "42");
}

#[test]
fn a_virtual_server_follows_the_members_of_its_group() {
    let group = "apiVersion: toolhive.stacklok.dev/v1beta1\nkind: MCPGroup\nmetadata: {name: g}\nspec: {}\n---\n\
                 apiVersion: toolhive.stacklok.dev/v1beta1\nkind: VirtualMCPServer\nmetadata: {name: all}\nspec:\n  \
                 groupRef: {name: g}\n  incomingAuth: {type: anonymous}\n  config:\n    aggregation:\n      \
                 conflictResolution: prefix\n      conflictResolutionConfig: {prefixFormat: '{workload}_'}\n---\n";
    let member = |name: &str| server(name, DEMO, "  groupRef: {name: g}");
    let run = Run::start(&format!("{group}{}{}", member("one"), server("other", DEMO, "")));
    run.expect_output("one_add, one_echo, one_time\n");
    let address = run.address("all");
    assert_eq!(
        run.client("all").call_tool("one_echo", json!({"message": "hi"}))["result"]["content"][0]["text"],
        "hi"
    );
    run.manifests.write(&format!("{group}{}{}", member("one"), member("two")));
    run.expect_output("one_add, one_echo, one_time, two_add, two_echo, two_time\n");
    assert_eq!(run.address("all"), address, "clients keep its address");
}

#[test]
fn a_virtual_server_searches_among_the_tools_of_its_members() {
    let group = "apiVersion: toolhive.stacklok.dev/v1beta1\nkind: MCPGroup\nmetadata: {name: g}\nspec: {}\n---\n\
                 apiVersion: toolhive.stacklok.dev/v1beta1\nkind: VirtualMCPServer\nmetadata: {name: all}\nspec:\n  \
                 groupRef: {name: g}\n  incomingAuth: {type: anonymous}\n  config:\n    \
                 optimizer: {pinnedTools: [one_time]}\n---\n";
    let run = Run::start(&format!("{group}{}", server("one", DEMO, "  groupRef: {name: g}")));
    run.expect_output("call_tool, find_tool, one_time\n");
    let client = run.client("all");
    let found = client.call_tool("find_tool", json!({"tool_description": "the sum of numbers"}));
    assert_eq!(found["result"]["structuredContent"]["tools"][0]["name"], "one_add", "{found}");
    let call = json!({"tool_name": "one_add", "parameters": {"a": 20, "b": 22}});
    assert_eq!(client.call_tool("call_tool", call)["result"]["content"][0]["text"], "42");
}

#[test]
fn policies_and_tool_filters_apply_as_in_a_cluster_and_the_table_shows_the_remaining_tools() {
    let policies = r#"  authzConfig:
    type: inline
    inline:
      policies:
        - permit(principal, action == Action::"call_tool", resource == Tool::"echo");
        - permit(principal, action == Action::"call_tool", resource == Tool::"time");
  toolConfigRef:
    name: few
---
apiVersion: toolhive.stacklok.dev/v1beta1
kind: MCPToolConfig
metadata: {name: few}
spec: {toolsFilter: [echo, add]}"#;
    let run = Run::start(&server("demo", DEMO, policies));
    let row = run.row("demo");
    assert!(row.ends_with("Ready    echo"), "{row}");
    let client = run.client("demo");
    assert_eq!(client.call_tool("echo", json!({"message": "hi"}))["result"]["content"][0]["text"], "hi");
    let denied = client.call_tool("add", json!({"a": 1, "b": 1}));
    assert_eq!(denied["error"]["code"], 403, "{denied}");
    let hidden = client.call_tool("time", json!({}));
    assert_eq!(hidden["error"]["code"], -32602, "{hidden}");
}

#[test]
fn a_file_that_changes_is_loaded_again_and_unchanged_servers_keep_running() {
    let filtered = |tool: &str| {
        let tools = format!(
            "  toolConfigRef: {{name: few}}\n---\napiVersion: toolhive.stacklok.dev/v1beta1\nkind: MCPToolConfig\n\
             metadata: {{name: few}}\nspec: {{toolsFilter: [{tool}]}}"
        );
        server("other", DEMO, "") + &server("demo", DEMO, &tools)
    };
    let run = Run::start(&filtered("echo"));
    let (other, before) = (run.client("other"), run.client("demo"));
    assert_eq!(before.tools(), ["echo"]);

    run.manifests.write("apiVersion: [");
    run.expect_output("running servers are not changed");
    assert_eq!(before.tools(), ["echo"]);

    run.manifests.write(&filtered("add"));
    run.expect_output("changed, reloading");
    run.expect_output("Ready    add\n");
    let after = Client::new(before.address);
    assert_eq!(after.tools(), ["add"]);
    assert_eq!(other.tools(), ["echo", "add", "time"], "the session has survived");

    run.manifests.write(&server("other", DEMO, ""));
    assert!(until(|| std::net::TcpStream::connect(before.address).is_err().then_some(())).is_some());
    assert_eq!(other.tools(), ["echo", "add", "time"]);
}

#[test]
fn a_server_that_exits_is_restarted_and_its_clients_do_not_notice() {
    let run = Run::start(&server("demo", DEMO, ""));
    let client = run.client("demo");
    assert_eq!(client.tools().len(), 3);
    let first = run.child("demo-server");
    kill("KILL", first);
    let second = until(|| run.children("demo-server").into_iter().find(|pid| *pid != first));
    assert!(second.is_some(), "{}", run.output());
    assert_eq!(
        client.call_tool("echo", json!({"message": "again"}))["result"]["content"][0]["text"],
        "again"
    );
}

#[test]
fn one_server_that_fails_does_not_stop_the_others_and_warnings_are_printed() {
    let odd = "  groupRef: {name: missing}\n  replicas: 3";
    let run = Run::start(&(server("broken", "no-such-program x", "") + &server("demo", DEMO, odd)));
    assert!(run.row("broken").ends_with("Failed   -"));
    assert_eq!(run.client("demo").tools().len(), 3);
    let output = run.output();
    for line in [
        "MCPServer broken: program no-such-program not found: install it",
        "MCPServer demo: GroupRefValidated: ",
        "MCPServer demo: StdioReplicaCapped: replicas is limited to 1",
    ] {
        assert!(output.contains(line), "no {line:?} in {output}");
    }
}
