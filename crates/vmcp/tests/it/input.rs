//! Input that a backend needs of the client while it processes a request, between clients and backends of different eras.

use http::Method;
use serde_json::{Value, json};

use crate::{
    Server,
    client::{Client, Events, text},
    scripted::{Scripted, Speaks, update},
};

async fn server(backend: &Scripted) -> Server {
    Server::with_urls(&[("a", backend.url())], "", None).await
}

fn form() -> Value {
    json!({"message": "Which colour?", "requestedSchema": {"type": "object", "properties": {}}})
}

#[tokio::test]
async fn a_client_of_2025_provides_input_that_a_backend_of_2026_needs() {
    let backend = Scripted::start(Speaks::Modern).await;
    let server = server(&backend).await;
    let client = Client::start(server.address, json!({"elicitation": {}, "roots": {}})).await;
    let script = async {
        let first = backend.next("tools/call").await;
        assert_eq!(first.message["params"]["name"], "ask");
        let capabilities = &first.message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        assert_eq!(*capabilities, json!({"elicitation": {}, "roots": {}}));
        first.result(json!({
            "resultType": "input_required", "requestState": "s1",
            "inputRequests": {
                "colour": {"method": "elicitation/create", "params": form()},
                "roots": {"method": "roots/list"},
            },
        }));
        let second = backend.next("tools/call").await;
        let params = &second.message["params"];
        assert_eq!(params["requestState"], "s1");
        assert_eq!(params["arguments"], json!({"n": 1}), "what was sent before");
        let responses = &params["inputResponses"];
        assert_eq!(responses["colour"]["content"]["colour"], "red");
        assert_eq!(responses["roots"]["roots"], json!([]));
        second.result(json!({"resultType": "complete", "content": [{"type": "text", "text": "red it is"}]}));
    };
    let called = async {
        let mut events = client.open("tools/call", json!({"name": "a_ask", "arguments": {"n": 1}})).await;
        for _ in 0..2 {
            let request = events.next().await.unwrap();
            let result = match request["method"].as_str().unwrap() {
                "elicitation/create" => json!({"action": "accept", "content": {"colour": "red"}}),
                "roots/list" => json!({"roots": []}),
                other => panic!("{other}"),
            };
            let response = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
            assert_eq!(client.send(Method::POST, Some(&response)).await.status(), 202);
        }
        events.next().await.unwrap()
    };
    let (response, ()) = tokio::join!(called, script);
    assert_eq!(text(&response), ("red it is", false));
}

#[tokio::test]
async fn a_client_that_cannot_provide_input_gets_the_reason() {
    let backend = Scripted::start(Speaks::Modern).await;
    let server = server(&backend).await;
    let client = server.client().await;
    let script = async {
        backend.next("tools/call").await.result(json!({
            "resultType": "input_required", "inputRequests": {"a": {"method": "sampling/createMessage"}},
        }));
    };
    let (response, ()) = tokio::join!(client.call("a_ask"), script);
    let (text, is_error) = text(&response);
    assert!(is_error && text.contains("backend a") && text.contains("sampling/createMessage"), "{text}");
}

#[tokio::test]
async fn a_client_of_2026_provides_input_that_a_backend_of_2025_needs() {
    let backend = Scripted::start(Speaks::Legacy).await;
    let server = server(&backend).await;
    let client = Client::modern(server.address, json!({"elicitation": {}}));
    let params = json!({"name": "a_ask", "arguments": {}});
    let call = async {
        let call = backend.next("tools/call").await;
        call.send(json!({"jsonrpc": "2.0", "id": "e1", "method": "elicitation/create", "params": form()}));
        call
    };
    let (needed, call) = tokio::join!(client.request("tools/call", params.clone()), call);
    let result = &needed["result"];
    assert_eq!(result["resultType"], "input_required", "{needed}");
    assert_eq!(result["inputRequests"]["1"], json!({"method": "elicitation/create", "params": form()}));
    let state = result["requestState"].as_str().unwrap().to_owned();

    // Without the input, it is needed again, under another state.
    let mut again = params.clone();
    again["requestState"] = state.into();
    let needed = client.request("tools/call", again).await;
    assert_eq!(needed["result"]["resultType"], "input_required", "{needed}");
    let state = needed["result"]["requestState"].as_str().unwrap();

    let mut retried = params.clone();
    retried["requestState"] = state.into();
    retried["inputResponses"] = json!({"1": {"action": "decline"}});
    let script = async {
        let response = backend.next("").await.message;
        assert_eq!(response, json!({"jsonrpc": "2.0", "id": "e1", "result": {"action": "decline"}}));
        call.result(json!({"content": [{"type": "text", "text": "no colour"}]}));
    };
    let (response, ()) = tokio::join!(client.request("tools/call", retried.clone()), script);
    assert_eq!(text(&response), ("no colour", false), "{response}");

    // A state is good for one response.
    let response = client.request("tools/call", retried).await;
    assert_eq!(response["error"]["code"], -32602, "{response}");
}

