//! Policy decision points. Each test scripts a fake.

use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::{Value, json};
use skep_config::RunConfig;
use skep_proxy::{Caller, Outcome, Proxy, explain_request, limits, listed_tools};
use tokio::net::TcpListener;

use crate::{
    fake_https::{Certificates, FakeHttps},
    fixture::{Fixture, ReceivedRequest, Server, call, json_response, result, status},
};

fn middleware(url: &str, changes: Value) -> Value {
    let mut pdp = json!({
        "http": {"url": url}, "claim_mapping": "standard",
        "context": {"include_args": true, "include_operation": true},
    });
    pdp.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    let document = json!({"version": "1.0", "type": "httpv1", "pdp": pdp});
    json!([{"type": "auth"}, {"type": "authorization", "parameters": {"config_data": document}}])
}

fn url(server: &Server) -> String {
    format!("http://{}/v1/", server.address)
}

/// A server with these tools: a decision point may decide by their hints, so they must be known.
async fn with_tools(names: &'static [&str]) -> Server {
    Server::start(move |request| match request.json()["method"].as_str() {
        Some("tools/list") => {
            let tools: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
            result(request, json!({"tools": tools}))
        }
        _ => result(request, json!({})),
    })
    .await
}

/// How many requests of callers a server received, without those of the proxy for its tools.
fn received(server: &Server) -> usize {
    server.requests().iter().filter(|request| matches!(request.json()["id"].as_u64(), Some(7))).count()
}

/// A request to hear of changes of these resources.
fn listen(uris: &[&str]) -> String {
    call("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": uris}}))
}

/// Allows what ends with `read`.
fn reader(request: &ReceivedRequest) -> Response<Bytes> {
    let resource = request.json()["resource"].as_str().unwrap().to_owned();
    json_response(json!({"allow": resource.ends_with("read")}))
}

#[tokio::test]
async fn an_explanation_does_not_query_the_decision_point() {
    let point = Server::start(reader).await;
    let middlewares = middleware(&url(&point), json!({}));
    let config = json!({"name": "files", "transport": "streamable-http", "middleware_configs": middlewares});
    let config = RunConfig::parse(&config.to_string()).unwrap();
    let (caller, params) = (Caller::Anonymous, json!({"name": "read"}));
    let steps = explain_request(&config, &caller, "tools/call", &params).await.unwrap();
    assert_eq!(steps.last().unwrap().outcome, Outcome::Undecided, "{steps:?}");
    let listed = listed_tools(&config, &caller, &["read".into()]).await.unwrap_err();
    assert!(listed.to_string().contains("is not queried"), "{listed}");
    assert!(point.requests().is_empty());
}

#[tokio::test]
async fn a_request_names_principal_action_and_resource_and_the_decision_is_enforced() {
    let point = Server::start(reader).await;
    let server = with_tools(&["read", "write"]).await;
    let fixture = Fixture::new(&server, middleware(&url(&point), json!({}))).await;
    let arguments = json!({"path": ["/a"], "n": 1});
    for (body, expected) in [
        (call("tools/call", json!({"name": "read", "arguments": arguments})), 200),
        (call("tools/call", json!({"name": "write"})), 403),
        (call("prompts/get", json!({"name": "read"})), 200),
        (call("resources/subscribe", json!({"uri": "file:///write"})), 403),
        (listen(&["file:///read"]), 200),
        (listen(&["file:///read", "file:///write"]), 403),
        (listen(&[]), 200),
        (r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"write"}}"#.into(), 403),
    ] {
        assert_eq!(fixture.post(&[], &body).await.status, expected, "{body}");
    }
    let requests = point.requests();
    assert_eq!((requests.len(), requests[0].path.as_str()), (8, "/v1/decision"));
    let expected = json!({
        "principal": {"sub": "local"}, "operation": "mcp:tool:call", "resource": "mrn:mcp:files:tool:read",
        "context": {"mcp": {"feature": "tool", "operation": "call", "resource_id": "read", "args": arguments}},
    });
    assert_eq!(requests[0].json(), expected);
    assert_eq!(requests[3].json()["operation"], "mcp:resource:read");
    assert_eq!(requests[4].json()["resource"], "mrn:mcp:files:resource:file:///read");
    assert_eq!(received(&server), 4);
}

