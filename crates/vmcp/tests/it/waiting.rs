//! Workflows that wait for an answer at replicas that share a real Redis.

use std::time::Duration;

use http::{Method, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use skep_testkit::{Redis, RedisNetwork, ReplyFault};

use crate::{
    Replica,
    backend::Backend,
    client::{Client, Events, text},
};

/// A step, a question beside another step, and a step after both.
const POLITE: &str = r#"{name: polite, description: d, steps: [
  {id: before, tool: a_echo},
  {id: beside, tool: a_whoami},
  {id: q, type: elicitation, dependsOn: [before], message: "Which?", schema: {type: object, properties: {region: {type: string}}}},
  {id: after, tool: a_last, dependsOn: [q, beside], arguments: {region: "{{.steps.q.output.content.region}}"}}]}"#;

fn config(redis: &Redis, tool: &str) -> String {
    config_at(&redis.address(), tool)
}

fn config_at(redis: &str, tool: &str) -> String {
    format!("sessionStorage: {{provider: redis, address: \"{redis}\"}}\ncompositeTools: [{tool}]\n")
}

/// Two replicas before one backend.
async fn replicas(redis: &Redis, backend: &Backend) -> [Replica; 2] {
    let config = config(redis, POLITE);
    let (first, second) = tokio::join!(Replica::before(backend, &config), Replica::before(backend, &config));
    [first, second]
}

fn capable() -> Value {
    json!({"elicitation": {}})
}

fn call() -> Value {
    json!({"name": "polite", "arguments": {}})
}

fn accepted() -> Value {
    json!({"action": "accept", "content": {"region": "eu"}})
}

/// The call of a client of 2026-07-28 with the answer.
fn answered(needed: &Value) -> Value {
    let state = &needed["result"]["requestState"];
    assert!(state.is_string(), "{needed}");
    json!({"name": "polite", "arguments": {}, "requestState": state, "inputResponses": {"1": accepted()}})
}

/// The question that an older client gets.
async fn question(events: &mut Events) -> Value {
    let question = events.next().await.unwrap();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    question
}

fn response(question: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": question["id"], "result": accepted()})
}

/// All three steps have run, each once.
fn assert_each_step_ran_once(backend: &Backend) {
    let mut called = backend.called();
    called.sort();
    assert_eq!(called, ["echo", "last", "whoami"]);
}

#[tokio::test]
async fn a_workflow_goes_on_at_another_replica_when_its_own_is_killed() {
    let (redis, backend) = (Redis::start().await, Backend::start().await);
    let [first, second] = replicas(&redis, &backend).await;
    let client = Client::modern(first.address, capable());
    let needed = client.request("tools/call", call()).await;
    assert_eq!(needed["result"]["inputRequests"]["1"]["params"]["message"], "Which?", "{needed}");
    first.kill();
    let client = client.at(second.address);
    let stranger =
        json!({"name": "polite", "arguments": {}, "requestState": needed["result"]["requestState"]});
    let unanswered = client.request("tools/call", stranger).await;
    assert_eq!(unanswered["error"]["code"], -32602, "without an answer, it waits: {unanswered}");
    let response = client.request("tools/call", answered(&needed)).await;
    assert!(response["result"]["content"].is_array() && !text(&response).1, "{response}");
    assert_each_step_ran_once(&backend);
    let again = client.request("tools/call", answered(&needed)).await;
    assert_eq!(again["error"]["code"], -32602, "it does not run twice: {again}");
    assert_each_step_ran_once(&backend);
}

/// The tree of this answer takes a hundred times as much as its text.
#[tokio::test]
async fn a_large_answer_at_another_replica_counts_by_its_tree() {
    let (redis, backend) = (Redis::start().await, Backend::start().await);
    let [first, second] = replicas(&redis, &backend).await;
    let client = Client::modern(first.address, capable());
    let needed = client.request("tools/call", call()).await;
    let mut large = answered(&needed);
    large["inputResponses"]["1"]["content"]["all"] = json!(vec![[0]; 1 << 18]);
    let other = client.at(second.address);
    let refused = other.request("tools/call", large).await;
    let message = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("the answer of the user takes more memory than there is now"), "{refused}");
    // The run still waits, and nothing is counted any more.
    let response = other.request("tools/call", answered(&needed)).await;
    assert!(response["result"]["content"].is_array() && !text(&response).1, "{response}");
    assert_each_step_ran_once(&backend);
}

