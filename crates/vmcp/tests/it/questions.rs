//! Questions of backends and workflows to the user of an older client: whose time they take, and how they end.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use skep_testkit::{Redis, RedisNetwork, ReplyFault};
use tokio::time::timeout;

use crate::{
    Server,
    client::{Client, text},
    in_fast_time, in_steps,
    scripted::{Received, Scripted, Speaks},
};

/// The time of the backend, and one of the user.
const TIMES: &str = "operational: {timeouts: {default: 3s}}\n";
const USER: Duration = Duration::from_secs(10);

fn question(id: &str) -> Value {
    let params = json!({
        "message": "Which?", "requestedSchema": {"type": "object", "properties": {}},
        "_meta": {"progressToken": "of-question"},
    });
    json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params})
}

fn done() -> Value {
    json!({"content": [{"type": "text", "text": "done"}]})
}

async fn answer(client: &Client, question: &Value) {
    assert_eq!(try_answer(client, question).await, 202);
}

/// Answers a question, and returns the status of the response.
async fn try_answer(client: &Client, question: &Value) -> u16 {
    let response = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}});
    client.send(Method::POST, Some(&response)).await.status().as_u16()
}

/// A server, and a client that has a session at the backend.
async fn server(backend: &Scripted) -> (Server, Client, String) {
    let server = Server::with_urls(&[("a", backend.url())], TIMES, None).await;
    let client = Client::start(server.address, json!({"elicitation": {}})).await;
    let first = async {
        let call = backend.next("tools/call").await;
        let session = call.session().to_owned();
        call.result(done());
        session
    };
    let (_, session) = tokio::join!(client.call("a_ask"), first);
    (server, client, session)
}

fn params() -> Value {
    json!({"name": "a_ask", "arguments": {}})
}

#[tokio::test]
async fn what_a_backend_sends_beside_its_question_does_not_end_the_time_of_the_user() {
    let backend = Scripted::start(Speaks::Legacy).await;
    let (_server, client, _) = server(&backend).await;
    let script = async {
        let call = backend.next("tools/call").await;
        call.send(question("e1"));
        let log = json!({"level": "info", "data": "asked the user"});
        call.send(json!({"jsonrpc": "2.0", "method": "notifications/message", "params": log}));
        assert_eq!(backend.next("").await.message["id"], "e1");
        call.result(done());
    };
    let called = async {
        let mut events = client.open("tools/call", params()).await;
        let question = events.next().await.unwrap();
        tokio::time::sleep(USER).await;
        answer(&client, &question).await;
        events.next().await.unwrap()
    };
    let (response, ()) = in_fast_time(async { tokio::join!(called, script) }).await;
    assert_eq!(text(&response), ("done", false));
}

#[tokio::test]
async fn a_backend_that_responds_to_a_request_only_when_it_is_done_can_ask_and_answer_before() {
    let backend = Scripted::start(Speaks::Servlet).await;
    let config = Server::config(&[("a", backend.url())], TIMES).replace("streamable-http", "sse");
    let server = Server::of(&config, None, None).await;
    let client = Client::start(server.address, json!({"elicitation": {}})).await;
    let script = async {
        let call = backend.next("tools/call").await;
        call.send(question("e1"));
        assert_eq!(backend.next("").await.message["id"], "e1");
        call.send(json!({"jsonrpc": "2.0", "id": call.message["id"], "result": done()}));
        call
    };
    let called = async {
        let mut events = client.open("tools/call", params()).await;
        let question = events.next().await.unwrap();
        answer(&client, &question).await;
        events.next().await.unwrap()
    };
    let (response, _held) = tokio::join!(called, script);
    assert_eq!(text(&response), ("done", false));
}

#[tokio::test]
async fn an_answer_that_comes_twice_reaches_the_backend_once() {
    let backend = Scripted::start(Speaks::Legacy).await;
    let (_server, client, _) = server(&backend).await;
    let script = async {
        let call = backend.next("tools/call").await;
        call.send(question("e1"));
        assert_eq!(backend.next("").await.message["id"], "e1");
        call.send(question("e2"));
        assert_eq!(backend.next("").await.message["id"], "e2", "the first answer came once");
        call.result(done());
    };
    let called = async {
        let mut events = client.open("tools/call", params()).await;
        for _ in 0..2 {
            let question = events.next().await.unwrap();
            answer(&client, &question).await;
            answer(&client, &question).await;
        }
        events.next().await.unwrap()
    };
    let (response, ()) = tokio::join!(called, script);
    assert_eq!(text(&response), ("done", false));
}