#[tokio::test]
async fn a_retry_makes_the_same_call_and_its_token_counts() {
    let backend = Scripted::start(Speaks::Legacy).await;
    let combo = "compositeTools: [{name: combo, description: d, steps: [{id: s, tool: a_ask}]}]\n";
    let server = Server::with_urls(&[("a", backend.url())], combo, None).await;
    let client = Client::modern(server.address, json!({"elicitation": {}}));
    for (name, progress) in [("a_ask", "half"), ("combo", "s completed")] {
        let params = json!({"name": name, "arguments": {"n": 1}, "_meta": {"progressToken": "first"}});
        let call = async {
            let call = backend.next("tools/call").await;
            call.send(
                json!({"jsonrpc": "2.0", "id": "e1", "method": "elicitation/create", "params": form()}),
            );
            call
        };
        let (needed, call) = tokio::join!(client.request("tools/call", params.clone()), call);
        let mut retried = params.clone();
        retried["requestState"] = needed["result"]["requestState"].clone();
        retried["inputResponses"] = json!({"1": {"action": "decline"}});
        retried["_meta"]["progressToken"] = "second".into();
        for (field, other) in [("name", json!("a_echo")), ("arguments", json!({"n": 2}))] {
            let mut other_call = retried.clone();
            other_call[field] = other;
            let response = client.request("tools/call", other_call).await;
            let message = response["error"]["message"].as_str().unwrap_or_default();
            assert!(message.contains("requestState is that of another call"), "{response}");
        }
        let script = async {
            backend.next("").await;
            if let Some(token) = call.message["params"]["_meta"].get("progressToken") {
                let params = json!({"progressToken": token, "progress": 1, "message": "half"});
                call.send(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}));
            }
            call.result(json!({"content": []}));
        };
        let (mut events, ()) = tokio::join!(client.open("tools/call", retried), script);
        let reported = &events.next().await.unwrap()["params"];
        assert_eq!((&reported["progressToken"], &reported["message"]), (&json!("second"), &json!(progress)));
        assert!(events.next().await.unwrap()["result"].is_object());
    }
}

/// The attack: a stranger starts very many calls that need input, and provides none.
#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_who_provides_no_input_does_not_use_up_the_room_of_others() {
    let backend = Scripted::start(Speaks::Legacy).await;
    let server = server(&backend).await;
    let script = async {
        let mut calls = Vec::new();
        loop {
            let call = backend.next("tools/call").await;
            call.send(
                json!({"jsonrpc": "2.0", "id": "e1", "method": "elicitation/create", "params": form()}),
            );
            calls.push(call);
        }
    };
    let attack = async {
        let call = async |from: [u8; 4]| {
            let client = Client::modern(server.address, json!({"elicitation": {}})).from(from);
            client.request("tools/call", json!({"name": "a_ask", "arguments": {}})).await
        };
        for _ in 0..1_100 {
            let needed = call([127, 0, 0, 2]).await;
            assert_eq!(needed["result"]["resultType"], "input_required", "{needed}");
        }
        let needed = call([127, 0, 0, 3]).await;
        assert_eq!(needed["result"]["resultType"], "input_required", "{needed}");
    };
    tokio::select! {
        () = attack => {}
        () = script => {}
    }
}

#[tokio::test]
async fn a_client_of_2026_gets_what_a_backend_of_2026_needs_as_it_is() {
    let backend = Scripted::start(Speaks::Modern).await;
    let server = server(&backend).await;
    let client = Client::modern(server.address, json!({"elicitation": {}}));
    let required = json!({
        "resultType": "input_required", "requestState": "s1",
        "inputRequests": {"colour": {"method": "elicitation/create", "params": form()}},
    });
    let script = async {
        backend.next("tools/call").await.result(required.clone());
        let second = backend.next("tools/call").await;
        assert_eq!(second.message["params"]["requestState"], "s1");
        second.result(json!({"resultType": "complete", "content": []}));
    };
    let call = async {
        let needed = client.request("tools/call", json!({"name": "a_ask", "arguments": {}})).await;
        assert_eq!(needed["result"]["inputRequests"], required["inputRequests"], "{needed}");
        let params = json!({
            "name": "a_ask", "arguments": {}, "requestState": "s1",
            "inputResponses": {"colour": {"action": "cancel"}},
        });
        client.request("tools/call", params).await
    };
    let (response, ()) = tokio::join!(call, script);
    assert_eq!(response["result"]["resultType"], "complete", "{response}");
}

