//! Misbehaving servers. Only the client of a request is affected.

use std::time::Duration;

use http::{Method, StatusCode};
use http_body_util::BodyExt;
use serde_json::json;
use skep_proxy::limits;
use tokio::{io::AsyncWriteExt, net::TcpStream};

use super::{
    client::{Client, STREAM, initialize, send},
    fake::{Act, Fake},
};
use crate::{
    fixture::call,
    load::{sockets, until},
};

#[tokio::test]
async fn noise_split_lines_and_lines_that_are_too_long_do_no_harm() {
    let fake = Fake::new(|received| {
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"t":"é€😀"}}}}"#, received.json["id"]);
        let line = format!("starting up…\r\n\n[1,2]\n{{broken\n\"text\"\n{answer}\r\n").into_bytes();
        let mut acts: Vec<Act> = Vec::new();
        if received.method() == "huge" {
            acts.extend((0..33).map(|_| Act::Write(vec![b'{'; 1 << 20])));
            acts.push(Act::Write(b"\n".to_vec()));
        }
        // Byte by byte, so that every character is cut.
        acts.extend(line.iter().map(|byte| Act::Write(vec![*byte])));
        if received.json.get("id").is_some() { acts } else { Vec::new() }
    });
    let fixture = fake.proxy().await;
    let client = Client::new(&fixture).await;
    for method in ["ping", "huge", "ping"] {
        assert_eq!(client.call(method, json!({})).await["result"]["t"], "é€😀", "{method}");
    }
}

#[tokio::test]
async fn a_duplicate_or_unsolicited_response_is_dropped() {
    let fake = Fake::new(|received| {
        let Some(number) = received.json["id"].as_u64() else { return Vec::new() };
        let answer = |id: String, text: &str| {
            Act::Send(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"t":"{text}"}}}}"#))
        };
        vec![
            answer((number + 1).to_string(), "to a future request"),
            answer(format!("\"{number}\""), "of another type"),
            answer(format!("{number}.0"), "spelled differently"),
            Act::Send(r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"without an id"}}"#.into()),
            answer(number.to_string(), "right"),
            answer(number.to_string(), "again"),
        ]
    });
    let fixture = fake.proxy().await;
    let client = Client::new(&fixture).await;
    for _ in 0..5 {
        assert_eq!(client.call("ping", json!({})).await["result"]["t"], "right");
    }
    // A response with the id of another request in flight cannot be detected: only the server could.
}

#[tokio::test]
async fn a_malformed_response_is_an_error_at_once() {
    let fake = Fake::new(|received| match received.json.get("id") {
        Some(id) => vec![Act::Send(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}},"error":{{}}}}"#))],
        None => Vec::new(),
    });
    let fixture = fake.proxy().await;
    let client = Client::new(&fixture).await;
    let answer = client.post(&call("ping", json!({}))).await;
    assert_eq!((answer.status, answer.json()["id"].clone()), (StatusCode::INTERNAL_SERVER_ERROR, json!(7)));
}

#[tokio::test]
async fn a_request_times_out_and_is_cancelled_unless_the_server_reports_progress() {
    let fake = Fake::new(|_| Vec::new());
    // Much longer than a step, also on a busy machine.
    let patience = Duration::from_secs(3);
    let fixture = fake.configured(json!({}), patience).await;
    let client = Client::new(&fixture).await;
    let answer = client.post(&call("one", json!({}))).await;
    assert_eq!(
        (answer.status, answer.json()["error"]["code"].clone()),
        (StatusCode::GATEWAY_TIMEOUT, json!(-32000))
    );
    let number = fake.received_method("one").await.json["id"].clone();
    let cancelled = fake.received_method("notifications/cancelled").await;
    assert_eq!(cancelled.json["params"]["requestId"], number);
    let mut stream = client.stream(&call("two", json!({}))).await;
    let error = stream.next().await.unwrap();
    assert_eq!((error["id"].clone(), error["error"]["code"].clone()), (json!(7), json!(-32000)));
    assert_eq!(stream.next().await, None);

    let request = call("three", json!({"_meta": {"progressToken": 1}}));
    let mut stream = client.stream(&request).await;
    let number = fake.received_method("three").await.json["id"].clone();
    for step in 0..6 {
        tokio::time::sleep(patience / 5).await;
        let params = json!({"progressToken": number, "progress": step});
        fake.send(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}));
        assert_eq!(stream.next().await.unwrap()["params"]["progress"], step);
    }
    fake.send(json!({"jsonrpc": "2.0", "id": number, "result": {}}));
    stream.expect(json!({"jsonrpc": "2.0", "id": 7, "result": {}})).await;
}