#[tokio::test]
async fn a_backend_that_always_has_a_question_does_not_hold_its_call_for_ever() {
    let backend = Scripted::start(Speaks::Legacy).await;
    let (_server, client, _) = server(&backend).await;
    let begun = async {
        let call = backend.next("tools/call").await;
        call.send(question("0"));
        call
    };
    let (mut events, call) = tokio::join!(client.open("tools/call", params()), begun);
    events.next().await.unwrap();
    let asking = async {
        for number in 1_u64.. {
            tokio::time::sleep(Duration::from_secs(300)).await;
            call.send(question(&number.to_string()));
        }
    };
    let called = async {
        loop {
            let message = events.next().await.unwrap();
            if message.get("result").is_some() {
                return message;
            }
        }
    };
    let response = in_steps(Duration::from_secs(5), async {
        tokio::select! {
            response = called => response,
            () = asking => unreachable!(),
        }
    });
    let response = response.await;
    assert_eq!(text(&response), ("backend a: it has not completed the request within 3600 s", true));
}

/// Two replicas that share their sessions.
async fn replicas(backend: &Scripted, transport: &str) -> (Redis, [Server; 2]) {
    let redis = Redis::start().await;
    let address = redis.address();
    let servers = [replica(backend, transport, &address).await, replica(backend, transport, &address).await];
    (redis, servers)
}

/// A replica with its sessions in the Redis at this address.
async fn replica(backend: &Scripted, transport: &str, redis: &str) -> Server {
    let more = format!("{TIMES}sessionStorage: {{provider: redis, address: \"{redis}\"}}\n");
    let config = Server::config(&[("a", backend.url())], &more).replace("streamable-http", transport);
    Server::of(&config, None, None).await
}

#[tokio::test]
async fn redis_faults_lose_no_answer() {
    // A backend may use an id again.
    for fault in [ReplyFault::Refused, ReplyFault::Withheld] {
        let (redis, backend) = (Redis::start().await, Scripted::start(Speaks::Legacy).await);
        let network = RedisNetwork::before(&redis).await;
        let first = replica(&backend, "streamable-http", &network.address()).await;
        let second = replica(&backend, "streamable-http", &redis.address()).await;
        let client = Client::start(first.address, json!({"elicitation": {}})).await;
        let other = client.at(second.address);
        network.fail(":question:", fault);
        let script = async {
            let call = backend.next("tools/call").await;
            for _ in 0..2 {
                call.send(question("e1"));
                assert_eq!(backend.next("").await.message["id"], "e1");
            }
            call.result(done());
        };
        let called = async {
            let mut events = client.open("tools/call", params()).await;
            for _ in 0..2 {
                let question = events.next().await.unwrap();
                answer(&other, &question).await;
            }
            events.next().await.unwrap()
        };
        let (response, ()) = tokio::join!(called, script);
        assert_eq!(text(&response), ("done", false), "{fault:?}");
        assert!(network.has_failed(), "{fault:?}");
    }
}

#[tokio::test]
async fn a_client_can_send_an_answer_again_that_the_backend_rejected() {
    let backend = Scripted::start(Speaks::LegacyHoldingAnswers).await;
    let (_redis, [first, second]) = replicas(&backend, "streamable-http").await;
    let client = Client::start(first.address, json!({"elicitation": {}})).await;
    for at in [first.address, second.address] {
        let script = async {
            let call = backend.next("tools/call").await;
            call.send(question("e1"));
            backend.next("").await.reject(500);
            assert_eq!(backend.next("").await.message["id"], "e1");
            call.result(done());
        };
        let called = async {
            let mut events = client.open("tools/call", params()).await;
            let question = events.next().await.unwrap();
            let answering = client.at(at);
            assert_eq!(try_answer(&answering, &question).await, 502);
            answer(&answering, &question).await;
            events.next().await.unwrap()
        };
        let (response, ()) = tokio::join!(called, script);
        assert_eq!(text(&response), ("done", false));
    }
}