#[tokio::test]
async fn of_two_answers_at_two_replicas_one_goes_on() {
    let (redis, backend) = (Redis::start().await, Backend::start().await);
    let [first, second] = replicas(&redis, &backend).await;
    for _ in 0..10 {
        backend.forget();
        let client = Client::modern(first.address, capable());
        let needed = client.request("tools/call", call()).await;
        let other = client.at(second.address);
        let (one, two) = tokio::join!(
            client.request("tools/call", answered(&needed)),
            other.request("tools/call", answered(&needed)),
        );
        let goes_on = |response: &Value| response["result"]["content"].is_array() && !text(response).1;
        assert!(goes_on(&one) != goes_on(&two), "one of them: {one} {two}");
        assert_each_step_ran_once(&backend);
    }
}

#[tokio::test]
async fn an_older_client_opens_its_stream_again_at_another_replica_and_gets_the_result_there() {
    let (redis, backend) = (Redis::start().await, Backend::start().await);
    let [second, third] = replicas(&redis, &backend).await;
    for answers_first in [true, false] {
        backend.forget();
        let lost = Replica::before(&backend, &config(&redis, POLITE)).await;
        let client = Client::start(lost.address, capable()).await;
        let mut events = client.open("tools/call", call()).await;
        let question = question(&mut events).await;
        let event = events.last_id.clone().expect("a stream that can be opened again has ids");
        lost.kill();
        assert!(events.next().await.is_none(), "its stream has ended");
        // The answer comes to one replica, and the stream is opened at another.
        let (here, there) = (client.at(second.address), client.at(third.address));
        let answer = response(&question);
        if answers_first {
            assert_eq!(here.send(Method::POST, Some(&answer)).await.status(), StatusCode::ACCEPTED);
        }
        let mut rest = there.listen_after(&event).await;
        if !answers_first {
            assert_eq!(here.send(Method::POST, Some(&answer)).await.status(), StatusCode::ACCEPTED);
        }
        let result = rest.next().await.unwrap();
        assert_eq!(result["id"], 1, "the response to its call: {result}");
        assert!(result["result"]["content"].is_array() && !text(&result).1, "{result}");
        assert!(rest.next().await.is_none());
        assert_each_step_ran_once(&backend);
        let late = here.send(Method::POST, Some(&answer)).await;
        assert_eq!(late.status(), StatusCode::BAD_REQUEST);
        let body = late.into_body().collect().await.unwrap().to_bytes();
        let error: Value = serde_json::from_slice(&body).unwrap();
        let message = error["error"]["message"].as_str().unwrap();
        assert!(
            message.contains("no workflow waits") && message.contains("call the tool again"),
            "{message}"
        );
        assert_each_step_ran_once(&backend);
    }
}

#[tokio::test]
async fn an_answer_that_comes_to_another_replica_reaches_the_one_that_waits() {
    let (redis, backend) = (Redis::start().await, Backend::start().await);
    let [first, second] = replicas(&redis, &backend).await;
    let client = Client::start(first.address, capable()).await;
    let mut events = client.open("tools/call", call()).await;
    let answer = response(&question(&mut events).await);
    let stranger = Client::start(second.address, capable()).await;
    let foreign = stranger.send(Method::POST, Some(&answer)).await;
    assert_eq!(foreign.status(), StatusCode::BAD_REQUEST, "it is the question of another session");
    let other = client.at(second.address);
    assert_eq!(other.send(Method::POST, Some(&answer)).await.status(), StatusCode::ACCEPTED);
    let result = events.next().await.unwrap();
    assert!(result["result"]["content"].is_array() && !text(&result).1, "{result}");
    assert_each_step_ran_once(&backend);
}

#[tokio::test]
async fn a_stream_that_cannot_be_found_as_redis_is_unavailable_is_no_silent_stream() {
    let (mut redis, backend) = (Redis::start().await, Backend::start().await);
    let [first, second] = replicas(&redis, &backend).await;
    let client = Client::start(first.address, capable()).await;
    let mut events = client.open("tools/call", call()).await;
    question(&mut events).await;
    let event = events.last_id.clone().unwrap();
    // The other one knows the session.
    let other = client.at(second.address);
    assert!(!other.tools().await.is_empty());
    redis.kill();
    let response = other.send_after(&event).await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(response.headers().contains_key("retry-after"));
}