#[tokio::test]
async fn requests_without_a_resource_need_no_decision_and_unknown_methods_are_denied() {
    let point = Server::start(|_| json_response(json!({"allow": true}))).await;
    let server = Server::start(|request| result(request, json!({}))).await;
    let fixture = Fixture::new(&server, middleware(&url(&point), json!({}))).await;
    for (body, expected) in [
        (call("ping", json!({})), 200),
        (call("initialize", json!({})), 200),
        (call("something/new", json!({})), 403),
        (call("tools/call", json!({})), 403),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","arguments":{"p":1,"p":2}}}"#.into(),
            400,
        ),
    ] {
        assert_eq!(fixture.post(&[], &body).await.status, expected, "{body}");
    }
    assert!(point.requests().is_empty());
}

#[tokio::test]
async fn arguments_that_are_too_large_for_the_decision_point_are_rejected() {
    let point = Server::start(|_| json_response(json!({"allow": true}))).await;
    let server = with_tools(&["a"]).await;
    let fixture = Fixture::new(&server, middleware(&url(&point), json!({}))).await;
    let zeros = |count: usize| format!("[{}0]", "0,".repeat(count));
    for (count, expected) in [(1_000, 200), (1 << 19, 413)] {
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"a","arguments":{{"x":{}}}}}}}"#,
            zeros(count)
        );
        assert_eq!(fixture.post(&[], &call).await.status, expected, "{count}");
    }
    assert_eq!(point.requests().len(), 1);
}

