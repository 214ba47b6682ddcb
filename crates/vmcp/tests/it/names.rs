//! One name that a backend's tool, a composite tool and a builtin of scripts have.

use proptest::{prelude::*, sample::select};
use serde_json::{Value, json};

use crate::{
    Server,
    backend::{Backend, tool},
    client::{Client, text},
};

/// A configuration with backends of these names, and more lines.
fn config(backends: &[(&str, &Backend)], policies: Option<&[String]>, more: &Value) -> String {
    let backends: Vec<Value> = backends
        .iter()
        .map(|(name, backend)| json!({"name": name, "url": backend.url(), "transport": "streamable-http"}))
        .collect();
    let mut incoming = json!({"type": "anonymous"});
    if let Some(policies) = policies {
        incoming["authz"] = json!({"type": "cedar", "policies": policies});
    }
    let mut config = json!({
        "name": "test", "groupRef": "test", "outgoingAuth": {"source": "inline"}, "incomingAuth": incoming,
        "backends": backends,
    });
    for (name, value) in more.as_object().unwrap() {
        config[name] = value.clone();
    }
    config.to_string()
}

/// Names stay as they are, and the first of these backends wins.
fn priority(order: &[&str], rules: Value) -> Value {
    json!({
        "conflictResolution": "priority", "conflictResolutionConfig": {"priorityOrder": order}, "tools": rules,
    })
}

fn prefix(rules: Value) -> Value {
    json!({
        "conflictResolution": "prefix", "conflictResolutionConfig": {"prefixFormat": "{workload}_"},
        "tools": rules,
    })
}

/// A composite tool with one step.
fn composite(name: &str, step: &str) -> Value {
    json!({"name": name, "description": "A flow.", "steps": [{"id": "s", "tool": step}]})
}

async fn backend(names: &[&str]) -> Backend {
    Backend::with_tools(names.iter().map(|name| tool(name)).collect()).await
}

#[tokio::test]
async fn a_composite_tool_guards_the_hidden_tool_of_its_name() {
    let rules = json!([{"workload": "a", "filter": ["other"]}]);
    for (aggregation, name, step) in [
        (priority(&["a"], rules.clone()), "publish", "a.publish"),
        (priority(&["a"], rules.clone()), "publish", "publish"),
        (prefix(rules.clone()), "a_publish", "a.publish"),
        (prefix(rules.clone()), "a_publish", "a_publish"),
    ] {
        let backend = backend(&["publish", "other"]).await;
        let more = json!({"aggregation": aggregation, "compositeTools": [composite(name, step)]});
        let server = Server::of(&config(&[("a", &backend)], None, &more), None, None).await;
        let client = server.client().await;
        let called = client.call(name).await;
        assert!(!text(&called).1 && called["result"].is_object(), "{step}: {called}");
        assert_eq!(backend.called(), ["publish"], "{step}");
    }
}

#[tokio::test]
async fn a_step_calls_its_backend_beside_a_composite_of_that_name() {
    let backend = backend(&["raw", "other"]).await;
    let more = json!({
        "aggregation": priority(&["a"], json!([{"workload": "a", "filter": ["other"]}])),
        "compositeTools": [composite("raw", "a.other"), composite("flow", "a.raw")],
        "codeMode": {"enabled": true},
    });
    let server = Server::of(&config(&[("a", &backend)], None, &more), None, None).await;
    let client = server.client().await;
    client.call("flow").await;
    assert_eq!(backend.called(), ["raw"]);
    backend.forget();
    let script = json!({"name": "execute_tool_script", "arguments": {"script": "flow()\nreturn raw()"}});
    let response = client.request("tools/call", script).await;
    assert!(!text(&response).1, "{response}");
    assert_eq!(backend.called(), ["raw", "other"]);
}

#[tokio::test]
async fn a_composite_tool_keeps_its_name_from_backends() {
    let (good, bad) = (backend(&["send"]).await, backend(&["other", "publish", "lost"]).await);
    let more = json!({
        "aggregation": priority(&["bad", "good"], json!([])),
        "compositeTools": [composite("publish", "good.send"), composite("lost", "good.none")],
    });
    let server = Server::of(&config(&[("bad", &bad), ("good", &good)], None, &more), None, None).await;
    let client = server.client().await;
    assert_eq!(client.tools().await, ["other", "publish", "send"]);
    assert_eq!(server.server.backend_states()[0]["hiddenTools"], json!(["lost", "publish"]));
    assert!(!text(&client.call("publish").await).1);
    assert_eq!((good.called(), bad.called()), (vec!["send".to_owned()], Vec::new()));
    let lost = client.call("lost").await;
    assert_eq!(lost["error"]["message"], "unknown tool \"lost\"", "{lost}");
}