/// What a command that takes a workflow has, when Redis sees it for the first time, and one that passes an answer on.
const TAKE: &str = "\r\nEVAL\r\n";
const PASS_ON: &str = "\r\nNX\r\n";

#[tokio::test]
async fn a_workflow_goes_on_if_replies_of_redis_about_it_are_lost() {
    let (redis, backend) = (Redis::start().await, Backend::start().await);
    for fault in [ReplyFault::Lost, ReplyFault::Withheld] {
        let network = RedisNetwork::before(&redis).await;
        let config = config_at(&network.address(), POLITE);
        let (first, second) =
            tokio::join!(Replica::before(&backend, &config), Replica::before(&backend, &config));
        for is_elsewhere in [false, true] {
            backend.forget();
            let client = Client::modern(first.address, capable());
            let needed = client.request("tools/call", call()).await;
            network.fail(TAKE, fault);
            network.fail("EVALSHA", fault);
            let place = if is_elsewhere { second.address } else { first.address };
            let response = client.at(place).request("tools/call", answered(&needed)).await;
            assert!(response["result"]["content"].is_array() && !text(&response).1, "{fault:?} {response}");
            assert_each_step_ran_once(&backend);
        }
        backend.forget();
        let client = Client::start(first.address, capable()).await;
        let mut events = client.open("tools/call", call()).await;
        let answer = response(&question(&mut events).await);
        network.fail(PASS_ON, fault);
        let other = client.at(second.address);
        assert_eq!(other.send(Method::POST, Some(&answer)).await.status(), StatusCode::ACCEPTED);
        let result = events.next().await.unwrap();
        assert!(result["result"]["content"].is_array() && !text(&result).1, "{result}");
        assert_each_step_ran_once(&backend);
    }
}

