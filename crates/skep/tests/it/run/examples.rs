//! The examples of virtual servers, as a user runs them.

use std::fs;

use serde_json::{Value, json};
use skep_testkit::repository;

use super::{Client, Run, life::fake_remote, until};

fn example(name: &str) -> String {
    let file = repository("examples").join(name);
    fs::read_to_string(file).unwrap()
}

/// A client of a server, once that has these tools.
fn client_with(run: &Run, server: &str, tools: &[&str]) -> Client {
    let client = run.client(server);
    let listed = until(|| Some(client.tools()).filter(|listed| listed == tools));
    listed.unwrap_or_else(|| panic!("{:?}: {}", client.tools(), run.output()));
    client
}

fn text(response: &Value) -> &str {
    response["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{response}"))
}

#[test]
fn the_virtual_server_calls_the_steps_of_its_composite_tool() {
    let text_of_example = example("virtual-server.yaml");
    let address = text_of_example.lines().find(|line| line.contains("remoteUrl:")).unwrap();
    let run = Run::start(&text_of_example.replace(address, &format!("  remoteUrl: {}", fake_remote(0))));
    let tools = ["announce", "demo-member_add", "demo-member_echo", "demo-member_time"];
    let client = client_with(&run, "office", &tools);
    let response = client.call_tool("announce", json!({"message": "Lunch"}));
    let announced =
        response["result"]["structuredContent"]["text"].as_str().unwrap_or_else(|| panic!("{response}"));
    assert!(announced.starts_with("Lunch (2"), "{announced}");
}

#[test]
fn a_workflow_with_policies_of_its_own_calls_what_its_caller_may_not() {
    let run = Run::start(&example("workflows.yaml"));
    let client = client_with(&run, "announcements", &["announce"]);
    let response = client.call_tool("announce", json!({"message": "Lunch"}));
    let announced =
        response["result"]["structuredContent"]["text"].as_str().unwrap_or_else(|| panic!("{response}"));
    assert!(announced.starts_with("Lunch (2"), "{announced}");
    let denied = client.call_tool("demo-steps_time", json!({}));
    assert!(denied.get("error").is_some(), "{denied}");
}

#[test]
fn the_tool_search_finds_by_words_where_no_embedding_server_runs() {
    let run = Run::start(&example("tool-search.yaml"));
    let client = client_with(&run, "many-tools", &["call_tool", "find_tool", "demo-searched_echo"]);
    let found = client.call_tool("find_tool", json!({"tool_description": "the sum of two numbers"}));
    assert_eq!(found["result"]["structuredContent"]["tools"][0]["name"], "demo-searched_add", "{found}");
    let call = json!({"tool_name": "demo-searched_add", "parameters": {"a": 20, "b": 22}});
    assert_eq!(text(&client.call_tool("call_tool", call)), "42");
}

#[test]
fn a_script_calls_many_tools_at_once() {
    let run = Run::start(&example("scripts.yaml"));
    let tools = ["demo-scripted_add", "demo-scripted_echo", "demo-scripted_time", "execute_tool_script"];
    let client = client_with(&run, "scripted-tools", &tools);
    let script = "sums = parallel([lambda: demo_scripted_add(a=n, b=1) for n in range(5)])\n\
                  return [s[\"text\"] for s in sums]";
    assert_eq!(
        text(&client.call_tool("execute_tool_script", json!({"script": script}))),
        r#"["1","2","3","4","5"]"#
    );
}
