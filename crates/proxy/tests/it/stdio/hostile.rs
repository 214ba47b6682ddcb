//! Servers that do what they should not. Nobody but who spoke to them notices.

use std::time::Duration;

use http::StatusCode;
use serde_json::json;
use skep_proxy::limits;

use super::{
    client::Client,
    fake::{Act, Fake},
};
use crate::fixture::call;

#[tokio::test]
async fn noise_and_lines_in_pieces_and_lines_that_are_too_long_are_no_messages_and_harm_none() {
    let fake = Fake::new(|heard| {
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"t":"é€😀"}}}}"#, heard.json["id"]);
        let line = format!("starting up…\r\n\n[1,2]\n{{broken\n\"text\"\n{answer}\r\n").into_bytes();
        let mut acts: Vec<Act> = Vec::new();
        if heard.method() == "huge" {
            acts.extend((0..33).map(|_| Act::Write(vec![b'{'; 1 << 20])));
            acts.push(Act::Write(b"\n".to_vec()));
        }
        // Byte by byte, so that every character is cut.
        acts.extend(line.iter().map(|byte| Act::Write(vec![*byte])));
        if heard.json.get("id").is_some() { acts } else { Vec::new() }
    });
    let fixture = fake.proxied().await;
    let client = Client::new(&fixture).await;
    for method in ["ping", "huge", "ping"] {
        assert_eq!(client.call(method, json!({})).await["result"]["t"], "é€😀", "{method}");
    }
}

#[tokio::test]
async fn an_answer_counts_once_and_one_that_nobody_waits_for_goes_nowhere() {
    let fake = Fake::new(|heard| {
        let Some(number) = heard.json["id"].as_u64() else { return Vec::new() };
        let answer = |id: String, text: &str| {
            Act::Say(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"t":"{text}"}}}}"#))
        };
        vec![
            answer((number + 1).to_string(), "for one who has not asked yet"),
            answer(format!("\"{number}\""), "of another type"),
            answer(format!("{number}.0"), "spelt otherwise"),
            Act::Say(r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"of nobody"}}"#.into()),
            answer(number.to_string(), "right"),
            answer(number.to_string(), "again"),
        ]
    });
    let fixture = fake.proxied().await;
    let client = Client::new(&fixture).await;
    for _ in 0..5 {
        assert_eq!(client.call("ping", json!({})).await["result"]["t"], "right");
    }
    // What is answered for a request that is on its way is taken for its answer: the server alone knows better.
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_an_error_at_once() {
    let fake = Fake::new(|heard| match heard.json.get("id") {
        Some(id) => vec![Act::Say(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}},"error":{{}}}}"#))],
        None => Vec::new(),
    });
    let fixture = fake.proxied().await;
    let client = Client::new(&fixture).await;
    let answer = client.post(&call("ping", json!({}))).await;
    assert_eq!((answer.status, answer.json()["id"].clone()), (StatusCode::INTERNAL_SERVER_ERROR, json!(7)));
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up_and_told_so_unless_it_makes_progress() {
    let fake = Fake::new(|_| Vec::new());
    let patience = Duration::from_millis(400);
    let fixture = fake.configured(json!({}), patience).await;
    let client = Client::new(&fixture).await;
    let answer = client.post(&call("one", json!({}))).await;
    assert_eq!(
        (answer.status, answer.json()["error"]["code"].clone()),
        (StatusCode::GATEWAY_TIMEOUT, json!(-32000))
    );
    let number = fake.heard_method("one").await.json["id"].clone();
    let cancelled = fake.heard_method("notifications/cancelled").await;
    assert_eq!(cancelled.json["params"]["requestId"], number);
    let mut stream = client.stream(&call("two", json!({}))).await;
    let refused = stream.next().await.unwrap();
    assert_eq!((refused["id"].clone(), refused["error"]["code"].clone()), (json!(7), json!(-32000)));
    assert_eq!(stream.next().await, None);

    let asked = call("three", json!({"_meta": {"progressToken": 1}}));
    let mut stream = client.stream(&asked).await;
    let number = fake.heard_method("three").await.json["id"].clone();
    for step in 0..6 {
        tokio::time::sleep(patience / 2).await;
        let params = json!({"progressToken": number, "progress": step});
        fake.say(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}));
        assert_eq!(stream.next().await.unwrap()["params"]["progress"], step);
    }
    fake.say(json!({"jsonrpc": "2.0", "id": number, "result": {}}));
    stream.expect(json!({"jsonrpc": "2.0", "id": 7, "result": {}})).await;
}

#[tokio::test]
async fn a_slow_reader_loses_its_own_stream_and_nobody_elses() {
    let fake = Fake::echo();
    let fixture = fake.proxied().await;
    let (slow, quick) = (Client::new(&fixture).await, Client::new(&fixture).await);
    let mut unread = slow.listen().await;
    let mut read = quick.listen().await;
    // More than the connection and the queue hold together.
    let filling = "x".repeat(64 << 10);
    let count = limits::STREAM_EVENTS * 3;
    let changed =
        json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"f": filling}});
    for said in 0..count {
        fake.say(changed.clone());
        // The quick one reads as fast as they come.
        if said % 16 == 15 {
            for _ in 0..16 {
                assert_eq!(read.next().await.unwrap()["method"], "notifications/tools/list_changed");
            }
            assert_eq!(quick.call("ping", json!({"n": said})).await["result"]["echo"]["n"], said);
        }
    }
    let mut got = 0;
    while unread.next().await.is_some() {
        got += 1;
    }
    assert!(got < count, "the slow one was cut off");
    assert_eq!(slow.call("ping", json!({})).await["id"], 7, "its session goes on");
}