#[tokio::test]
async fn a_workflow_whose_definition_has_changed_or_whose_time_has_passed_does_not_go_on() {
    let (redis, backend) = (Redis::start().await, Backend::start().await);
    let start = |tool: String| {
        let config = config(&redis, &tool);
        let backend = &backend;
        async move { Replica::before(backend, &config).await }
    };
    let first = start(POLITE.to_owned()).await;
    let changed = start(POLITE.replace("description: d", "description: e")).await;
    let client = Client::modern(first.address, capable());
    let needed = client.request("tools/call", call()).await;
    let response = client.at(changed.address).request("tools/call", answered(&needed)).await;
    let message = response["error"]["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("the tool has changed"), "{response}");
    let brief = start(POLITE.replace("message: \"Which?\"", "message: \"Which?\", timeout: 3s")).await;
    let same = start(POLITE.replace("message: \"Which?\"", "message: \"Which?\", timeout: 3s")).await;
    let client = Client::modern(brief.address, capable());
    let before = kept(&redis).await;
    let needed = client.request("tools/call", call()).await;
    let late = answered(&needed);
    // The replica that waits withdraws the question by itself.
    while kept(&redis).await > before {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let response = client.request("tools/call", late.clone()).await;
    assert_eq!(
        text(&response).0,
        "Workflow execution failed: step \"q\" failed: the user did not answer in time",
        "{response}"
    );
    let response = client.at(same.address).request("tools/call", late).await;
    assert_eq!(response["error"]["code"], -32602, "{response}");
    assert!(!backend.called().contains(&"last".to_owned()), "no step followed");
}

const SECRET: &str = "a secret that all replicas of this test have";

/// Has a workflow of each era wait and be answered at another replica, with texts that only their caller may see.
async fn run_with_private_texts(redis: &Redis, backend: &Backend, secret: Option<&str>) {
    let config = config(redis, POLITE);
    let start = || Replica::with_secret(backend, &config, secret);
    let (first, second) = tokio::join!(start(), start());
    let client = Client::modern(first.address, capable());
    let params = json!({"name": "polite", "arguments": {"private": "text-of-an-argument"}});
    let needed = client.request("tools/call", params.clone()).await;
    let other = client.at(second.address).request("tools/call", answered(&needed)).await;
    assert_eq!(other["error"]["code"], -32602, "other arguments: {other}");
    let mut answered = answered(&needed);
    answered["arguments"] = params["arguments"].clone();
    let stranger = Replica::with_secret(backend, &config, Some(&"x".repeat(40))).await;
    let unknown = client.at(stranger.address).request("tools/call", answered.clone()).await;
    assert_eq!(unknown["error"]["code"], -32602, "another secret: {unknown}");
    let response = client.at(second.address).request("tools/call", answered).await;
    assert!(response["result"]["content"].is_array() && !text(&response).1, "{response}");
    let client = Client::start(first.address, capable()).await;
    let mut events = client.open("tools/call", call()).await;
    let mut answer = self::response(&question(&mut events).await);
    answer["result"]["content"]["private"] = "text-of-an-answer".into();
    let other = client.at(second.address);
    assert_eq!(other.send(Method::POST, Some(&answer)).await.status(), StatusCode::ACCEPTED);
    let result = events.next().await.unwrap();
    assert!(result["result"]["content"].is_array() && !text(&result).1, "{result}");
}

#[tokio::test]
async fn what_a_waiting_workflow_has_cannot_be_read_in_redis_where_replicas_share_a_secret() {
    let backend = Backend::start().await;
    for (secret, is_readable) in [(None, true), (Some(SECRET), false)] {
        let redis = Redis::start().await;
        run_with_private_texts(&redis, &backend, secret).await;
        let written = String::from_utf8_lossy(&redis.written()).into_owned();
        for text in ["text-of-an-argument", "text-of-an-answer"] {
            assert_eq!(written.contains(text), is_readable, "{text}");
        }
    }
}

#[tokio::test]
async fn an_answer_for_another_replica_has_the_bound_of_a_kept_workflow() {
    let (redis, backend) = (Redis::start().await, Backend::start().await);
    let [first, second] = replicas(&redis, &backend).await;
    let client = Client::start(first.address, capable()).await;
    let mut events = client.open("tools/call", call()).await;
    let answer = response(&question(&mut events).await);
    let mut large = answer.clone();
    large["result"]["content"]["more"] = "x".repeat(300 << 10).into();
    let other = client.at(second.address);
    let refused = other.send(Method::POST, Some(&large)).await;
    assert_eq!(refused.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(other.send(Method::POST, Some(&answer)).await.status(), StatusCode::ACCEPTED);
    let result = events.next().await.unwrap();
    assert!(result["result"]["content"].is_array() && !text(&result).1, "{result}");
}

/// How many workflows are kept.
async fn kept(redis: &Redis) -> usize {
    let client = redis::Client::open(format!("redis://{}/", redis.address())).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let keys: Vec<String> =
        redis::cmd("KEYS").arg("*:workflow:*").query_async(&mut connection).await.unwrap();
    keys.len()
}

/// The share of an address whose callers are anonymous.
const SHARE: usize = 200;

#[tokio::test]
async fn a_caller_cannot_fill_redis_with_workflows_that_wait() {
    let (redis, backend) = (Redis::start().await, Backend::start().await);
    let [first, second] = replicas(&redis, &backend).await;
    let client = Client::modern(first.address, capable());
    let mut waiting = Vec::new();
    for _ in 0..=SHARE {
        waiting.push(client.request("tools/call", call()).await);
    }
    // The oldest have made room, here and in Redis.
    while kept(&redis).await >= SHARE {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let other = client.at(second.address);
    let evicted = other.request("tools/call", answered(&waiting[0])).await;
    assert_eq!(evicted["error"]["code"], -32602, "{evicted}");
    let response = other.request("tools/call", answered(&waiting[SHARE - 1])).await;
    assert!(response["result"]["content"].is_array(), "one that is not so old goes on: {response}");
    // An older client that disconnects may come back, so these stay, but no more than its share.
    let client = Client::start(first.address, capable()).await;
    for _ in 0..=SHARE {
        let mut events = client.open("tools/call", call()).await;
        question(&mut events).await;
    }
    // That which was answered elsewhere counts until its time has passed.
    assert_eq!(kept(&redis).await, SHARE - 1);
    let stranger = Client::modern(first.address, capable()).from([127, 0, 0, 2]);
    let needed = stranger.request("tools/call", call()).await;
    let response = stranger.at(second.address).request("tools/call", answered(&needed)).await;
    assert!(response["result"]["content"].is_array(), "others have their own share: {response}");
}
