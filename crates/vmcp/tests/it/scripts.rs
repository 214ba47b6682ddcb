//! Code mode: scripts that call tools.

use std::time::Duration;

use http::Method;
use proptest::{prelude::*, sample::subsequence};
use serde_json::{Value, json};

use crate::{
    Server,
    backend::{Backend, Mood},
    client::{Client, text},
    scripted::{Scripted, Speaks},
};

const ENABLED: &str = "codeMode: {enabled: true}\n";

fn script(source: &str) -> Value {
    json!({"name": "execute_tool_script", "arguments": {"script": source}})
}

async fn run(client: &Client, source: &str) -> Value {
    client.request("tools/call", script(source)).await
}

fn done(n: u64) -> Value {
    json!({"content": [], "structuredContent": {"n": n}})
}

#[tokio::test]
async fn a_script_calls_tools_as_its_caller_does() {
    let backend = Scripted::start(Speaks::Legacy).await;
    let server = Server::with_urls(&[("a", backend.url())], ENABLED, None).await;
    let client = server.client().await;
    assert_eq!(client.tools().await, ["a_ask", "execute_tool_script"]);
    let calls = async {
        for n in 1..=2 {
            let call = backend.next("tools/call").await;
            assert_eq!(call.message["params"], json!({"name": "ask", "arguments": {"region": n}}));
            call.result(done(n));
        }
    };
    let source = "print(\"two calls\")\nreturn [a_ask(region=n)[\"n\"] for n in range(1, 3)]";
    let (response, ()) = tokio::join!(run(&client, source), calls);
    let text = |text: &str| json!({"type": "text", "text": text});
    assert_eq!(response["result"], json!({"content": [text("[1,2]"), text("Script logs:\ntwo calls")]}));
}

