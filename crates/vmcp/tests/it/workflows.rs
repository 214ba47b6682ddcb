//! Composite tools.

use std::{sync::Arc, time::Duration};

use http::Method;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use skep_workflow::{Answer, CallError, Checkpoint, Event, Question};

use crate::{
    Server,
    backend::{Backend, Mood},
    client::{Client, text},
    scripted::{Scripted, Speaks},
};

/// A workflow whose only step calls the tool of the backend.
const COMBO: &str =
    r#"{name: combo, description: d, steps: [{id: s, tool: a_ask, arguments: {region: "eu"}}]}"#;

/// A workflow that asks the user, and then calls the tool with the answer.
const POLITE: &str = r#"{name: polite, description: d, steps: [
  {id: q, type: elicitation, message: "Which?", schema: {type: object, properties: {region: {type: string}}, required: [region]}},
  {id: s, tool: a.ask, dependsOn: [q], arguments: {region: "{{.steps.q.output.content.region}}"}}]}"#;

async fn server(backend: &Scripted, tools: &[&str]) -> Server {
    let tools = format!("compositeTools: [{}]\n", tools.join(", "));
    Server::with_urls(&[("a", backend.url())], &tools, None).await
}

fn done() -> Value {
    json!({"content": [], "structuredContent": {"n": 1}})
}

