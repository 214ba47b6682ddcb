//! A service that decides what a caller may do. What stands in for it is scripted by each test.

use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::{Value, json};
use skep_config::RunConfig;
use skep_proxy::{Proxy, limits};
use tokio::net::TcpListener;

use crate::{
    fake_https::{Certificates, FakeHttps},
    fixture::{Fixture, Got, Server, answered, call, result, status},
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

/// Allows what ends with `read`.
fn reader(got: &Got) -> Response<Bytes> {
    let resource = got.json()["resource"].as_str().unwrap().to_owned();
    answered(json!({"allow": resource.ends_with("read")}))
}

#[tokio::test]
async fn it_is_asked_who_wants_to_do_what_and_its_word_counts() {
    let point = Server::start(reader).await;
    let server = Server::start(|got| result(got, json!({}))).await;
    let fixture = Fixture::new(&server, middleware(&url(&point), json!({}))).await;
    let arguments = json!({"path": ["/a"], "n": 1});
    for (body, expected) in [
        (call("tools/call", json!({"name": "read", "arguments": arguments})), 200),
        (call("tools/call", json!({"name": "write"})), 403),
        (call("prompts/get", json!({"name": "read"})), 200),
        (call("resources/subscribe", json!({"uri": "file:///write"})), 403),
        (r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"write"}}"#.into(), 403),
    ] {
        assert_eq!(fixture.post(&[], &body).await.status, expected, "{body}");
    }
    let got = point.got();
    assert_eq!((got.len(), got[0].path.as_str()), (5, "/v1/decision"));
    let expected = json!({
        "principal": {"sub": "local"}, "operation": "mcp:tool:call", "resource": "mrn:mcp:files:tool:read",
        "context": {"mcp": {"feature": "tool", "operation": "call", "resource_id": "read", "args": arguments}},
    });
    assert_eq!(got[0].json(), expected);
    assert_eq!(got[3].json()["operation"], "mcp:resource:read");
    assert_eq!(server.got().len(), 2);
}

#[tokio::test]
async fn what_needs_no_decision_is_not_asked_about_and_what_cannot_have_one_is_denied() {
    let point = Server::start(|_| answered(json!({"allow": true}))).await;
    let server = Server::start(|got| result(got, json!({}))).await;
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
    assert!(point.got().is_empty());
}

#[tokio::test]
async fn whatever_is_not_a_yes_is_a_no() {
    let server = Server::start(|got| result(got, json!({"tools": [{"name": "read"}]}))).await;
    let answers: [fn() -> Response<Bytes>; 8] = [
        || answered(json!({"allow": false})),
        || answered(json!({"allow": "true"})),
        || answered(json!({})),
        || answered(json!("x".repeat(1 << 20))),
        || status(500),
        || status(403),
        || Response::builder().status(201).body(Bytes::from(r#"{"allow":true}"#)).unwrap(),
        || Response::builder().status(302).header("location", "/v2").body(Bytes::new()).unwrap(),
    ];
    let gone = Server::gone();
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = format!("http://{}", silent.local_addr().unwrap());
    let mut points = vec![(url(&gone), None), (silent, None)];
    for answer in answers {
        let point = Server::start(move |_| answer()).await;
        points.push((url(&point), Some(point)));
    }
    for (number, (url, _)) in points.iter().enumerate() {
        let fixture =
            Fixture::new(&server, middleware(url, json!({"http": {"url": url, "timeout": 1}}))).await;
        let before = server.got().len();
        let answer = fixture.post(&[], &call("tools/call", json!({"name": "read"}))).await;
        let error = answer.json()["error"].clone();
        assert_eq!(
            (answer.status, error),
            (StatusCode::FORBIDDEN, json!({"code": 403, "message": "Unauthorized"})),
            "{number}"
        );
        assert_eq!(server.got().len(), before, "{number}");
        let answer = fixture.post(&[], &call("tools/list", json!({}))).await;
        assert_eq!(answer.json()["result"], json!({"tools": []}), "{number}");
    }
}

#[tokio::test]
async fn lists_show_what_may_be_used_also_when_nobody_asked_for_them() {
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
    let server = Server::start(move |got| result(got, answer.clone())).await;
    let point = Server::start(reader).await;
    let fixture = Fixture::new(&server, middleware(&url(&point), json!({"context": {}}))).await;
    for method in ["tools/list", "ping"] {
        let answer = fixture.post(&[], &call(method, json!({}))).await.json();
        assert_eq!(answer["result"], expected, "{method}");
    }
    // What the server said of a tool is told when the tool is called.
    fixture.post(&[], &call("tools/call", json!({"name": "a.read"}))).await;
    let called = point.got()[6 + 6].json();
    assert_eq!(called["context"], json!({"mcp": {"annotations": {"readOnlyHint": true}}}));
    assert_eq!(point.got().len(), 6 + 6 + 1 + 6, "each item of each answer, and the call");
}

#[tokio::test]
async fn lists_in_streams_are_filtered_as_they_come() {
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
async fn of_a_list_without_end_only_so_many_items_are_asked_about() {
    let tools: Vec<_> =
        (0..2 * limits::DECISIONS).map(|number| json!({"name": format!("{number}.read")})).collect();
    let server = Server::start(move |got| result(got, json!({"tools": tools}))).await;
    let point = Server::start(reader).await;
    let fixture = Fixture::new(&server, middleware(&url(&point), json!({}))).await;
    let answer = fixture.post(&[], &call("tools/list", json!({}))).await.json();
    // On a busy machine it may be fewer: there is a limit of time, too.
    let (shown, asked) = (answer["result"]["tools"].as_array().unwrap().len(), point.got().len());
    assert!(0 < shown && shown <= asked && asked <= limits::DECISIONS, "{shown} of {asked}");
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_not_passed_on() {
    let server = Server::start(|got| {
        let mut odd = result(got, json!({}));
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
async fn its_certificate_is_checked_unless_the_document_says_otherwise() {
    let certificates = Certificates::new();
    let point = FakeHttps::start(&certificates, false, |_| answered(json!({"allow": true}))).await;
    let server = Server::start(|got| result(got, json!({}))).await;
    for (unchecked, expected) in [(false, 403), (true, 200)] {
        let http = json!({"http": {"url": point.url(""), "insecure_skip_verify": unchecked}});
        let fixture = Fixture::new(&server, middleware("", http)).await;
        let answer = fixture.post(&[], &call("tools/call", json!({"name": "read"}))).await;
        assert_eq!(answer.status, expected);
    }
}

#[test]
fn what_cannot_be_asked_ends_the_proxy() {
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