#[tokio::test]
async fn a_slow_reader_loses_only_its_own_stream() {
    let fake = Fake::echo();
    let fixture = fake.proxy().await;
    let (slow, quick) = (Client::new(&fixture).await, Client::new(&fixture).await);
    let mut unread = slow.listen().await;
    let mut read = quick.listen().await;
    // More than the connection and the queue hold together.
    let filling = "x".repeat(64 << 10);
    let count = limits::STREAM_EVENTS * 3;
    let changed =
        json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"f": filling}});
    for number in 0..count {
        fake.send(changed.clone());
        // The quick one reads as fast as they come.
        if number % 16 == 15 {
            for _ in 0..16 {
                assert_eq!(read.next().await.unwrap()["method"], "notifications/tools/list_changed");
            }
            assert_eq!(quick.call("ping", json!({"n": number})).await["result"]["echo"]["n"], number);
        }
    }
    let mut events = 0;
    while unread.next().await.is_some() {
        events += 1;
    }
    assert!(events < count, "the slow one was disconnected");
    assert_eq!(slow.call("ping", json!({})).await["id"], 7, "its session continues");
}

#[tokio::test]
async fn results_that_clients_do_not_read_take_a_bounded_part_of_the_memory() {
    const RESULT: usize = 6 << 20;
    const CALLS: usize = 30;
    let text = "x".repeat(RESULT);
    let fake = Fake::new(move |received| match received.method() {
        "tools/call" => vec![received.result(json!(text))],
        _ => vec![received.result("{}")],
    });
    let fixture = fake.proxy().await;
    let body = call("tools/call", json!({"name": "large"}));
    let mut unread = Vec::new();
    for _ in 0..CALLS {
        unread.push(send(&fixture, Method::POST, "/mcp", &[STREAM], &body).await);
    }
    until("all calls are answered", || {
        fake.received().iter().filter(|received| received.method() == "tools/call").count() == CALLS
    })
    .await;
    // The server sends one line after the other, so all of them have arrived then.
    assert_eq!(fixture.post(&[], &call("ping", json!({}))).await.status, StatusCode::OK);
    let mut whole = 0;
    for response in unread {
        let text = response.into_body().collect().await.unwrap().to_bytes();
        if text.len() > RESULT {
            whole += 1;
        } else {
            assert!(text.windows(6).any(|word| word == b"memory"), "{text:?}");
        }
    }
    // What has been read into sockets is not counted.
    assert!((1..=limits::BODIES / 2 / RESULT + 5).contains(&whole), "{whole} of {CALLS}");
    let answer = fixture.post(&[], &body).await;
    assert!(answer.body.len() > RESULT, "what has been read is free again");
}

#[tokio::test]
async fn an_initialize_of_a_client_that_has_left_is_not_sent() {
    let fake = Fake::raw(|_| Vec::new());
    let fixture = fake.proxy().await;
    let body = initialize("2025-11-25", json!({}));
    let head = "POST /mcp HTTP/1.1\r\nHost: files\r\nContent-Type: application/json\r\nContent-Length";
    let request = format!("{head}: {}\r\n\r\n{body}", body.len());
    let address = fixture.address;
    let connect = async || {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    };
    let first = connect().await;
    let number = fake.received_method("initialize").await.json["id"].clone();
    let mut others = Vec::new();
    for _ in 0..20 {
        others.push(connect().await);
    }
    drop((first, others));
    until("the clients have left", || sockets(address) == 0).await;
    fake.send(json!({"jsonrpc": "2.0", "id": number, "error": {"code": 1, "message": "not yet"}}));
    let (answer, ()) = tokio::join!(fixture.post(&[], &body), async {
        let is_next = |received: &super::fake::ReceivedMessage| received.json["id"] != number;
        let next = fake.received_where(is_next).await;
        fake.act(next.result(json!({"protocolVersion": "2025-11-25", "serverInfo": {"name": "fake"}})));
    });
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(fake.methods(), ["initialize"; 2], "the first had been sent already");
}
