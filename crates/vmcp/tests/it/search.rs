//! The tool search.

use proptest::{prelude::*, test_runner::Config};
use serde_json::{Value, json};

use crate::{
    Server,
    backend::Backend,
    client::{Client, text},
    scripted::{Scripted, Speaks},
};

const OWN: [&str; 2] = ["call_tool", "find_tool"];

/// A backend with tools of an office.
async fn office() -> Backend {
    let tool = |name: &str, description: &str| json!({"name": name, "description": description, "inputSchema": {"type": "object"}});
    Backend::with_tools(vec![
        tool("send_mail", "Send an electronic letter to a person"),
        tool("read_calendar", "Read appointments of a day"),
        tool("make_coffee", "Brew coffee in the kitchen machine"),
    ])
    .await
}

async fn find(client: &Client, description: &str, keywords: &[&str]) -> Value {
    let arguments = json!({"tool_description": description, "tool_keywords": keywords});
    client.request("tools/call", json!({"name": "find_tool", "arguments": arguments})).await
}

fn names(response: &Value) -> Vec<&str> {
    let tools = response["result"]["structuredContent"]["tools"].as_array();
    tools.unwrap_or_else(|| panic!("{response}")).iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

async fn call(client: &Client, tool: &str, parameters: Value) -> Value {
    let arguments = json!({"tool_name": tool, "parameters": parameters});
    client.request("tools/call", json!({"name": "call_tool", "arguments": arguments})).await
}

/// Clients of both eras.
async fn clients(server: &Server) -> [Client; 2] {
    [server.client().await, Client::modern(server.address, json!({}))]
}

#[tokio::test]
async fn a_client_sees_the_search_and_pinned_tools_and_finds_and_calls_all_others() {
    let backend = office().await;
    let server =
        Server::before(&[("a", &backend)], "optimizer: {pinnedTools: [a_send_mail, a_lost]}\n").await;
    for client in clients(&server).await {
        assert_eq!(client.tools().await, [OWN[0], OWN[1], "a_send_mail"]);
        let found = find(&client, "brew some coffee", &[]).await;
        assert_eq!(names(&found), ["a_make_coffee"]);
        let written: Value = serde_json::from_str(text(&found).0).unwrap();
        assert_eq!(written, found["result"]["structuredContent"]);
        let metrics = &written["token_metrics"];
        assert!(metrics["returned_tokens"].as_u64() < metrics["baseline_tokens"].as_u64(), "{metrics}");
        assert!(metrics["savings_percent"].as_f64().unwrap() > 50.0, "{metrics}");
        assert_eq!(names(&find(&client, "anything", &["calendars"]).await), ["a_read_calendar"]);
        assert_eq!(names(&find(&client, "zebra", &[]).await), [""; 0]);
        let called = call(&client, "a_make_coffee", json!({"cups": 2})).await;
        assert!(text(&called).0.starts_with("\"make_coffee\""), "{called}");
        assert!(text(&client.call("a_send_mail").await).0.starts_with("\"send_mail\""));
        assert_eq!(client.call("a_make_coffee").await["error"]["code"], -32602, "it must be searched for");
    }
}

#[tokio::test]
async fn a_mistake_of_a_model_is_an_error_of_the_tool() {
    let backend = office().await;
    let server = Server::before(&[("a", &backend)], "optimizer: {}\n").await;
    for client in clients(&server).await {
        assert_eq!(text(&call(&client, "nothing", json!({})).await), ("tool not found: nothing", true));
        assert_eq!(text(&call(&client, "call_tool", json!({})).await), ("tool not found: call_tool", true));
        assert_eq!(
            text(&call(&client, "a_send_mail", json!([])).await),
            ("parameters must be an object", true)
        );
        let nameless = client.request("tools/call", json!({"name": "call_tool", "arguments": {}})).await;
        assert!(text(&nameless).1 && text(&nameless).0.contains("tool_name is required"), "{nameless}");
        let nested = json!({"parameters": {"tool_name": "a_send_mail", "to": "ann"}});
        let nested = client.request("tools/call", json!({"name": "call_tool", "arguments": nested})).await;
        assert!(text(&nested).0.starts_with("\"send_mail\""), "{nested}");
        let wordless = client.request("tools/call", json!({"name": "find_tool", "arguments": {}})).await;
        assert!(text(&wordless).1, "{wordless}");
    }
}

#[tokio::test]
async fn descriptions_can_be_set_and_the_number_of_results_is_limited() {
    let backend = office().await;
    let more = "optimizer: {maxToolsToReturn: 1, findToolDescription: Search., callToolDescription: Call.}\n";
    let server = Server::before(&[("a", &backend)], more).await;
    let client = server.client().await;
    let list = client.request("tools/list", json!({})).await;
    let descriptions: Vec<&Value> =
        list["result"]["tools"].as_array().unwrap().iter().map(|tool| &tool["description"]).collect();
    assert_eq!(descriptions, ["Call.", "Search."]);
    assert_eq!(names(&find(&client, "read_calendar of the coffee machine", &[]).await), ["a_read_calendar"]);
}

#[tokio::test]
async fn a_call_through_the_search_is_the_call_of_that_tool_with_its_headers_and_input() {
    let backend = Scripted::start(Speaks::Modern).await;
    let server = Server::with_urls(&[("a", backend.url())], "optimizer: {}\n", None).await;
    let client = Client::modern(server.address, json!({"elicitation": {}}));
    let arguments = json!({"tool_name": "a_ask", "parameters": {"region": "eu"}});
    let mut params = json!({"name": "call_tool", "arguments": arguments});
    let script = async {
        let call = backend.next("tools/call").await;
        assert_eq!(call.headers["mcp-param-region"], "eu");
        assert_eq!(call.headers["mcp-name"], "ask");
        assert_eq!(call.message["params"]["arguments"], json!({"region": "eu"}));
        let question = json!({"method": "elicitation/create", "params": {"message": "Sure?"}});
        call.result(json!({
            "resultType": "input_required", "inputRequests": {"q": question}, "requestState": "s",
        }));
    };
    let (needed, ()) = tokio::join!(client.request("tools/call", params.clone()), script);
    assert_eq!(needed["result"]["resultType"], "input_required", "{needed}");
    params["requestState"] = needed["result"]["requestState"].clone();
    params["inputResponses"] = json!({"q": {"action": "accept", "content": {}}});
    let script = async {
        let call = backend.next("tools/call").await;
        assert_eq!(call.message["params"]["inputResponses"]["q"]["action"], "accept");
        call.result(json!({"resultType": "complete", "content": [{"type": "text", "text": "done"}]}));
    };
    let (done, ()) = tokio::join!(client.request("tools/call", params), script);
    assert_eq!(text(&done), ("done", false), "{done}");
}

#[tokio::test]
async fn a_composite_tool_is_found_and_called_like_any_other() {
    let backend = office().await;
    let combo =
        "{name: morning, description: Start the day with a hot drink, steps: [{id: s, tool: a_make_coffee}]}";
    let own = combo.replace("name: morning", "name: find_tool");
    let more = format!("optimizer: {{}}\ncompositeTools: [{combo}, {own}]\n");
    let server = Server::before(&[("a", &backend)], &more).await;
    for client in clients(&server).await {
        assert_eq!(client.tools().await, OWN);
        assert_eq!(names(&find(&client, "hot drinks", &[]).await), ["morning"]);
        let called = call(&client, "morning", json!({})).await;
        assert!(!text(&called).1 && text(&called).0.contains("make_coffee"), "{called}");
    }
}

#[tokio::test]
async fn searches_and_their_calls_are_counted() {
    let backend = office().await;
    let more = "optimizer: {}\n\
        telemetry: {serviceName: test, enablePrometheusMetricsPath: true, metricsEnabled: true}\n";
    let server = Server::before(&[("a", &backend)], more).await;
    let client = server.client().await;
    find(&client, "coffee", &[]).await;
    client.request("tools/call", json!({"name": "find_tool", "arguments": {}})).await;
    call(&client, "a_make_coffee", json!({})).await;
    call(&client, "nothing", json!({})).await;
    let page = client.page("/metrics").await;
    let value = |name: &str| {
        let name = format!("toolhive_vmcp_optimizer_{name}");
        let of = |line: &&str| line.strip_prefix(&*name).is_some_and(|rest| rest.starts_with([' ', '{']));
        let line = page.lines().find(of).unwrap_or_else(|| panic!("{name}: {page}"));
        line.rsplit_once(' ').unwrap().1.to_owned()
    };
    assert_eq!(value("find_tool_requests_total"), "2");
    assert_eq!(value("find_tool_errors_total"), "1");
    assert_eq!(value("find_tool_duration_seconds_count"), "2");
    assert_eq!(value("find_tool_results_sum"), "1.0");
    assert_eq!(value("token_savings_percent_count"), "1");
    assert_eq!(value("call_tool_requests_total"), "2");
    assert_eq!(value("call_tool_errors_total"), "1");
    assert_eq!(value("call_tool_not_found_total"), "1");
    assert_eq!(value("call_tool_duration_seconds_count"), "2");
}

/// A policy that permits some tools.
#[derive(Clone, Copy, Debug)]
enum Policy {
    /// Each by its name.
    Names,
    /// All but those that are forbidden.
    Forbidden,
    /// Those that only read.
    Hints,
}

const TOOLS: usize = 8;

fn policies(policy: Policy, permitted: &[bool; TOOLS]) -> Vec<String> {
    let of = |effect: &str, is_permitted: bool| {
        let tools = (0..TOOLS).filter(move |tool| permitted[*tool] == is_permitted);
        tools
            .map(|tool| format!(r#"{effect}(principal, action == Action::"call_tool", resource == Tool::"a_item_{tool}");"#))
            .collect::<Vec<_>>()
    };
    match policy {
        Policy::Names => of("permit", true),
        Policy::Forbidden => {
            let mut all = of("forbid", false);
            all.push("permit(principal, action, resource);".into());
            all
        }
        Policy::Hints => vec![
            "permit(principal, action, resource) when { resource has readOnlyHint && resource.readOnlyHint == true };".into(),
        ],
    }
}

async fn check_half(policy: Policy, permitted: [bool; TOOLS]) {
    let tool = |number: usize| {
        json!({
            "name": format!("item_{number}"), "description": "An item.", "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": permitted[number]},
        })
    };
    let backend = Backend::with_tools((0..TOOLS).map(tool).collect()).await;
    let mut policies: Vec<String> =
        policies(policy, &permitted).iter().map(|policy| json!(policy).to_string()).collect();
    if policies.is_empty() {
        policies.push(json!("forbid(principal, action, resource);").to_string());
    }
    let config = format!(
        "name: test\ngroupRef: test\noutgoingAuth: {{source: inline}}\noptimizer: {{maxToolsToReturn: 50}}\n\
         incomingAuth: {{type: anonymous, authz: {{type: cedar, policies: [{}]}}}}\n\
         aggregation: {{conflictResolution: prefix, conflictResolutionConfig: {{prefixFormat: \"{{workload}}_\"}}}}\n\
         backends: [{{name: a, url: \"{}\", transport: streamable-http}}]\n",
        policies.join(", "),
        backend.url(),
    );
    let server = Server::of(&config, None, None).await;
    let expected: Vec<String> =
        (0..TOOLS).filter(|tool| permitted[*tool]).map(|tool| format!("a_item_{tool}")).collect();
    for client in clients(&server).await {
        assert_eq!(client.tools().await, OWN);
        let found = find(&client, "items", &[]).await;
        let mut names = names(&found);
        names.sort_unstable();
        assert_eq!(names, expected, "{policy:?}");
        for (tool, is_permitted) in permitted.into_iter().enumerate() {
            backend.forget();
            let response = call(&client, &format!("a_item_{tool}"), json!({})).await;
            let has_called = backend.received("tools/call").len() == 1;
            let has_result = text(&response).0.starts_with("\"item_");
            assert_eq!((has_called, has_result), (is_permitted, is_permitted), "{policy:?} {response}");
        }
    }
    server.stop().await;
}

proptest! {
    #![proptest_config(Config { cases: 12, ..Config::default() })]

    #[test]
    fn a_caller_finds_and_calls_just_the_tools_that_policies_permit(
        policy in prop::sample::select(vec![Policy::Names, Policy::Forbidden, Policy::Hints]),
        permitted in prop::array::uniform8(any::<bool>()),
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(check_half(policy, permitted));
    }
}