#[tokio::test]
async fn everything_but_an_explicit_allow_denies() {
    let server = with_tools(&["read"]).await;
    let answers: [fn() -> Response<Bytes>; 8] = [
        || json_response(json!({"allow": false})),
        || json_response(json!({"allow": "true"})),
        || json_response(json!({})),
        || json_response(json!("x".repeat(1 << 20))),
        || status(500),
        || status(403),
        || Response::builder().status(201).body(Bytes::from(r#"{"allow":true}"#)).unwrap(),
        || Response::builder().status(302).header("location", "/v2").body(Bytes::new()).unwrap(),
    ];
    let stopped = Server::stopped();
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = format!("http://{}", silent.local_addr().unwrap());
    let mut points = vec![(url(&stopped), None), (silent, None)];
    for answer in answers {
        let point = Server::start(move |_| answer()).await;
        points.push((url(&point), Some(point)));
    }
    for (number, (url, _)) in points.iter().enumerate() {
        let fixture =
            Fixture::new(&server, middleware(url, json!({"http": {"url": url, "timeout": 1}}))).await;
        let before = received(&server);
        let answer = fixture.post(&[], &call("tools/call", json!({"name": "read"}))).await;
        let error = answer.json()["error"].clone();
        assert_eq!(
            (answer.status, error),
            (StatusCode::FORBIDDEN, json!({"code": 403, "message": "Unauthorized"})),
            "{number}"
        );
        assert_eq!(received(&server), before, "{number}");
        let answer = fixture.post(&[], &call("tools/list", json!({}))).await;
        assert_eq!(answer.json()["result"], json!({"tools": []}), "{number}");
    }
}

#[tokio::test]
async fn lists_contain_only_allowed_items_also_if_they_were_not_requested() {
    let lists = json!({
        "tools": [
            {"name": "a.read", "annotations": {"readOnlyHint": true}}, {"name": "write"}, {"name": "read"},
            {"name": "write"},
        ],
        "prompts": [{"name": "p"}, {"name": "p.read"}],
        "resourceTemplates": [{"uriTemplate": "file:///{path}"}], "nextCursor": "c",
    });
    let mut expected = lists.clone();
    expected["tools"] = json!([{"name": "a.read", "annotations": {"readOnlyHint": true}}, {"name": "read"}]);
    expected["prompts"] = json!([{"name": "p.read"}]);
    let answer = lists.clone();
    let server = Server::start(move |request| result(request, answer.clone())).await;
    let point = Server::start(reader).await;
    let fixture = Fixture::new(&server, middleware(&url(&point), json!({"context": {}}))).await;
    for method in ["tools/list", "ping"] {
        let answer = fixture.post(&[], &call(method, json!({}))).await.json();
        assert_eq!(answer["result"], expected, "{method}");
    }
    // The annotations of a tool are sent when the tool is called.
    fixture.post(&[], &call("tools/call", json!({"name": "a.read"}))).await;
    let called = point.requests()[6 + 6].json();
    assert_eq!(called["context"], json!({"mcp": {"annotations": {"readOnlyHint": true}}}));
    assert_eq!(point.requests().len(), 6 + 6 + 1 + 6, "each item of each response, and the call");
}

#[tokio::test]
async fn lists_in_streams_are_filtered_event_by_event() {
    let list = |tools: &[&str]| {
        let tools: Vec<_> = tools.iter().map(|name| json!({"name": name})).collect();
        json!({"jsonrpc": "2.0", "id": 7, "result": {"tools": tools}})
    };
    let (first, second) = (list(&["read", "write"]), list(&["write", "b.read", "read"]));
    let events = format!("data: {first}\n\ndata: {second}\n\n");
    let server = Server::start(move |_| {
        let response = Response::builder().header("content-type", "text/event-stream");
        response.body(events.clone().into()).unwrap()
    })
    .await;
    let point = Server::start(reader).await;
    let fixture = Fixture::new(&server, middleware(&url(&point), json!({}))).await;
    let answer = fixture.post(&[("accept", "text/event-stream")], &call("tools/list", json!({}))).await;
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    let seen: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok())
        .map(|message| message["result"]["tools"].clone())
        .collect();
    assert_eq!(seen, [json!([{"name": "read"}]), json!([{"name": "b.read"}, {"name": "read"}])]);
}

#[tokio::test]
async fn the_number_of_decisions_for_a_list_is_bounded() {
    let tools: Vec<_> =
        (0..2 * limits::DECISIONS).map(|number| json!({"name": format!("{number}.read")})).collect();
    let server = Server::start(move |request| result(request, json!({"tools": tools}))).await;
    let point = Server::start(reader).await;
    let fixture = Fixture::new(&server, middleware(&url(&point), json!({}))).await;
    let answer = fixture.post(&[], &call("tools/list", json!({}))).await.json();
    // On a busy machine it may be fewer: there is a limit of time, too.
    let (shown, decided) = (answer["result"]["tools"].as_array().unwrap().len(), point.requests().len());
    assert!(0 < shown && shown <= decided && decided <= limits::DECISIONS, "{shown} of {decided}");
}

#[tokio::test]
async fn a_malformed_response_is_not_forwarded() {
    let server = Server::start(|request| {
        let mut odd = result(request, json!({}));
        *odd.body_mut() =
            r#"{"jsonrpc":"2.0","id":7,"result":{"tools":[{"name":"read"}],"tools":[]}}"#.into();
        odd
    })
    .await;
    let point = Server::start(reader).await;
    let fixture = Fixture::new(&server, middleware(&url(&point), json!({}))).await;
    let answer = fixture.post(&[], &call("tools/list", json!({}))).await;
    assert_eq!(answer.status, StatusCode::INTERNAL_SERVER_ERROR);
}

#[tokio::test]
async fn its_certificate_is_verified_unless_configured_otherwise() {
    let certificates = Certificates::new();
    let point = FakeHttps::start(&certificates, false, |_| json_response(json!({"allow": true}))).await;
    let server = with_tools(&["read"]).await;
    for (unchecked, expected) in [(false, 403), (true, 200)] {
        let http = json!({"http": {"url": point.url(""), "insecure_skip_verify": unchecked}});
        let fixture = Fixture::new(&server, middleware("", http)).await;
        let answer = fixture.post(&[], &call("tools/call", json!({"name": "read"}))).await;
        assert_eq!(answer.status, expected);
    }
}

#[test]
fn an_invalid_configuration_is_an_error_that_names_the_field() {
    for (changes, message) in [
        (json!({"http": {}}), "authorization: pdp.http.url: "),
        (
            json!({"http": {"url": "ftp://a"}}),
            "authorization: pdp.http.url: \"ftp://a/decision\" is not a URL",
        ),
        (json!({"claim_mapping": "other"}), "authorization: pdp.claim_mapping: "),
    ] {
        let config = json!({
            "name": "files", "transport": "streamable-http", "target_port": 1,
            "middleware_configs": middleware("https://pdp.example", changes),
        });
        let error = Proxy::new(&RunConfig::parse(&config.to_string()).unwrap()).err().unwrap().to_string();
        assert!(error.starts_with(message), "{error}");
    }
}
