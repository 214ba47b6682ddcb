//! Streams of backends that end before they are complete, and streams that are quiet for long.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    Server,
    client::{Client, text},
    in_fast_time,
    scripted::{Received, Scripted, Speaks, update},
};

/// A call may be without a sign of life for a second.
const TIMES: &str = "operational: {timeouts: {default: 1s}}\n";

async fn server(backend: &Scripted) -> Server {
    Server::with_urls(&[("a", backend.url())], TIMES, None).await
}

/// The response to a call.
fn response(call: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": call["id"], "result": {"content": [{"type": "text", "text": "done"}]}})
}

/// The stream that continues another after this event.
async fn continued(backend: &Scripted, after: &str) -> Received {
    loop {
        let stream = backend.next("GET").await;
        if stream.headers.get("last-event-id").is_some_and(|id| id == after) {
            return stream;
        }
    }
}

#[tokio::test]
async fn a_call_goes_on_where_its_backend_has_ended_the_stream() {
    let backend = Scripted::start(Speaks::LegacyWithStreams).await;
    let server = server(&backend).await;
    let client = server.client().await;
    let script = async {
        let call = backend.next("tools/call").await;
        let session = call.session().to_owned();
        // On purpose.
        call.send_raw("id: one\nretry: 200\ndata: \n\n");
        let call = call.end();
        let first = continued(&backend, "one").await;
        assert_eq!(first.session(), session);
        // In the middle of an event.
        first.send_raw("id: two\ndata: \n\nid: three\ndata: {\"jsonrpc\"");
        first.end();
        continued(&backend, "two").await.send(response(&call));
    };
    let (response, ()) = tokio::join!(client.call("a_ask"), script);
    assert_eq!(text(&response), ("done", false));
}

#[tokio::test]
async fn a_backend_that_wants_to_be_left_alone_for_a_day_is_asked_sooner() {
    let backend = Scripted::start(Speaks::LegacyWithStreams).await;
    let server = server(&backend).await;
    let client = server.client().await;
    let script = async {
        let call = backend.next("tools/call").await;
        call.send_raw("id: one\nretry: 86400000\ndata: \n\n");
        let call = call.end();
        let asked = tokio::time::Instant::now();
        continued(&backend, "one").await.send(response(&call));
        assert!(asked.elapsed() < Duration::from_secs(60), "{:?}", asked.elapsed());
    };
    let (response, ()) = in_fast_time(async { tokio::join!(client.call("a_ask"), script) }).await;
    assert_eq!(text(&response), ("done", false));
}

#[tokio::test]
async fn a_call_whose_stream_cannot_be_continued_fails() {
    let backend = Scripted::start(Speaks::LegacyWithStreams).await;
    let server = server(&backend).await;
    let client = server.client().await;
    let script = async {
        let call = backend.next("tools/call").await;
        call.send_raw("id: one\nretry: 0\ndata: \n\n");
        call.end();
        let mut attempts = 0;
        loop {
            continued(&backend, "one").await.end();
            attempts += 1;
            assert!(attempts <= 3);
        }
    };
    let failed = tokio::select! {
        failed = client.call("a_ask") => failed,
        () = script => unreachable!(),
    };
    let reason = "backend a: it closed the connection before its response was complete";
    assert_eq!(text(&failed), (reason, true));
}

#[tokio::test]
async fn the_stream_of_a_session_goes_on_where_it_has_ended() {
    let backend = Scripted::start(Speaks::LegacyWithStreams).await;
    let server = server(&backend).await;
    let client = server.client().await;
    let script = async {
        let subscribed = backend.next("resources/subscribe").await;
        let session = subscribed.session().to_owned();
        subscribed.result(json!({}));
        // The virtual server has a session of its own.
        let stream = loop {
            let stream = backend.next("GET").await;
            if stream.session() == session {
                break stream;
            }
        };
        stream.send_raw("id: one\nretry: 10\ndata: \n\n");
        stream.end();
        let stream = continued(&backend, "one").await;
        stream.send(update());
        stream
    };
    let listening = async {
        let mut events = client.listen().await;
        client.request("resources/list", json!({})).await;
        client.request("resources/subscribe", json!({"uri": "kit://1"})).await;
        events.next().await
    };
    let (event, _stream) = tokio::join!(listening, script);
    assert_eq!(event, Some(update()));
}

