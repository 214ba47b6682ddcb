//! A property over generated policies: whichever way a caller takes, it learns of and calls just what it may. A workflow that runs as
//! itself calls just what it may itself.

use proptest::{prelude::*, sample::select};
use serde_json::{Value, json};

use crate::{
    Server,
    backend::Backend,
    client::{Client, text},
};

/// How a caller gets to tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    List,
    Search,
    Script,
}

const TOOLS: usize = 4;
/// A workflow of its caller, and one that runs as itself. Each has a step for each tool, and goes on whatever becomes of it.
const FLOWS: [&str; 2] = ["flow_of_caller", "flow_of_itself"];

/// Who may call what.
#[derive(Clone, Debug)]
struct Permitted {
    caller: [bool; TOOLS],
    workflow: [bool; TOOLS],
    flows: [bool; 2],
    /// Whether policies forbid the rest, and otherwise permit each.
    by_forbidding: bool,
}

fn tool(number: usize) -> String {
    format!("a_item_{number}")
}

fn names(permitted: &[bool; TOOLS]) -> Vec<String> {
    (0..TOOLS).filter(|number| permitted[*number]).map(tool).collect()
}

impl Permitted {
    /// What the caller may call, in the order of names.
    fn of_caller(&self) -> Vec<String> {
        let flows = FLOWS.into_iter().zip(self.flows).filter(|(_, is_permitted)| *is_permitted);
        names(&self.caller).into_iter().chain(flows.map(|(name, _)| name.to_owned())).collect()
    }

    fn policies(&self) -> Vec<String> {
        const CALLER: &str = "principal is Client";
        const WORKFLOW: &str = r#"principal == Workflow::"flow_of_itself""#;
        let policy = |effect: &str, who: &str, tool: &str| {
            format!(r#"{effect}({who}, action == Action::"call_tool", resource == Tool::"{tool}");"#)
        };
        let effect = if self.by_forbidding { "forbid" } else { "permit" };
        // What the effect is about is the other half, if it forbids.
        let is_named = |is_permitted: bool| is_permitted != self.by_forbidding;
        let mut policies = Vec::new();
        for (who, permitted) in [(CALLER, self.caller), (WORKFLOW, self.workflow)] {
            let named = (0..TOOLS).filter(|number| is_named(permitted[*number]));
            policies.extend(named.map(|number| policy(effect, who, &tool(number))));
        }
        let flows = FLOWS.iter().zip(self.flows).filter(|(_, is_permitted)| is_named(*is_permitted));
        policies.extend(flows.map(|(flow, _)| policy(effect, CALLER, flow)));
        policies.push(match self.by_forbidding {
            true => "permit(principal, action, resource);".into(),
            false => policy("permit", "principal", "none"),
        });
        policies
    }
}

fn config(way: Way, permitted: &Permitted, backend: &Backend) -> String {
    let policies: Vec<String> = permitted.policies().iter().map(|policy| json!(policy).to_string()).collect();
    let steps: Vec<Value> = (0..TOOLS)
        .map(|number| {
            json!({"id": format!("s{number}"), "tool": tool(number), "onError": {"action": "continue"}})
        })
        .collect();
    let flow = |name: &str, run_as: Option<&str>| {
        let mut flow = json!({"name": name, "description": "A flow.", "steps": steps});
        if let Some(run_as) = run_as {
            flow["runAs"] = run_as.into();
        }
        flow
    };
    let flows = json!([flow(FLOWS[0], None), flow(FLOWS[1], Some("workflow"))]);
    let way = match way {
        Way::List => "",
        Way::Search => "optimizer: {maxToolsToReturn: 50}\n",
        Way::Script => "codeMode: {enabled: true}\n",
    };
    format!(
        "name: test\ngroupRef: test\noutgoingAuth: {{source: inline}}\nallowRunAsWorkflow: true\n\
         incomingAuth: {{type: anonymous, authz: {{type: cedar, policies: [{}]}}}}\n\
         aggregation: {{conflictResolution: prefix, conflictResolutionConfig: {{prefixFormat: \"{{workload}}_\"}}}}\n\
         backends: [{{name: a, url: \"{}\", transport: streamable-http}}]\ncompositeTools: {flows}\n{way}",
        policies.join(", "),
        backend.url(),
    )
}

impl Way {
    /// What a caller can learn of, of these.
    async fn learned(self, client: &Client, all: &[String]) -> Vec<String> {
        let list = client.request("tools/list", json!({})).await["result"]["tools"].take();
        let seen = match self {
            Self::List => list,
            Self::Search => {
                let arguments =
                    json!({"tool_description": "item or flow", "tool_keywords": ["items", "flows"]});
                let params = json!({"name": "find_tool", "arguments": arguments});
                let found = client.request("tools/call", params).await;
                json!([list, found["result"]["structuredContent"]["tools"]])
            }
            Self::Script => {
                let is_own = |tool: &&Value| tool["name"] == "execute_tool_script";
                let description =
                    list.as_array().unwrap().iter().find(is_own).unwrap()["description"].clone();
                json!([description, list])
            }
        };
        let seen = seen.to_string();
        all.iter().filter(|name| seen.contains(*name)).cloned().collect()
    }