#[tokio::test]
async fn a_backend_that_refuses_sessions_is_spoken_to_without() {
    let backend = crate::backend::Backend::refusing_sessions().await;
    let server = Server::before(&[("a", &backend)], "").await;
    let client = server.client().await;
    for _ in 0..2 {
        assert!(!text(&client.call("a_echo").await).1);
    }
    assert_eq!(backend.received("initialize").len(), 1);
}

#[tokio::test]
async fn a_cancelled_request_is_no_longer_read_from_a_backend_of_2026() {
    let backend = Scripted::start(Speaks::Modern).await;
    let server = server(&backend).await;
    let client = server.client().await;
    let (response, ()) = tokio::join!(client.call("a_ask"), async {
        let call = backend.next("tools/call").await;
        let cancel =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
        assert_eq!(client.send(Method::POST, Some(&cancel)).await.status(), 202);
        call.is_abandoned().await;
    });
    assert!(text(&response).0.contains("cancelled"), "{response}");
}

#[tokio::test]
async fn arguments_are_in_headers_where_the_tool_of_a_backend_of_2026_wants_them() {
    let backend = Scripted::start(Speaks::Modern).await;
    let server = server(&backend).await;
    let client = server.client().await;
    let params = json!({"name": "a_ask", "arguments": {"region": "eu"}});
    let (_, ()) = tokio::join!(client.request("tools/call", params), async {
        let call = backend.next("tools/call").await;
        assert_eq!(call.headers["mcp-param-region"], "eu");
        call.result(json!({"content": []}));
    });
}

#[tokio::test]
async fn log_messages_of_a_request_reach_clients_of_2026_from_its_level_on() {
    let backend = Scripted::start(Speaks::Legacy).await;
    let server = server(&backend).await;
    let client = Client::modern(server.address, json!({}));
    let mut params = json!({"name": "a_ask", "arguments": {}});
    params["_meta"] = json!({"io.modelcontextprotocol/logLevel": "warning"});
    let script = async {
        let set = backend.next("logging/setLevel").await;
        assert_eq!(set.message["params"]["level"], "warning");
        set.result(json!({}));
        let call = backend.next("tools/call").await;
        for level in ["info", "error"] {
            let params = json!({"level": level, "data": level});
            call.send(json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params}));
        }
        call.result(json!({"content": []}));
    };
    let call = async {
        let mut events = client.open("tools/call", params).await;
        let first = events.next().await.unwrap();
        (first["params"]["level"].clone(), events.next().await.unwrap())
    };
    let ((level, response), ()) = tokio::join!(call, script);
    assert_eq!(level, "error");
    assert_eq!(response["result"]["resultType"], "complete");
}

/// The first event of a stream that matters.
async fn updated(events: &mut Events) -> Value {
    loop {
        let event = events.next().await.unwrap();
        if event["method"] == "notifications/resources/updated" {
            return event;
        }
    }
}

#[tokio::test]
async fn updates_of_a_resource_reach_subscribers_of_either_era_from_backends_of_either_era() {
    for speaks in [Speaks::Legacy, Speaks::Modern] {
        let backend = Scripted::start(speaks).await;
        let server = server(&backend).await;
        // The backend announces an update as soon as there is a subscription.
        let script = async || {
            if speaks == Speaks::Legacy {
                let subscribed = backend.next("resources/subscribe").await;
                assert_eq!(subscribed.message["params"]["uri"], "kit://1");
                subscribed.result(json!({}));
                return None;
            }
            let stream = backend.next("subscriptions/listen").await;
            assert_eq!(
                stream.message["params"]["notifications"]["resourceSubscriptions"],
                json!(["kit://1"])
            );
            stream.send(update());
            Some(stream)
        };

        let modern = Client::modern(server.address, json!({}));
        let wanted = json!({"notifications": {"resourceSubscriptions": ["kit://1"]}});
        let listening = async {
            let mut events = modern.open("subscriptions/listen", wanted).await;
            let acknowledged = events.next().await.unwrap();
            assert_eq!(acknowledged["params"]["notifications"]["resourceSubscriptions"], json!(["kit://1"]));
            updated(&mut events).await
        };
        let (event, _stream) = tokio::join!(listening, script());
        assert_eq!(event["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1, "{speaks:?}");

        let legacy = server.client().await;
        let listening = async {
            let mut events = legacy.listen().await;
            legacy.request("resources/list", json!({})).await;
            let response = legacy.request("resources/subscribe", json!({"uri": "kit://1"})).await;
            assert_eq!(response["result"], json!({}), "{response}");
            updated(&mut events).await
        };
        let (event, _stream) = tokio::join!(listening, script());
        assert_eq!(event, update(), "{speaks:?}");
    }
}
