//! A thousand concurrent sessions.

use std::time::Duration;

use futures::future::join_all;
use http::{Method, StatusCode};
use serde_json::json;

use super::{PATIENCE, backend::Backend, sockets, tasks, until};
use crate::{
    fixture::{Fixture, call},
    stdio::{
        client::{Client, Events},
        fake::Fake,
    },
};

const SESSIONS: usize = 1_000;
/// How many idle connections to a server are kept for the next request.
const IDLE: usize = 256;

/// All clients start, listen and call at the same time. Then each has a session and a stream.
async fn crowd(fixture: &Fixture) -> Vec<(Client<'_>, Events)> {
    let all = (0..SESSIONS).map(|number| async move {
        let client = Client::new(fixture).await;
        let stream = client.listen().await;
        for turn in 0..2 {
            let params = json!({"number": number, "turn": turn});
            let answer = client.call("echo", params.clone()).await;
            assert_eq!(answer["result"]["echo"], params, "each gets its own response");
        }
        (client, stream)
    });
    tokio::time::timeout(2 * PATIENCE, join_all(all)).await.expect("all get a response")
}

/// Half of them end their sessions, the others disconnect.
async fn leave(fixture: &Fixture, crowd: Vec<(Client<'_>, Events)>, deleted: StatusCode) {
    let ids: Vec<_> = crowd.iter().map(|(client, _)| client.session.clone()).collect();
    drop(crowd);
    let (ended, disconnected) = ids.split_at(SESSIONS / 2);
    for id in ended {
        let answer = fixture.send(Method::DELETE, "/mcp", &[("mcp-session-id", id)], b"").await;
        assert_eq!(answer.status, deleted);
    }
    let status = async |id| fixture.post(&[("mcp-session-id", id)], &call("echo", json!({}))).await.status;
    assert_eq!(status(&ended[0]).await, StatusCode::NOT_FOUND);
    assert_eq!(status(&disconnected[0]).await, StatusCode::OK, "a client may return to its session");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_sessions_of_an_http_server_are_served_and_leave_nothing() {
    let backend = Backend::start().await;
    let fixture = Fixture::before(backend.address, json!([])).await;
    assert_eq!(fixture.post(&[], &call("echo", json!({}))).await.status, StatusCode::OK);
    let before = tasks();
    let mut crowd = crowd(&fixture).await;
    for (_, stream) in &mut crowd {
        assert_eq!(stream.next().await, Some(json!({"jsonrpc": "2.0", "method": "n"})));
    }
    assert_eq!((backend.streams(), backend.calls()), (SESSIONS, 2 * SESSIONS + 1));
    leave(&fixture, crowd, StatusCode::OK).await;
    until("the server still writes to a stream without a reader", || backend.streams() == 0).await;
    until("too many idle connections to the server are kept", || backend.connections() <= IDLE).await;
    // Each of those that are kept for the next request is a task here and one at the server.
    let address = fixture.address;
    let fixture = fixture.without_client();
    until("sockets of clients are left", || sockets(address) == 0).await;
    until("tasks are left", || tasks() <= before + 2 * backend.connections()).await;
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_sessions_of_a_stdio_server_are_served_and_leave_nothing() {
    let fake = Fake::echo();
    let fixture = fake.configured(json!({}), Duration::from_secs(60)).await;
    let first = Client::new(&fixture).await;
    let before = tasks();
    let mut crowd = crowd(&fixture).await;
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    fake.send(changed.clone());
    for (_, stream) in &mut crowd {
        assert_eq!(stream.next().await.as_ref(), Some(&changed), "every stream receives it");
    }
    leave(&fixture, crowd, StatusCode::NO_CONTENT).await;
    assert_eq!(first.call("echo", json!({})).await["id"], 7);
    let address = fixture.address;
    drop(first);
    let fixture = fixture.without_client();
    until("sockets of clients are left", || sockets(address) == 0).await;
    until("tasks are left", || tasks() <= before).await;
    fixture.end().await;
}