    /// Calls a tool. Returns whether that was allowed.
    async fn call(self, client: &Client, tool: &str) -> bool {
        let (name, arguments) = match self {
            Self::List => (tool, json!({})),
            Self::Search => ("call_tool", json!({"tool_name": tool, "parameters": {}})),
            Self::Script => {
                ("execute_tool_script", json!({"script": format!("return call_tool(\"{tool}\")")}))
            }
        };
        let response = client.request("tools/call", json!({"name": name, "arguments": arguments})).await;
        response.get("error").is_none() && !text(&response).1
    }
}

async fn check(way: Way, permitted: Permitted) {
    let item = |number: usize| json!({"name": format!("item_{number}"), "description": "An item.", "inputSchema": {"type": "object"}});
    let backend = Backend::with_tools((0..TOOLS).map(item).collect()).await;
    let server = Server::of(&config(way, &permitted, &backend), None, None).await;
    let all: Vec<String> = (0..TOOLS).map(tool).chain(FLOWS.map(str::to_owned)).collect();
    for client in [server.client().await, Client::modern(server.address, json!({}))] {
        assert_eq!(way.learned(&client, &all).await, permitted.of_caller());
        for name in &all {
            backend.forget();
            let is_allowed = way.call(&client, name).await;
            assert_eq!(is_allowed, permitted.of_caller().contains(name), "{name}");
            let mut called: Vec<String> =
                backend.called().into_iter().map(|called| format!("a_{called}")).collect();
            called.sort();
            let expected = match () {
                () if !is_allowed => Vec::new(),
                () if name == FLOWS[0] => names(&permitted.caller),
                () if name == FLOWS[1] => names(&permitted.workflow),
                () => vec![name.clone()],
            };
            assert_eq!(called, expected, "{name}");
        }
    }
    server.stop().await;
}

/// The attack: a caller that may not read a resource hears of its changes.
#[tokio::test]
async fn a_client_hears_only_of_resources_that_it_may_read() {
    let backend = Backend::start().await;
    let policy = r#"permit(principal, action == Action::"read_resource", resource == Resource::"kit://2");"#;
    let policy = json!([policy]).to_string();
    let auth = format!("incomingAuth: {{type: anonymous, authz: {{type: cedar, policies: {policy}}}}}");
    let config = Server::config(&[("a", backend.url())], "");
    let server = Server::of(&config.replace("incomingAuth: {type: anonymous}", &auth), None, None).await;
    let client = Client::modern(server.address, json!({}));
    let notifications = |uri: &str| json!({"notifications": {"resourceSubscriptions": [uri]}});
    backend.forget();
    let denied = client.request("subscriptions/listen", notifications("kit://1")).await;
    let error = json!({"code": 403, "message": "read denied by authorization policy"});
    assert_eq!(denied["error"], error, "{denied}");
    assert_eq!(backend.received("resources/subscribe"), Vec::<String>::new());
    let mut stream = client.open("subscriptions/listen", notifications("kit://2")).await;
    let acknowledged = stream.next().await.unwrap();
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
}

/// The attack: a backend sends a caller updates of resources that it has not subscribed to, as it may not read them.
#[tokio::test]
async fn a_client_hears_of_no_resource_but_those_that_it_has_subscribed_to() {
    for backend in [Backend::start().await, Backend::modern().await] {
        backend.allow_streams();
        let policy =
            r#"permit(principal, action == Action::"read_resource", resource == Resource::"kit://1");"#;
        let policy = json!([policy]).to_string();
        let auth = format!("incomingAuth: {{type: anonymous, authz: {{type: cedar, policies: {policy}}}}}");
        let config = Server::config(&[("a", backend.url())], "");
        let server = Server::of(&config.replace("incomingAuth: {type: anonymous}", &auth), None, None).await;
        let modern = Client::modern(server.address, json!({}));
        let wanted = json!({"notifications": {"resourceSubscriptions": ["kit://1"]}});
        let mut of_modern = modern.open("subscriptions/listen", wanted).await;
        assert_eq!(of_modern.next().await.unwrap()["method"], "notifications/subscriptions/acknowledged");
        let older = server.client().await;
        let denied = older.request("resources/subscribe", json!({"uri": "kit://2"})).await;
        assert_eq!(denied["error"]["code"], 403, "{denied}");
        let mut of_older = older.listen().await;
        let subscribed = older.request("resources/subscribe", json!({"uri": "kit://1"})).await;
        assert_eq!(subscribed["result"], json!({}), "{subscribed}");
        for events in [&mut of_modern, &mut of_older] {
            let heard = async {
                loop {
                    let event = events.next().await.unwrap();
                    if event["method"] == "notifications/resources/updated" {
                        return event["params"]["uri"].clone();
                    }
                }
            };
            let sent = async {
                loop {
                    for uri in ["kit://2", "kit://1"] {
                        let message = json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}});
                        backend.send(&message, &backend.streams());
                    }
                    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                }
            };
            tokio::select! {
                uri = heard => assert_eq!(uri, "kit://1"),
                () = sent => {}
            }
        }
    }
}