#[tokio::test]
async fn simultaneous_answers_at_two_replicas_reach_the_backend_once() {
    let backend = Scripted::start(Speaks::LegacyHoldingAnswers).await;
    let (_redis, [first, second]) = replicas(&backend, "streamable-http").await;
    let client = Client::start(first.address, json!({"elicitation": {}})).await;
    let other = client.at(second.address);
    let script = async {
        let call = backend.next("tools/call").await;
        for id in ["e1", "e2"] {
            call.send(question(id));
            assert_eq!(backend.next("").await.message["id"], id, "each answer comes once");
        }
        call.result(done());
    };
    let called = async {
        let mut events = client.open("tools/call", params()).await;
        for _ in 0..2 {
            let question = events.next().await.unwrap();
            tokio::join!(answer(&client, &question), answer(&other, &question));
        }
        events.next().await.unwrap()
    };
    let (response, ()) = tokio::join!(called, script);
    assert_eq!(text(&response), ("done", false));
}

#[tokio::test]
async fn a_backend_that_ignores_a_pong_delays_no_message() {
    let backend = Scripted::start(Speaks::LegacyHoldingAnswers).await;
    let server = Server::with_urls(&[("a", backend.url())], "", None).await;
    let client = Client::start(server.address, json!({"elicitation": {}})).await;
    let ping = || json!({"jsonrpc": "2.0", "id": "p", "method": "ping"});
    let script = async {
        let call = backend.next("tools/call").await;
        let session = call.session().to_owned();
        call.send(ping());
        let pong = backend.next("").await;
        call.result(done());
        (session, pong)
    };
    let called = async { tokio::join!(client.call("a_ask"), script) };
    let (response, (session, _pong)) = timeout(SOON, called).await.unwrap();
    assert_eq!(text(&response), ("done", false));
    let mut heard = client.listen().await;
    let stream = stream_of(&backend, &session).await;
    stream.send(ping());
    let _pong = backend.next("").await;
    stream.send(question("e1"));
    let question = timeout(SOON, heard.next()).await.unwrap().unwrap();
    assert_eq!(question["method"], "elicitation/create");
}

/// Less than the time of a backend.
const SOON: Duration = Duration::from_secs(15);

#[tokio::test]
async fn a_call_whose_own_status_is_404_runs_once_over_http_sse() {
    let backend = Scripted::start(Speaks::Servlet).await;
    let config = Server::config(&[("a", backend.url())], "").replace("streamable-http", "sse");
    let server = Server::of(&config, None, None).await;
    let client = server.client().await;
    let script = async {
        backend.next("tools/call").await.reject(404);
        drop(backend.next("ping").await);
        backend.next("tools/call").await
    };
    let response = tokio::select! {
        response = client.call("a_ask") => response,
        _again = script => panic!("the tool runs again"),
    };
    assert_eq!(text(&response), ("backend a: it responded with HTTP 404", true));
}

#[tokio::test]
async fn an_answer_that_comes_to_another_replica_reaches_the_backend_and_ends_the_time_of_the_user() {
    for (speaks, transport) in [(Speaks::Legacy, "streamable-http"), (Speaks::Sse, "sse")] {
        let backend = Scripted::start(speaks).await;
        let (_redis, [first, second]) = replicas(&backend, transport).await;
        let client = Client::start(first.address, json!({"elicitation": {}})).await;
        let other = client.at(second.address);
        let stranger = Client::start(second.address, json!({"elicitation": {}})).await;
        let script = async {
            let call = backend.next("tools/call").await;
            call.send(question("e1"));
            let answer = backend.next("").await.message;
            assert_eq!((&answer["id"], &answer["result"]["action"]), (&"e1".into(), &"decline".into()));
            // From now on it is silent.
            call
        };
        let called = async {
            let mut events = client.open("tools/call", params()).await;
            let question = events.next().await.unwrap();
            if speaks == Speaks::Sse {
                // It has no session at this backend, so nothing is sent there.
                assert_eq!(try_answer(&stranger, &question).await, 400);
            }
            answer(&other, &question).await;
            answer(&other, &question).await;
            events.next().await.unwrap()
        };
        let (response, _call) = tokio::join!(called, script);
        assert_eq!(text(&response), ("backend a: it sent nothing within 3 s", true), "{transport}");
    }
}

#[tokio::test]
async fn after_the_answer_the_backend_has_its_own_time_again() {
    let backend = Scripted::start(Speaks::Legacy).await;
    let (_server, client, _) = server(&backend).await;
    let script = async {
        let call = backend.next("tools/call").await;
        call.send(question("e1"));
        backend.next("").await;
        call
    };
    let called = async {
        let mut events = client.open("tools/call", params()).await;
        let question = events.next().await.unwrap();
        answer(&client, &question).await;
        events.next().await.unwrap()
    };
    let (response, _call) = in_fast_time(async { tokio::join!(called, script) }).await;
    assert_eq!(text(&response), ("backend a: it sent nothing within 3 s", true));
}