#[tokio::test]
async fn a_backend_that_sends_comments_is_not_silent() {
    for speaks in [Speaks::Legacy, Speaks::Sse] {
        let backend = Scripted::start(speaks).await;
        let config = Server::config(&[("a", backend.url())], TIMES);
        let config = if speaks == Speaks::Sse { config.replace("streamable-http", "sse") } else { config };
        let server = Server::of(&config, None, None).await;
        let client = server.client().await;
        assert_eq!(client.tools().await, ["a_ask"]);
        let script = async {
            let call = backend.next("tools/call").await;
            for _ in 0..5 {
                tokio::time::sleep(Duration::from_millis(800)).await;
                call.send_raw(": ping\n\n");
            }
            call.send(response(&call.message));
        };
        let (response, ()) = in_fast_time(async { tokio::join!(client.call("a_ask"), script) }).await;
        assert_eq!(text(&response), ("done", false), "{speaks:?}");
    }
}

/// A client of a backend that speaks HTTP+SSE.
async fn of_2024(backend: &Scripted) -> (Server, Client) {
    let config = Server::config(&[("a", backend.url())], "").replace("streamable-http", "sse");
    let server = Server::of(&config, None, None).await;
    let client = server.client().await;
    assert_eq!(client.tools().await, ["a_ask"]);
    (server, client)
}

#[tokio::test]
async fn all_messages_of_a_burst_arrive() {
    const COUNT: usize = 2_000;
    let backend = Scripted::start(Speaks::Sse).await;
    let (_server, client) = of_2024(&backend).await;
    let script = async {
        let call = backend.next("tools/call").await;
        let token = &call.message["params"]["_meta"]["progressToken"];
        let mut burst = String::new();
        for progress in 0..COUNT {
            let params = json!({"progressToken": token, "progress": progress});
            let message = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
            burst += &format!("data: {message}\n\n");
        }
        call.send_raw(&format!("{burst}data: {}\n\n", response(&call.message)));
    };
    let called = async {
        let params = json!({"name": "a_ask", "arguments": {}, "_meta": {"progressToken": "p"}});
        let mut events = client.open("tools/call", params).await;
        for progress in 0..COUNT {
            let event = events.next().await.unwrap();
            assert_eq!(event["params"], json!({"progressToken": "p", "progress": progress}));
        }
        events.next().await.unwrap()
    };
    let (response, ()) = tokio::join!(called, script);
    assert_eq!(text(&response), ("done", false));
}

#[tokio::test]
async fn a_request_of_a_backend_that_belongs_to_no_call_is_declined() {
    let backend = Scripted::start(Speaks::Sse).await;
    let (_server, client) = of_2024(&backend).await;
    let script = async {
        let [one, two] = [backend.next("tools/call").await, backend.next("tools/call").await];
        one.send(json!({"jsonrpc": "2.0", "id": "e1", "method": "elicitation/create", "params": {}}));
        one.send(json!({"jsonrpc": "2.0", "id": "p1", "method": "ping"}));
        let mut answers = [backend.next("").await.message, backend.next("").await.message];
        answers.sort_by_key(|answer| answer["id"].to_string());
        let [declined, pong] = answers;
        assert_eq!((&declined["id"], &declined["error"]["code"]), (&json!("e1"), &json!(-32601)));
        assert_eq!((&pong["id"], &pong["result"]), (&json!("p1"), &json!({})));
        for call in [one, two] {
            call.send(response(&call.message));
        }
    };
    let (first, second, ()) = tokio::join!(client.call("a_ask"), client.call("a_ask"), script);
    assert_eq!((text(&first), text(&second)), (("done", false), ("done", false)));
}