/// The attack: completions tell values of what the caller may not use.
#[tokio::test]
async fn a_completion_needs_permission_for_what_it_refers_to() {
    let backend = Backend::start().await;
    let policy = r#"permit(principal, action == Action::"get_prompt", resource == Prompt::"a_greet");"#;
    let policy = json!([policy]).to_string();
    let auth = format!("incomingAuth: {{type: anonymous, authz: {{type: cedar, policies: {policy}}}}}");
    let config = Server::config(&[("a", backend.url())], "");
    let server = Server::of(&config.replace("incomingAuth: {type: anonymous}", &auth), None, None).await;
    for client in [server.client().await, Client::modern(server.address, json!({}))] {
        let complete = |reference: Value| {
            let argument = json!({"name": "x", "value": ""});
            client.request("completion/complete", json!({"ref": reference, "argument": argument}))
        };
        for denied in [
            json!({"type": "ref/prompt", "name": "a_other"}),
            json!({"type": "ref/resource", "uri": "kit://{id}"}),
        ] {
            let answer = complete(denied).await;
            assert_eq!(answer["error"]["code"], 403, "{answer}");
        }
        let answer = complete(json!({"type": "ref/prompt", "name": "a_greet"})).await;
        assert!(answer["result"]["completion"].is_object(), "{answer}");
    }
    server.stop().await;
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn a_caller_learns_of_and_calls_just_its_half_and_a_workflow_of_its_own_just_the_workflows(
        way in select(vec![Way::List, Way::Search, Way::Script]),
        caller in prop::array::uniform4(any::<bool>()),
        workflow in prop::array::uniform4(any::<bool>()),
        flows in prop::array::uniform2(any::<bool>()),
        by_forbidding: bool,
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(check(way, Permitted { caller, workflow, flows, by_forbidding }));
    }
}