/// A backend chooses the names of its tools, and so one that reads like a tool of another.
#[tokio::test]
async fn a_step_calls_the_workload_that_it_names_and_no_other() {
    let good = backend(&["publish", "seen"]).await;
    let bad = backend(&["good.publish", "good.lost"]).await;
    let more = json!({
        "aggregation": priority(&["bad", "good"], json!([{"workload": "good", "filter": ["seen"]}])),
        "compositeTools": [composite("flow", "good.publish"), composite("other", "good.lost")],
    });
    let server = Server::of(&config(&[("bad", &bad), ("good", &good)], None, &more), None, None).await;
    let client = server.client().await;
    assert_eq!(client.tools().await, ["flow", "good.lost", "good.publish", "seen"]);
    assert!(!text(&client.call("flow").await).1);
    assert_eq!((good.called(), bad.called()), (vec!["publish".to_owned()], Vec::new()));
}

/// Names that mean something to backends, composite tools, the search and scripts.
const NAMES: [&str; 8] =
    ["echo", "publish", "a_echo", "len", "parallel", "find_tool", "call_tool", "execute_tool_script"];
const BACKENDS: [&str; 2] = ["a", "b"];

/// How a caller calls tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Call,
    Search,
    /// By call_tool of a script.
    Script,
    /// As a function of a script.
    Function,
}

/// A configuration, and who may call what.
#[derive(Clone, Debug)]
struct Case {
    way: Way,
    has_prefixes: bool,
    /// The tools of each backend, and those of the first that clients do not see.
    tools: [[bool; NAMES.len()]; 2],
    hidden: [bool; NAMES.len()],
    /// Composite tools, each with the backend and the tool of its step, and whether the step names the backend.
    composites: Vec<(&'static str, usize, &'static str, bool)>,
    denied: [bool; NAMES.len()],
}