/// The stream of messages that belong to no request, in the session of this call.
async fn stream_of(backend: &Scripted, session: &str) -> Received {
    loop {
        let stream = backend.next("GET").await;
        if stream.session() == session {
            return stream;
        }
    }
}

#[tokio::test]
async fn a_question_on_the_stream_of_the_session_stops_the_clock_of_a_call() {
    let backend = Scripted::start(Speaks::LegacyWithStreams).await;
    let (_server, client, session) = server(&backend).await;
    let mut heard = client.listen().await;
    let stream = stream_of(&backend, &session).await;
    let script = async {
        let call = backend.next("tools/call").await;
        stream.send(question("e1"));
        assert_eq!(backend.next("").await.message["id"], "e1");
        call.result(done());
    };
    let user = async {
        let question = heard.next().await.unwrap();
        tokio::time::sleep(USER).await;
        answer(&client, &question).await;
    };
    let (response, (), ()) = in_fast_time(async { tokio::join!(client.call("a_ask"), script, user) }).await;
    assert_eq!(text(&response), ("done", false));
}

#[tokio::test]
async fn a_backend_can_withdraw_its_question_and_hears_of_progress() {
    let backend = Scripted::start(Speaks::Legacy).await;
    let (_server, client, _) = server(&backend).await;
    let script = async {
        let call = backend.next("tools/call").await;
        call.send(question("e9"));
        let progress = backend.next("notifications/progress").await.message;
        assert_eq!(progress["params"], json!({"progressToken": "of-question", "progress": 1}));
        let withdrawn = json!({"requestId": "e9", "reason": "no longer needed"});
        call.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": withdrawn}));
        call.result(done());
    };
    let called = async {
        let mut events = client.open("tools/call", params()).await;
        let question = events.next().await.unwrap();
        let token = &question["params"]["_meta"]["progressToken"];
        let progress = json!({"progressToken": token, "progress": 1});
        let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress});
        assert_eq!(client.send(Method::POST, Some(&progress)).await.status(), 202);
        let withdrawn = events.next().await.unwrap();
        assert_eq!(withdrawn["method"], "notifications/cancelled");
        assert_eq!(withdrawn["params"], json!({"requestId": question["id"], "reason": "no longer needed"}));
        events.next().await.unwrap()
    };
    let (response, ()) = tokio::join!(called, script);
    assert_eq!(text(&response), ("done", false));
}

#[tokio::test]
async fn a_client_learns_that_the_time_of_a_workflows_question_has_passed() {
    let backend = Scripted::start(Speaks::Legacy).await;
    let polite = "compositeTools: [{name: polite, description: d, steps: [{id: q, type: elicitation, \
                  message: m, timeout: 2s, schema: {type: object, properties: {}}}]}]\n";
    let server = Server::with_urls(&[("a", backend.url())], polite, None).await;
    let client = Client::start(server.address, json!({"elicitation": {}})).await;
    let called = async {
        let mut events = client.open("tools/call", json!({"name": "polite", "arguments": {}})).await;
        let question = events.next().await.unwrap();
        assert_eq!(question["method"], "elicitation/create");
        let withdrawn = events.next().await.unwrap();
        assert_eq!(withdrawn["method"], "notifications/cancelled", "{withdrawn}");
        assert_eq!(withdrawn["params"]["requestId"], question["id"]);
        events.next().await.unwrap()
    };
    let response = in_fast_time(called).await;
    assert!(text(&response).0.contains("did not answer in time"), "{response}");
}

#[tokio::test]
async fn each_older_backend_gets_the_level_of_log_messages_of_a_modern_client() {
    let backends = [Scripted::start(Speaks::Legacy).await, Scripted::start(Speaks::Legacy).await];
    let urls = [("a", backends[0].url()), ("b", backends[1].url())];
    let server = Server::with_urls(&urls, "", None).await;
    let client = Client::modern(server.address, json!({}));
    for (name, backend) in ["a_ask", "b_ask"].into_iter().zip(&backends) {
        let meta = json!({"io.modelcontextprotocol/logLevel": "debug"});
        let params = json!({"name": name, "arguments": {}, "_meta": meta});
        let script = async {
            let level = backend.next("logging/setLevel").await;
            assert_eq!(level.message["params"]["level"], "debug");
            level.result(json!({}));
            backend.next("tools/call").await.result(done());
        };
        let (response, ()) = tokio::join!(client.request("tools/call", params), script);
        assert_eq!(text(&response), ("done", false));
    }
}
