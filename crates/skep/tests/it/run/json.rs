//! `-o json`: states for programs.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use serde_json::{Value, json};

use super::{Client, DEMO, Manifests, server};

#[test]
fn each_state_is_a_line_of_json_and_everything_else_goes_to_standard_error() {
    let manifests = Manifests::new(&(server("broken", "no-such-program", "") + &server("demo", DEMO, "")));
    let mut process = manifests
        .command()
        .args(["-o", "json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let states: Vec<Value> =
        lines.take(2).map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    let place = format!("{}:2: ", manifests.file().display());
    let why =
        "program no-such-program not found: install it, or change the annotation skep.dev/local-command";
    let broken =
        json!({"name": "broken", "kind": "MCPServer", "phase": "Failed", "message": format!("{place}{why}")});
    assert_eq!(states[0], broken);
    let url = states[1]["url"].as_str().unwrap();
    let demo = json!({
        "name": "demo", "kind": "MCPServer", "url": url, "transport": "streamable-http", "phase": "Ready",
        "tools": ["echo", "add", "time"],
    });
    assert_eq!(states[1], demo);
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp").parse().unwrap();
    assert_eq!(Client::new(address).tools().len(), 3);
    super::kill("TERM", process.id());
    assert!(process.wait().unwrap().success());
}