/// A tool of a backend.
type Reached = (usize, &'static str);

impl Case {
    fn own_tools(&self) -> &[&str] {
        if self.way == Way::Search { &NAMES[5..] } else { &NAMES[7..] }
    }

    fn key(&self, (backend, tool): Reached) -> String {
        if self.has_prefixes { format!("{}_{tool}", BACKENDS[backend]) } else { tool.to_owned() }
    }

    /// The tools of backends that workflows can call, by their names.
    fn tools_of_backends(&self) -> Vec<(String, Reached)> {
        let mut all: Vec<(String, Reached)> = Vec::new();
        for backend in 0..BACKENDS.len() {
            for (tool, _) in NAMES.iter().zip(self.tools[backend]).filter(|(_, is_there)| *is_there) {
                let key = self.key((backend, tool));
                if !self.own_tools().contains(&&*key) && all.iter().all(|(other, _)| *other != key) {
                    all.push((key, (backend, tool)));
                }
            }
        }
        all
    }

    fn is_denied(&self, name: &str) -> bool {
        NAMES.iter().zip(self.denied).any(|(denied, is)| is && name.ends_with(denied))
    }

    fn is_hidden(&self, (backend, tool): Reached) -> bool {
        backend == 0 && NAMES.iter().zip(self.hidden).any(|(hidden, is)| is && *hidden == tool)
    }

    /// What a call of this name may reach.
    fn expected(&self, name: &str) -> Option<Reached> {
        let is_function = self.way == Way::Function;
        if self.is_denied(name) || self.own_tools().contains(&name) {
            return None;
        }
        if is_function && ["len", "parallel", "call_tool"].contains(&name) {
            return None;
        }
        let tools = self.tools_of_backends();
        if let Some((_, backend, tool, _)) = self.composites.iter().find(|(other, ..)| *other == name) {
            let step = (*backend, *tool);
            let found = tools.iter().find(|(key, found)| match self.names_backend(name) {
                true => *found == step,
                false => *key == self.key(step),
            });
            return found.filter(|(key, _)| !self.is_denied(key)).map(|(_, reached)| *reached);
        }
        let found = tools.iter().find(|(key, _)| *key == name).map(|(_, reached)| *reached);
        found.filter(|reached| !self.is_hidden(*reached))
    }

    fn names_backend(&self, composite: &str) -> bool {
        self.composites.iter().any(|(name, .., names)| *name == composite && *names)
    }

    fn config(&self, backends: &[Backend; 2]) -> String {
        let shown: Vec<&str> =
            NAMES.iter().zip(self.hidden).filter(|(_, is)| !is).map(|(name, _)| *name).collect();
        let rules = match &shown[..] {
            [] => json!([{"workload": "a", "excludeAll": true}]),
            shown => json!([{"workload": "a", "filter": shown}]),
        };
        let flows = self.composites.iter().map(|(name, backend, tool, names_backend)| {
            let step = match names_backend {
                true => format!("{}.{tool}", BACKENDS[*backend]),
                false => self.key((*backend, tool)),
            };
            composite(name, &step)
        });
        let mut more = json!({
            "aggregation": if self.has_prefixes { prefix(rules) } else { priority(&BACKENDS, rules) },
            "compositeTools": flows.collect::<Vec<_>>(), "codeMode": {"enabled": true},
        });
        if self.way == Way::Search {
            more["optimizer"] = json!({});
        }
        let permit = |name: &String| {
            format!(r#"permit(principal, action == Action::"call_tool", resource == Tool::"{name}");"#)
        };
        let permitted = self.names().into_iter().filter(|name| !self.is_denied(name));
        let policies: Vec<String> =
            permitted.chain(["nothing".to_owned()]).map(|name| permit(&name)).collect();
        config(&[("a", &backends[0]), ("b", &backends[1])], Some(&policies), &more)
    }

    /// All names that anything can have.
    fn names(&self) -> Vec<String> {
        let prefixed = BACKENDS.iter().flat_map(|backend| NAMES.map(|name| format!("{backend}_{name}")));
        let mut all: Vec<String> = NAMES.map(str::to_owned).into_iter().chain(prefixed).collect();
        all.sort();
        all.dedup();
        all
    }

    fn call(&self, name: &str) -> Value {
        let script = |source: String| json!({"name": "execute_tool_script", "arguments": {"script": source}});
        match self.way {
            Way::Call => json!({"name": name, "arguments": {}}),
            Way::Search => json!({"name": "call_tool", "arguments": {"tool_name": name, "parameters": {}}}),
            Way::Script => script(format!("return call_tool(\"{name}\")")),
            Way::Function => script(format!("return {name}()")),
        }
    }

    async fn check(self) {
        let tools = self
            .tools
            .map(|there| NAMES.iter().zip(there).filter(|(_, is)| *is).map(|(name, _)| tool(name)).collect());
        let [a, b] = tools;
        let backends = [Backend::with_tools(a).await, Backend::with_tools(b).await];
        let server = Server::of(&self.config(&backends), None, None).await;
        for client in [server.client().await, Client::modern(server.address, json!({}))] {
            for name in self.names() {
                backends.iter().for_each(Backend::forget);
                let response = client.request("tools/call", self.call(&name)).await;
                let called = backends
                    .iter()
                    .enumerate()
                    .flat_map(|(index, backend)| backend.called().into_iter().map(move |tool| (index, tool)));
                let called: Vec<(usize, String)> = called.collect();
                let expected: Vec<(usize, String)> =
                    self.expected(&name).into_iter().map(|(index, tool)| (index, tool.to_owned())).collect();
                assert_eq!(called, expected, "{name}: {response}\n{self:?}");
            }
        }
        server.stop().await;
    }
}

fn cases() -> impl Strategy<Value = Case> {
    let bools = || prop::array::uniform8(any::<bool>());
    let composite = (select(&NAMES[..]), 0..BACKENDS.len(), select(&NAMES[..]), any::<bool>());
    let parts = (
        select(vec![Way::Call, Way::Search, Way::Script, Way::Function]),
        any::<bool>(),
        [bools(), bools()],
        bools(),
        prop::collection::vec(composite, 0..4),
        prop::array::uniform8(prop::bool::weighted(0.2)),
    );
    parts.prop_map(|(way, has_prefixes, tools, hidden, mut composites, denied)| {
        composites.sort();
        composites.dedup_by_key(|(name, ..)| *name);
        Case { way, has_prefixes, tools, hidden, composites, denied }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn a_call_reaches_what_policies_saw_and_nothing_else(case in cases()) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(case.check());
    }
}

#[test]
fn two_tools_of_a_backend_with_one_name_are_a_warning() {
    let tools = "{workload: a, overrides: {echo: {name: x}, last: {name: x}}}, {workload: b, overrides: {echo: {name: x}}}";
    let backends = ["a", "b"].map(|name| (name, "http://127.0.0.1:1/mcp".to_owned()));
    let config = Server::config(&backends, "");
    let config = config.replace("aggregation:\n", &format!("aggregation:\n  tools: [{tools}]\n"));
    let settings = skep_vmcp::Settings::parse(&config).unwrap();
    let warnings: Vec<String> = settings.warnings().iter().map(ToString::to_string).collect();
    let expected = "aggregation.tools[0].overrides[last].name: \"x\" is the name of echo as well, and only one is offered: \
                    give each another name";
    assert_eq!(warnings, [expected]);
}