#[tokio::test]
async fn what_a_tool_returns_is_its_structure_its_text_or_the_reason_why_the_script_fails() {
    let backend = Scripted::start(Speaks::Legacy).await;
    let server = Server::with_urls(&[("a", backend.url())], ENABLED, None).await;
    let client = server.client().await;
    let content = json!([{"type": "text", "text": "cold"}]);
    for (result, expected, is_error) in [
        (json!({"content": [], "structuredContent": {"result": [1, 2]}}), "[1,2]", false),
        (json!({"content": content}), r#"{"text":"cold"}"#, false),
        (
            json!({"content": content, "isError": true}),
            "The script failed: line 1, column 13: tool a_ask failed: cold\n    return a_ask()\n                ^",
            true,
        ),
    ] {
        let call = async { backend.next("tools/call").await.result(result) };
        let (response, ()) = tokio::join!(run(&client, "return a_ask()"), call);
        assert_eq!(text(&response), (expected, is_error));
    }
}

#[tokio::test]
async fn mistakes_in_the_arguments_are_results_that_name_them() {
    let backend = Scripted::start(Speaks::Legacy).await;
    let server = Server::with_urls(&[("a", backend.url())], ENABLED, None).await;
    for client in [server.client().await, Client::modern(server.address, json!({}))] {
        for (arguments, mistake) in [
            (json!({}), "script must be a string"),
            (json!({"script": 1}), "script must be a string"),
            (json!({"script": "return 1", "data": []}), "data must be an object"),
            (json!({"script": ""}), "the script is empty"),
            (json!({"script": "return execute_tool_script(script=\"\")"}), "is not defined"),
            (json!({"script": "return call_tool(\"execute_tool_script\")"}), "there is no tool"),
        ] {
            let params = json!({"name": "execute_tool_script", "arguments": arguments});
            let response = client.request("tools/call", params).await;
            let (text, is_error) = text(&response);
            assert!(is_error && text.contains(mistake), "{response}");
        }
    }
}

#[tokio::test]
async fn a_tool_with_the_reserved_name_is_hidden_and_nothing_else() {
    let backend = Backend::start().await;
    let taken = r#"aggregation: {conflictResolution: manual, tools: [{workload: a, overrides: {echo: {name: execute_tool_script}}}]}"#;
    let composite =
        "compositeTools: [{name: execute_tool_script, description: d, steps: [{id: s, tool: last}]}]";
    let config = format!(
        "name: test\ngroupRef: test\nincomingAuth: {{type: anonymous}}\noutgoingAuth: {{source: inline}}\n{taken}\n\
         backends: [{{name: a, url: \"{}\", transport: streamable-http}}]\n{composite}\n{ENABLED}",
        backend.url(),
    );
    let server = Server::of(&config, None, None).await;
    let client = server.client().await;
    assert_eq!(client.tools().await, ["execute_tool_script", "last", "whoami"]);
    assert_eq!(text(&run(&client, "return 1").await), ("1", false));
}

#[tokio::test]
async fn a_composite_tool_can_be_called_by_a_script() {
    let backend = Scripted::start(Speaks::Legacy).await;
    let combo = r#"compositeTools: [{name: combo, description: d, steps: [{id: s, tool: a_ask, arguments: {region: "eu"}}]}]"#;
    let server = Server::with_urls(&[("a", backend.url())], &format!("{combo}\n{ENABLED}"), None).await;
    let client = server.client().await;
    let call = async {
        let call = backend.next("tools/call").await;
        assert_eq!(call.message["params"]["arguments"], json!({"region": "eu"}));
        call.result(done(1));
    };
    let (response, ()) = tokio::join!(run(&client, "return combo()[\"n\"] + 1"), call);
    assert_eq!(text(&response), ("2", false));
}

#[tokio::test]
async fn a_cancellation_ends_the_script_and_the_calls_that_run() {
    for speaks in [Speaks::Legacy, Speaks::Modern] {
        let backend = Scripted::start(speaks).await;
        let server = Server::with_urls(&[("a", backend.url())], ENABLED, None).await;
        let client = server.client().await;
        let cancelled = async {
            let calls = [backend.next("tools/call").await, backend.next("tools/call").await];
            let cancel =
                json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
            assert_eq!(client.send(Method::POST, Some(&cancel)).await.status(), 202);
            for call in calls {
                call.is_abandoned().await;
            }
        };
        let (response, ()) = tokio::join!(run(&client, "return parallel([a_ask, a_ask])"), cancelled);
        assert!(text(&response).1, "{response}");
    }
}

#[tokio::test]
async fn a_client_that_wants_progress_gets_it_for_each_call() {
    let backend = Scripted::start(Speaks::Legacy).await;
    let server = Server::with_urls(&[("a", backend.url())], ENABLED, None).await;
    let client = server.client().await;
    let mut params = script("a_ask()\nreturn a_ask()");
    params["_meta"] = json!({"progressToken": "p"});
    let calls = async {
        backend.next("tools/call").await.result(done(1));
        backend.next("tools/call").await.result(done(2));
    };
    let (mut events, ()) = tokio::join!(client.open("tools/call", params), calls);
    for n in 1..=2 {
        let expected = json!({"progressToken": "p", "progress": n, "message": "a_ask has ended"});
        assert_eq!(events.next().await.unwrap()["params"], expected);
    }
    assert_eq!(text(&events.next().await.unwrap()), (r#"{"n":2}"#, false));
}

fn form() -> Value {
    json!({"message": "Which colour?", "requestedSchema": {"type": "object", "properties": {}}})
}

#[tokio::test]
async fn a_tool_that_a_script_calls_can_ask_the_user_in_both_eras() {
    let backend = Scripted::start(Speaks::Legacy).await;
    // The user takes longer: what does not happen is that the call ends.
    let more = "codeMode: {enabled: true, toolCallTimeout: 500ms}\n";
    let server = Server::with_urls(&[("a", backend.url())], more, None).await;
    let elicited = async || {
        let call = backend.next("tools/call").await;
        call.send(json!({"jsonrpc": "2.0", "id": "e1", "method": "elicitation/create", "params": form()}));
        let answer = backend.next("").await.message;
        assert_eq!(answer, json!({"jsonrpc": "2.0", "id": "e1", "result": {"action": "decline"}}));
        call.result(done(1));
    };
    let client = Client::start(server.address, json!({"elicitation": {}})).await;
    let called = async {
        let mut events = client.open("tools/call", script("return a_ask()")).await;
        let question = events.next().await.unwrap();
        assert_eq!(question["params"], form());
        tokio::time::sleep(Duration::from_millis(700)).await;
        let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}});
        assert_eq!(client.send(Method::POST, Some(&answer)).await.status(), 202);
        events.next().await.unwrap()
    };
    let (response, ()) = tokio::join!(called, elicited());
    assert_eq!(text(&response), (r#"{"n":1}"#, false));

    let client = Client::modern(server.address, json!({"elicitation": {}}));
    let called = async {
        let mut params = script("return a_ask()");
        let needed = client.request("tools/call", params.clone()).await;
        assert_eq!(needed["result"]["resultType"], "input_required", "{needed}");
        tokio::time::sleep(Duration::from_millis(700)).await;
        params["requestState"] = needed["result"]["requestState"].clone();
        params["inputResponses"] = json!({"1": {"action": "decline"}});
        client.request("tools/call", params).await
    };
    let (response, ()) = tokio::join!(called, elicited());
    assert_eq!(text(&response), (r#"{"n":1}"#, false), "{response}");
}

#[tokio::test]
async fn each_call_of_a_script_is_in_the_audit_log() {
    let backend = Backend::start().await;
    let log = std::env::temp_dir().join(format!("skep-scripts-{}.log", std::process::id()));
    let more = format!("{ENABLED}audit: {{enabled: true, logFile: \"{}\"}}\n", log.display());
    let server = Server::before(&[("a", &backend)], &more).await;
    let client = server.client().await;
    let response = run(&client, "return [a_echo(), a_last()]").await;
    assert!(!text(&response).1, "{response}");
    server.stop().await;
    let lines = std::fs::read_to_string(&log).unwrap();
    std::fs::remove_file(&log).unwrap();
    let entries = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let calls = entries.filter(|entry| entry["type"] == "mcp_tool_call");
    let mut called: Vec<String> =
        calls.map(|entry| entry["target"]["name"].as_str().unwrap().to_owned()).collect();
    called.sort();
    assert_eq!(called, ["a_echo", "a_last", "execute_tool_script"]);
}

#[tokio::test]
async fn a_call_ends_at_its_time_limit() {
    let backend = Scripted::start(Speaks::Legacy).await;
    let more = "codeMode: {enabled: true, toolCallTimeout: 300ms}\n";
    let server = Server::with_urls(&[("a", backend.url())], more, None).await;
    let client = server.client().await;
    let call = async { backend.next("tools/call").await.is_abandoned().await };
    let (response, ()) = tokio::join!(run(&client, "return a_ask()"), call);
    let (text, is_error) = text(&response);
    assert!(is_error && text.contains("the tool does not respond within 300ms"), "{text}");
}

#[tokio::test]
async fn scripts_that_never_end_delay_no_other_client() {
    let backend = Backend::start().await;
    let more = "codeMode: {enabled: true, stepLimit: 9000000000000}\n";
    let server = Server::before(&[("a", &backend)], more).await;
    let (hostile, other) = (server.client().await, server.client().await);
    let endless = "for x in range(1000000000000): [y for y in range(100)]";
    let scripts = futures::future::join_all((0..8).map(|_| run(&hostile, endless)));
    // All of it runs on one thread.
    tokio::select! {
        biased;
        ended = scripts => panic!("a script has ended: {ended:?}"),
        () = async {
            for _ in 0..10 {
                assert!(!text(&other.call("a_echo").await).1);
            }
            assert_eq!(text(&run(&other, "return sum(range(1000))").await), ("499500", false));
        } => {}
    }
}

#[tokio::test]
async fn a_caller_runs_a_bounded_number_of_scripts() {
    let backend = Backend::start().await;
    let server = Server::before(&[("a", &backend)], ENABLED).await;
    let client = server.client().await;
    assert_eq!(client.tools().await.len(), 4);
    run(&client, "return a_echo()").await;
    backend.set(Mood::Hangs);
    let waiting = futures::future::join_all((0..60).map(|_| run(&client, "return a_echo()")));
    let rejected = async {
        // Those that were rejected have ended.
        let stranger = Client::start(server.address, json!({})).await.from([127, 0, 0, 2]);
        crate::until(|| backend.received("tools/call").len() == 51).await;
        let more = run(&client, "return 1").await;
        assert!(text(&more).0.contains("too many of your scripts are running"), "{more}");
        assert_eq!(text(&run(&stranger, "return 1").await), ("1", false));
    };
    tokio::select! {
        _ = waiting => panic!("all have ended"),
        () = rejected => {}
    }
}

/// All tools of three backends.
fn all_tools() -> Vec<String> {
    let tools =
        ["a", "b", "c"].map(|backend| ["echo", "last", "whoami"].map(|tool| format!("{backend}_{tool}")));
    tools.concat()
}

/// Policies that permit just these tools: by permitting them, or by forbidding the others.
fn policies(allowed: &[String], forbids: bool) -> String {
    let policy = |effect: &str, tool: &String| {
        format!(r#"'{effect}(principal, action == Action::"call_tool", resource == Tool::"{tool}");'"#)
    };
    let mut policies: Vec<String> = match forbids {
        false => allowed.iter().map(|tool| policy("permit", tool)).collect(),
        true => {
            let others = all_tools().into_iter().filter(|tool| !allowed.contains(tool));
            others.map(|tool| policy("forbid", &tool)).collect()
        }
    };
    if forbids {
        policies.push("'permit(principal, action, resource);'".into());
    } else {
        policies
            .push(r#"'permit(principal, action == Action::"call_tool", resource == Tool::"none");'"#.into());
    }
    policies.join(", ")
}

async fn assert_just_these_can_be_used(allowed: &[String], forbids: bool) {
    let backends = [Backend::start().await, Backend::start().await, Backend::start().await];
    let lines = backends.iter().zip(["a", "b", "c"]).map(|(backend, name)| {
        format!("{{name: {name}, url: \"{}\", transport: streamable-http}}", backend.url())
    });
    let config = format!(
        "name: test\ngroupRef: test\noutgoingAuth: {{source: inline}}\n\
         incomingAuth: {{type: anonymous, authz: {{type: cedar, policies: [{}]}}}}\n\
         aggregation: {{conflictResolution: prefix, conflictResolutionConfig: {{prefixFormat: \"{{workload}}_\"}}}}\n\
         backends: [{}]\n{ENABLED}",
        policies(allowed, forbids),
        lines.collect::<Vec<_>>().join(", "),
    );
    let server = Server::of(&config, None, None).await;
    let client = server.client().await;
    let list = client.request("tools/list", json!({})).await;
    let own =
        list["result"]["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "execute_tool_script");
    let description = own.unwrap()["description"].as_str().unwrap();
    for tool in all_tools() {
        let is_allowed = allowed.contains(&tool);
        assert_eq!(description.contains(&tool), is_allowed, "{tool}: {description}");
        for source in [format!("return {tool}()"), format!("return call_tool(\"{tool}\")")] {
            let response = run(&client, &source).await;
            let (found, is_error) = text(&response);
            assert_eq!(is_error, !is_allowed, "{response}");
            if !is_allowed {
                // Nothing shows that it exists.
                let unknown = run(&client, &source.replace(&tool, "unknown")).await;
                assert_eq!(found, text(&unknown).0.replace("unknown", &tool));
            }
        }
    }
    let called: usize = backends.iter().map(|backend| backend.received("tools/call").len()).sum();
    assert_eq!(called, allowed.len() * 2);
    server.stop().await;
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(12) })]

    #[test]
    fn a_script_learns_of_and_calls_just_what_its_caller_may(
        allowed in subsequence(all_tools(), 0..=9),
        forbids: bool,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(assert_just_these_can_be_used(&allowed, forbids));
    }
}

#[tokio::test]
async fn a_search_finds_the_tool_that_runs_scripts_with_the_tools_of_the_caller_in_its_description() {
    let backend = crate::backend::Backend::start().await;
    let policy = r#"'permit(principal, action == Action::"call_tool", resource == Tool::"a_echo");'"#;
    let config = format!(
        "name: test\ngroupRef: test\noutgoingAuth: {{source: inline}}\n\
         incomingAuth: {{type: anonymous, authz: {{type: cedar, policies: [{policy}]}}}}\n\
         aggregation: {{conflictResolution: prefix, conflictResolutionConfig: {{prefixFormat: \"{{workload}}_\"}}}}\n\
         backends: [{{name: a, url: \"{}\", transport: streamable-http}}]\noptimizer: {{}}\n{ENABLED}",
        backend.url(),
    );
    let server = Server::of(&config, None, None).await;
    let client = server.client().await;
    let arguments = json!({"tool_description": "execute_tool_script"});
    let found = client.request("tools/call", json!({"name": "find_tool", "arguments": arguments})).await;
    let tool = &found["result"]["structuredContent"]["tools"][0];
    assert_eq!(tool["name"], "execute_tool_script", "{found}");
    let description = tool["description"].as_str().unwrap();
    assert!(description.contains("- a_echo(") && !description.contains("a_whoami"), "{description}");
}