#[tokio::test]
async fn a_composite_tool_is_listed_and_called_like_any_other() {
    let backend = Scripted::start(Speaks::Legacy).await;
    let server = server(&backend, &[COMBO]).await;
    let client = server.client().await;
    assert_eq!(client.tools().await, ["a_ask", "combo"]);
    let script = async {
        let call = backend.next("tools/call").await;
        assert_eq!(call.message["params"], json!({"name": "ask", "arguments": {"region": "eu"}}));
        call.result(done());
    };
    let (response, ()) = tokio::join!(client.call("combo"), script);
    assert_eq!(response["result"]["structuredContent"], json!({"n": 1}));
    assert_eq!(text(&response), (r#"{"n":1}"#, false));
}

#[tokio::test]
async fn a_name_that_a_backend_has_removes_one_composite_tool() {
    let backend = Scripted::start(Speaks::Legacy).await;
    let clashing = COMBO.replace("name: combo", "name: a_ask");
    let unknown = COMBO.replace("name: combo", "name: lost").replace("tool: a_ask", "tool: a_none");
    let server = server(&backend, &[&clashing, COMBO, &unknown]).await;
    assert_eq!(server.client().await.tools().await, ["a_ask", "combo"]);
}

/// A configuration with these policies, and more lines.
fn judged(backend: &Scripted, policies: &[String], more: &str) -> String {
    format!(
        "name: test\ngroupRef: test\noutgoingAuth: {{source: inline}}\n\
         incomingAuth: {{type: anonymous, authz: {{type: cedar, policies: [{}]}}}}\n\
         aggregation: {{conflictResolution: prefix, conflictResolutionConfig: {{prefixFormat: \"{{workload}}_\"}}}}\n\
         backends: [{{name: a, url: \"{}\", transport: streamable-http}}]\n{more}",
        policies.join(", "),
        backend.url(),
    )
}

/// A policy that lets these call a tool.
fn permit(principal: &str, tool: &str) -> String {
    format!(r#"'permit({principal}, action == Action::"call_tool", resource == Tool::"{tool}");'"#)
}

#[tokio::test]
async fn a_workflow_that_runs_as_itself_needs_policies_of_its_own_and_its_caller_only_one_for_the_tool() {
    let combo = COMBO.replace("description: d", "description: d, runAs: workflow");
    let more = format!("allowRunAsWorkflow: true\ncompositeTools: [{combo}]\n");
    let (workflow, other) = (r#"principal == Workflow::"combo""#, r#"principal == Workflow::"other""#);
    for (policies, is_allowed) in [
        (vec![permit("principal is Client", "combo"), permit(workflow, "a_ask")], true),
        (vec![permit("principal is Client", "combo"), permit(other, "a_ask")], false),
        // What the caller may call by itself does not count.
        (vec![permit("principal is Client", "combo"), permit("principal is Client", "a_ask")], false),
        // The composite tool is called by the caller.
        (vec![permit(workflow, "combo"), permit(workflow, "a_ask")], false),
    ] {
        let backend = Scripted::start(Speaks::Legacy).await;
        let server = Server::of(&judged(&backend, &policies, &more), None, None).await;
        let client = server.client().await;
        let script = async {
            if is_allowed {
                backend.next("tools/call").await.result(done());
            }
        };
        let (response, ()) = tokio::join!(client.call("combo"), script);
        let is_denied = response.get("error").is_some() || text(&response).1;
        assert_eq!(is_denied, !is_allowed, "{policies:?}: {response}");
        if is_allowed {
            let direct = client.call("a_ask").await;
            assert!(direct.get("error").is_some(), "the caller itself may not: {direct}");
        }
    }
}

#[tokio::test]
async fn a_policy_applies_to_each_step_of_a_workflow() {
    for (tools, is_allowed) in [(vec!["combo"], false), (vec!["combo", "a_ask"], true)] {
        let backend = Scripted::start(Speaks::Legacy).await;
        let policies: Vec<String> = tools.into_iter().map(|tool| permit("principal", tool)).collect();
        let config = judged(&backend, &policies, &format!("compositeTools: [{COMBO}]\n"));
        let server = Server::of(&config, None, None).await;
        let client = server.client().await;
        let script = async {
            if is_allowed {
                backend.next("tools/call").await.result(done());
            }
        };
        let (response, ()) = tokio::join!(client.call("combo"), script);
        let (text, is_error) = text(&response);
        assert_eq!(is_error, !is_allowed, "{response}");
        assert!(is_allowed || text.contains("step \"s\" failed"), "{text}");
    }
}

#[tokio::test]
async fn a_client_of_2025_gets_the_question_on_the_stream_of_its_call() {
    let backend = Scripted::start(Speaks::Legacy).await;
    let server = server(&backend, &[POLITE]).await;
    let client = Client::start(server.address, json!({"elicitation": {}})).await;
    let script = async {
        let call = backend.next("tools/call").await;
        assert_eq!(call.message["params"]["arguments"], json!({"region": "eu"}));
        call.result(done());
    };
    let called = async {
        let mut events = client.open("tools/call", json!({"name": "polite", "arguments": {}})).await;
        let question = events.next().await.unwrap();
        assert_eq!(
            (&question["method"], &question["params"]["message"]),
            (&json!("elicitation/create"), &json!("Which?"))
        );
        let result = json!({"action": "accept", "content": {"region": "eu"}});
        let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
        assert_eq!(client.send(Method::POST, Some(&answer)).await.status(), 202);
        events.next().await.unwrap()
    };
    let (response, ()) = tokio::join!(called, script);
    assert_eq!(response["result"]["structuredContent"], json!({"n": 1}));
}

#[tokio::test]
async fn a_client_of_2026_sends_its_call_again_with_the_answer() {
    let backend = Scripted::start(Speaks::Modern).await;
    let server = server(&backend, &[POLITE]).await;
    let client = Client::modern(server.address, json!({"elicitation": {}}));
    let mut params = json!({"name": "polite", "arguments": {}});
    let needed = client.request("tools/call", params.clone()).await;
    let needed = &needed["result"];
    assert_eq!(needed["resultType"], "input_required", "{needed}");
    assert_eq!(needed["inputRequests"]["1"]["params"]["message"], "Which?");
    params["requestState"] = needed["requestState"].clone();
    params["inputResponses"] = json!({"1": {"action": "accept", "content": {"region": "eu"}}});
    let script = async {
        let call = backend.next("tools/call").await;
        assert_eq!(call.message["params"]["arguments"], json!({"region": "eu"}));
        assert_eq!(call.headers["mcp-param-region"], "eu");
        call.result(json!({"resultType": "complete", "content": [], "structuredContent": {"n": 1}}));
    };
    let answered = params.clone();
    let (response, ()) = tokio::join!(client.request("tools/call", params), script);
    assert_eq!(response["result"]["structuredContent"], json!({"n": 1}), "{response}");
    let again = client.request("tools/call", answered).await;
    assert_eq!(again["error"]["code"], -32602, "a workflow does not run twice: {again}");
}

#[tokio::test]
async fn a_client_without_elicitation_gets_the_reason() {
    let backend = Scripted::start(Speaks::Legacy).await;
    let server = server(&backend, &[POLITE]).await;
    let response = server.client().await.call("polite").await;
    let expected =
        "Workflow execution failed: step \"q\" failed: the client does not support elicitation by forms";
    assert_eq!(text(&response), (expected, true));
    // It would have nothing to open.
    let opener = json!({"elicitation": {"url": {}}});
    let response = Client::start(server.address, opener.clone()).await.call("polite").await;
    assert_eq!(text(&response), (expected, true));
    let response = Client::modern(server.address, opener).call("polite").await;
    assert_eq!(text(&response), (expected, true));
    // Without modes, it is by forms.
    for modes in [json!({}), json!({"form": {}}), json!({"form": {}, "url": {}})] {
        let client = Client::modern(server.address, json!({"elicitation": modes}));
        let response = client.call("polite").await;
        assert_eq!(response["result"]["resultType"], "input_required", "{modes}: {response}");
    }
}

/// What a workflow does without an answer.
const WITHOUT_ANSWER: [&str; 3] = ["abort", "continue", "skip_remaining"];

#[tokio::test]
async fn a_user_of_a_client_of_2026_declines_or_dismisses_a_question() {
    let backend = Backend::start().await;
    let tools = WITHOUT_ANSWER.map(|action| {
        format!(
            "{{name: {action}, description: d, steps: [\
             {{id: q, type: elicitation, message: m, schema: {{type: object}}, \
             onDecline: {{action: {action}}}, onCancel: {{action: {action}}}}}, \
             {{id: s, tool: a_echo, dependsOn: [q]}}]}}"
        )
    });
    let tools = format!("compositeTools: [{}]\n", tools.join(", "));
    let server = Server::before(&[("a", &backend)], &tools).await;
    let client = Client::modern(server.address, json!({"elicitation": {}}));
    for (action, reason) in [("decline", "the user declined"), ("cancel", "the user dismissed the question")]
    {
        for tool in WITHOUT_ANSWER {
            backend.forget();
            let mut params = json!({"name": tool, "arguments": {}});
            let needed = client.request("tools/call", params.clone()).await;
            assert_eq!(needed["result"]["resultType"], "input_required", "{needed}");
            params["requestState"] = needed["result"]["requestState"].clone();
            params["inputResponses"] = json!({"1": {"action": action}});
            let response = client.request("tools/call", params).await;
            let (message, is_error) = text(&response);
            assert_eq!(is_error, tool == "abort", "{response}");
            if is_error {
                assert_eq!(message, format!("Workflow execution failed: step \"q\" failed: {reason}"));
            }
            let expected: &[&str] = if tool == "continue" { &["echo"] } else { &[] };
            assert_eq!(backend.called(), expected, "{tool}");
        }
    }
}

#[tokio::test]
async fn a_caller_runs_a_bounded_number_of_workflows() {
    /// The share of an address whose callers are anonymous.
    const SHARE: usize = 400;
    let backend = Backend::start().await;
    let combo = COMBO.replace("a_ask", "a_echo");
    let tools = format!("compositeTools: [{combo}]\n");
    let server = Server::before(&[("a", &backend)], &tools).await;
    let client = server.client().await;
    let stranger = Client::start(server.address, json!({})).await.from([127, 0, 0, 2]);
    assert!(!text(&client.call("combo").await).1);
    assert!(!text(&stranger.call("combo").await).1);
    backend.forget();
    backend.set(Mood::Hangs);
    let waiting = futures::future::join_all((0..SHARE + 10).map(|_| client.call("combo")));
    let rejected = async {
        // Those that were rejected have ended.
        crate::until(|| backend.received("tools/call").len() == SHARE).await;
        let more = client.call("combo").await;
        assert!(text(&more).0.contains("too many of your workflows are running"), "{more}");
        backend.set(Mood::Good);
        assert!(!text(&stranger.call("combo").await).1);
    };
    tokio::select! {
        _ = waiting => panic!("all have ended"),
        () = rejected => {}
    }
}

#[tokio::test]
async fn a_cancellation_reaches_the_step_that_runs() {
    for speaks in [Speaks::Legacy, Speaks::Modern] {
        let backend = Scripted::start(speaks).await;
        let server = server(&backend, &[COMBO]).await;
        let client = server.client().await;
        let script = async {
            let call = backend.next("tools/call").await;
            let cancel =
                json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
            assert_eq!(client.send(Method::POST, Some(&cancel)).await.status(), 202);
            if speaks == Speaks::Legacy {
                let cancelled = backend.next("notifications/cancelled").await;
                assert_eq!(cancelled.message["params"]["requestId"], call.message["id"]);
            }
            call.is_abandoned().await;
        };
        let (response, ()) = tokio::join!(client.call("combo"), script);
        assert!(text(&response).1, "{response}");
    }
}

#[tokio::test]
async fn a_client_that_wants_progress_gets_it_for_each_step() {
    let backend = Scripted::start(Speaks::Legacy).await;
    let server = server(&backend, &[COMBO]).await;
    let client = server.client().await;
    let params = json!({"name": "combo", "arguments": {}, "_meta": {"progressToken": "p"}});
    let (mut events, ()) = tokio::join!(client.open("tools/call", params), async {
        let call = backend.next("tools/call").await;
        assert_eq!(call.message["params"].get("_meta"), None, "the token is for the workflow");
        call.result(done());
    });
    let progress = events.next().await.unwrap();
    let expected = json!({"progressToken": "p", "progress": 1, "total": 1, "message": "s completed"});
    assert_eq!(progress["params"], expected);
    assert_eq!(events.next().await.unwrap()["result"]["structuredContent"], json!({"n": 1}));
}

#[tokio::test]
async fn an_invalid_workflow_is_refused_with_its_field() {
    let config = |tool: &str| {
        format!(
            "name: t\ngroupRef: t\nincomingAuth: {{type: anonymous}}\noutgoingAuth: {{source: inline}}\n\
             aggregation: {{conflictResolution: prefix, conflictResolutionConfig: {{prefixFormat: \"{{workload}}_\"}}}}\n\
             backends: [{{name: a, url: \"http://127.0.0.1:1/mcp\", transport: streamable-http}}]\n\
             compositeTools: [{tool}]\n"
        )
    };
    let errors = |tool: &str| {
        let errors = skep_vmcp::Settings::parse(&config(tool)).err().unwrap_or_default();
        errors.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(errors(COMBO), [] as [&str; 0]);
    // ToolHive serves it, as clients may send what no schema names.
    let doubtful = skep_vmcp::Settings::parse(&config(&COMBO.replace("\"eu\"", "\"{{.params.x}}\"")));
    let warnings: Vec<_> = doubtful.unwrap().warnings().iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        ["compositeTools[0].steps[0].arguments[region]: {{.params.x}}: the tool has no parameters: \
          name them, so that clients send them"]
    );
    assert_eq!(
        errors(&COMBO.replace("\"eu\"", "\"{{.parms.x}}\"")),
        [
            "compositeTools[0].steps[0].arguments[region]: {{.parms.x}}: there is no parms: use params, steps, \
          vars, workflow or forEach"
        ]
    );
    assert_eq!(
        errors(&COMBO.replace("description: d", "description: d, runAs: workflow")),
        [
            "compositeTools[0].runAs: workflow is not allowed: set allowRunAsWorkflow in the configuration of the virtual server"
        ]
    );
    let twice = format!("{COMBO}, {COMBO}");
    assert_eq!(errors(&twice), ["compositeTools[1].name: duplicate of \"combo\": rename one of them"]);
}

#[tokio::test]
async fn a_workflow_that_takes_too_long_ends_with_its_steps() {
    let backend = Scripted::start(Speaks::Legacy).await;
    let limited = COMBO.replace("description: d", "description: d, timeout: 300ms");
    let server = server(&backend, &[&limited]).await;
    let client = server.client().await;
    let script = async {
        let call = backend.next("tools/call").await;
        tokio::time::timeout(Duration::from_secs(20), call.is_abandoned()).await.unwrap();
    };
    let (response, ()) = tokio::join!(client.call("combo"), script);
    assert_eq!(text(&response), ("Workflow execution failed: the workflow took longer than 0.3 s", true));
}

#[tokio::test]
async fn a_backend_that_fails_at_any_step_is_tried_as_often_as_the_retries_allow_and_no_step_follows() {
    const NAMES: [&str; 4] = ["a", "b", "c", "d"];
    let steps = NAMES.iter().enumerate().map(|(index, name)| {
        let depends =
            index.checked_sub(1).map(|before| format!(", dependsOn: [s{before}]")).unwrap_or_default();
        let on_error = "onError: {action: retry, retryCount: 2, retryDelay: 10ms}";
        format!("{{id: s{index}, tool: {name}_echo, {on_error}{depends}}}")
    });
    let steps = steps.collect::<Vec<_>>().join(", ");
    let tools = format!("compositeTools: [{{name: combo, description: d, steps: [{steps}]}}]\n");
    for killed in 0..NAMES.len() {
        for mood in [Mood::Status(500), Mood::Garbage] {
            let backends: Vec<Backend> = futures::future::join_all(NAMES.map(|_| Backend::start())).await;
            let named: Vec<(&str, &Backend)> = NAMES.into_iter().zip(&backends).collect();
            let server = Server::before(&named, &tools).await;
            let client = server.client().await;
            assert!(!text(&client.call("combo").await).1);
            backends.iter().for_each(Backend::forget);
            backends[killed].set(mood);
            let response = client.call("combo").await;
            let (message, is_error) = text(&response);
            assert!(is_error && message.contains(&format!("step \"s{killed}\" failed")), "{response}");
            let calls: Vec<usize> =
                backends.iter().map(|backend| backend.received("tools/call").len()).collect();
            let expected = (0..NAMES.len()).map(|index| match index.cmp(&killed) {
                std::cmp::Ordering::Less => 1,
                std::cmp::Ordering::Equal => 3,
                std::cmp::Ordering::Greater => 0,
            });
            assert_eq!(calls, expected.collect::<Vec<_>>(), "{killed} {mood:?}");
            server.stop().await;
        }
    }
}

/// Templates that can be rendered wherever they are.
const PARTS: [&str; 16] = [
    "{{.params.p}}",
    "{{- .params.p -}}",
    "{{.params.p | json}}",
    "{{json .params}}",
    "{{quote .params.p}}",
    "{{if .params.p}}a{{else}}b{{end}}",
    "{{if eq .params.p \"x\"}}y{{end}}",
    "{{with .params.p}}{{.}}{{end}}",
    "{{range .params.list}}{{.}},{{end}}",
    "{{range $i, $x := .params.list}}{{$i}}{{$x}}{{end}}",
    "{{len .params.list}}",
    "{{index .params.list 0}}",
    "{{printf \"%v-%s\" .params.list .params.p}}",
    "{{.steps.first.status}}",
    "{{.steps.first.output.x}}",
    "{{/* c */}}",
];

/// A template, and whether it has only such parts and text.
fn templates() -> impl Strategy<Value = (String, bool)> {
    let part = prop_oneof![
        8 => prop::sample::select(&PARTS[..]).prop_map(|part| (part.to_owned(), true)),
        4 => "[a-z0-9 .,é]{0,8}".prop_map(|text| (text, true)),
        1 => r"(\{\{|\}\}|[a-z .$|()0-9]|\.params\.q|\.steps\.last|if |end|range |with |else|json ){1,4}"
            .prop_map(|text| (text, false)),
    ];
    let joined = |parts: Vec<(String, bool)>| {
        let is_plain = parts.iter().all(|(_, is_plain)| *is_plain);
        (parts.into_iter().map(|(part, _)| part).collect(), is_plain)
    };
    prop::collection::vec(part, 1..6).prop_map(joined)
}

/// Where a workflow has templates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Argument,
    Nested,
    Condition,
    Message,
    Collection,
    Item,
    Output,
}

const PLACES: [Place; 7] = [
    Place::Argument,
    Place::Nested,
    Place::Condition,
    Place::Message,
    Place::Collection,
    Place::Item,
    Place::Output,
];

/// A workflow with a template in this place.
fn composite(place: Place, template: &str) -> Value {
    let last = match place {
        Place::Argument => json!({"tool": "a_ask", "arguments": {"x": template}}),
        Place::Nested => json!({"tool": "a_ask", "arguments": {"x": [{"y": template}]}}),
        Place::Condition => json!({"tool": "a_ask", "condition": template}),
        Place::Message => json!({"type": "elicitation", "message": template, "schema": {"type": "object"}}),
        Place::Collection | Place::Item => {
            let (list, item) = match place {
                Place::Collection => (template, "{{.forEach.item}}"),
                _ => ("[1, 2]", template),
            };
            let step = json!({"id": "inner", "tool": "a_ask", "arguments": {"x": item}});
            json!({"type": "forEach", "collection": list, "step": step})
        }
        Place::Output => json!({"tool": "a_ask"}),
    };
    let mut tool = json!({
        "name": "combo", "description": "d",
        "parameters": {"type": "object", "properties": {"p": {"type": "string"}, "list": {"type": "array"}}},
        "steps": [{"id": "first", "tool": "a_ask"}, last],
    });
    tool["steps"][1]["id"] = "last".into();
    tool["steps"][1]["dependsOn"] = json!(["first"]);
    if place == Place::Output {
        tool["output"] =
            json!({"properties": {"x": {"type": "string", "description": "d", "value": template}}});
    }
    tool
}

/// What runs the steps of such a workflow: every tool has the same result, and every user the same answer.
struct Answers;

impl skep_workflow::Host for Answers {
    async fn call(&self, _: &str, _: Map<String, Value>) -> Result<Value, CallError> {
        Ok(json!({"content": [], "structuredContent": {"x": "y"}}))
    }

    async fn elicit(&self, _: Question, _: Option<Checkpoint>) -> Result<Answer, CallError> {
        Ok(Answer::Accept(json!({})))
    }

    fn input_schema(&self, _: &str) -> Result<Option<Arc<Value>>, CallError> {
        Ok(None)
    }

    fn reserve(&self, _: usize) -> Result<(), CallError> {
        Ok(())
    }

    fn record(&self, _: Event<'_>) {}
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn a_template_that_the_operator_accepts_is_one_that_the_server_runs(
        place in prop::sample::select(&PLACES[..]),
        (template, is_plain) in templates(),
    ) {
        let tool = composite(place, &template);
        // The operator's check, and the server's, of the file that the operator writes.
        let typed: skep_api::vmcp::CompositeTool = serde_json::from_value(tool.clone()).unwrap();
        let mistakes = skep_workflow::check_as_part(&typed);
        let config = json!({
            "name": "t", "groupRef": "t", "incomingAuth": {"type": "anonymous"}, "outgoingAuth": {"source": "inline"},
            "aggregation": {"conflictResolution": "prefix", "conflictResolutionConfig": {"prefixFormat": "{workload}_"}},
            "backends": [{"name": "a", "url": "http://127.0.0.1:1/mcp", "transport": "streamable-http"}],
            "compositeTools": [tool],
        });
        let config: skep_api::vmcp::Config = serde_json::from_value(config).unwrap();
        let settings = skep_vmcp::Settings::parse(&config.render().unwrap());
        prop_assert_eq!(settings.is_ok(), mistakes.is_empty(), "{:?}", settings.err());
        // An empty text is none, and some fields need one.
        prop_assert!(!is_plain || template.is_empty() || mistakes.is_empty(), "{:?}", mistakes);
        let workflow = skep_workflow::Workflow::new(&typed);
        prop_assert_eq!(workflow.is_ok(), mistakes.is_empty());
        let Ok(workflow) = workflow else { return Ok(()) };
        let arguments = json!({"p": "x", "list": ["a", 1]}).as_object().cloned().unwrap();
        let run = async { tokio::time::timeout(Duration::from_secs(60), skep_workflow::run(&workflow, arguments, &Answers)).await };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let outcome = runtime.block_on(run).expect("it does not end");
        // A condition must be a boolean, and a collection a list: only what is rendered shows that.
        let needs_more = matches!(place, Place::Condition | Place::Collection);
        prop_assert!(!is_plain || needs_more || outcome.is_ok(), "{:?}", outcome);
    }
}
