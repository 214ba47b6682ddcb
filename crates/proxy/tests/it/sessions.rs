//! Sessions: of clients, and of the server behind them.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use http::{Method, StatusCode};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use crate::fixture::{Fixture, Server, call, initialize, initialize_response, result, session_id, status};

/// A server that knows its one session, `one`, until that is ended. It responds to others with the status `unknown`.
async fn with_one_session(unknown: u16) -> Server {
    let ended = AtomicBool::new(false);
    Server::start(move |request| match request.json()["method"].as_str() {
        Some("initialize") => initialize_response(request, "one"),
        _ if request.header("mcp-session-id") != Some("one") || ended.load(Ordering::Relaxed) => {
            status(unknown)
        }
        _ if request.method == Method::DELETE => {
            ended.store(true, Ordering::Relaxed);
            status(200)
        }
        _ => result(request, json!({})),
    })
    .await
}

const WITHIN: [(&str, &str); 1] = [("mcp-session-id", "one")];

#[tokio::test]
async fn a_session_exists_from_initialize_to_delete_and_unknown_ones_are_rejected() {
    let server = with_one_session(404).await;
    let fixture = Fixture::new(&server, json!([])).await;
    let answer = fixture.post(&[], &initialize()).await;
    let id = session_id(&answer);
    assert!(id.starts_with("one~"), "{id}");
    let list = call("tools/list", json!({}));
    for id in [&id, "one"] {
        assert_eq!(fixture.post(&[("mcp-session-id", id)], &list).await.status, StatusCode::OK);
    }
    assert!(
        server
            .requests()
            .iter()
            .all(|request| matches!(request.header("mcp-session-id"), None | Some("one")))
    );

    let forged = fixture.post(&[("mcp-session-id", "two")], &list).await;
    assert_eq!(
        (forged.status, forged.json()["error"]["code"].clone()),
        (StatusCode::NOT_FOUND, json!(-32001))
    );
    assert_eq!(forged.json()["id"], 7);
    let within = [("mcp-session-id", &*id)];
    assert_eq!(fixture.send(Method::DELETE, "/mcp", &within, b"").await.status, StatusCode::OK);
    let before = server.requests().len();
    assert_eq!(fixture.post(&within, &list).await.status, StatusCode::NOT_FOUND);
    assert_eq!(fixture.send(Method::DELETE, "/mcp", &within, b"").await.status, StatusCode::NOT_FOUND);
    assert_eq!(server.requests().len(), before, "it is not restored");
}

/// The proxy is replaced, and the server is not.
#[tokio::test]
async fn a_session_of_an_anonymous_caller_outlives_the_proxy_that_started_it() {
    for unknown in [404, 400] {
        let server = with_one_session(unknown).await;
        let list = call("tools/list", json!({}));
        Fixture::new(&server, json!([])).await.post(&[], &initialize()).await;
        // Without middlewares, and with the one that makes every caller the local user.
        for middleware in [json!([]), json!([{"type": "auth", "parameters": {}}])] {
            let successor = Fixture::new(&server, middleware).await;
            assert_eq!(successor.post(&WITHIN, &list).await.status, StatusCode::OK);
            let forged = successor.post(&[("mcp-session-id", "two")], &list).await;
            assert_eq!(
                (forged.status.as_u16(), forged.json()["error"]["code"].clone()),
                (404, json!(-32001))
            );
        }
        let last = Fixture::new(&server, json!([])).await;
        assert_eq!(last.send(Method::DELETE, "/mcp", &WITHIN, b"").await.status, StatusCode::OK);
        assert_eq!(last.post(&WITHIN, &list).await.status, StatusCode::NOT_FOUND);
    }
}

/// A server that numbers the sessions that it starts, and loses the first as soon as it has started.
async fn that_loses_its_first_session() -> Server {
    let starts = AtomicUsize::new(0);
    Server::start(move |request| match request.json()["method"].as_str() {
        Some("initialize") => {
            initialize_response(request, &format!("s-{}", starts.fetch_add(1, Ordering::Relaxed)))
        }
        Some("notifications/initialized") => status(202),
        _ if request.header("mcp-session-id") == Some("s-0") => status(404),
        _ => result(request, json!({"session": request.header("mcp-session-id")})),
    })
    .await
}

#[tokio::test]
async fn a_call_whose_own_response_has_the_status_of_a_lost_session_runs_once() {
    for failed in [404, 400] {
        let server = Server::start(move |request| match request.json()["method"].as_str() {
            Some("initialize") => initialize_response(request, "s-0"),
            Some("tools/call") => status(failed),
            _ => result(request, json!({})),
        })
        .await;
        let fixture = Fixture::new(&server, json!([])).await;
        let id = session_id(&fixture.post(&[], &initialize()).await);
        let within = [("mcp-session-id", &*id)];
        let answer = fixture.post(&within, &call("tools/call", json!({"name": "pay"}))).await;
        assert_eq!(answer.status.as_u16(), failed);
        let of = |method: &str| {
            let requests = server.requests().into_iter();
            requests.filter(|request| request.json()["method"] == *method).count()
        };
        assert_eq!((of("tools/call"), of("initialize")), (1, 1), "the session goes on");
    }
}

/// The proxy has been replaced, and the client's id does not carry its `initialize`.
#[tokio::test]
async fn a_call_whose_own_response_has_the_status_of_an_unknown_session_gets_it() {
    for failed in [404, 400] {
        let server = Server::start(move |request| match request.json()["method"].as_str() {
            Some("tools/call") => status(failed),
            _ => result(request, json!({})),
        })
        .await;
        let fixture = Fixture::new(&server, json!([])).await;
        let answer = fixture.post(&WITHIN, &call("tools/call", json!({"name": "pay"}))).await;
        assert_eq!((answer.status.as_u16(), &*answer.body), (failed, &b""[..]));
    }
}

#[tokio::test]
async fn a_session_that_the_server_has_lost_is_restored_and_the_request_resent() {
    let server = that_loses_its_first_session().await;
    let fixture = Fixture::new(&server, json!([])).await;
    let id = session_id(&fixture.post(&[], &initialize()).await);
    let within = [("mcp-session-id", &*id)];
    let answer = fixture.post(&within, &call("tools/list", json!({}))).await;
    assert_eq!((answer.status, answer.json()["result"]["session"].clone()), (StatusCode::OK, json!("s-1")));
    let methods: Vec<_> = server
        .requests()
        .iter()
        .map(|request| request.json()["method"].as_str().unwrap().to_owned())
        .collect();
    let expected =
        ["initialize", "tools/list", "ping", "initialize", "notifications/initialized", "tools/list"];
    assert_eq!(methods, expected);
    assert_eq!(
        server.requests()[3].body,
        server.requests()[0].body,
        "it is started as it was the first time"
    );

    let answer = fixture.post(&within, &call("tools/list", json!({}))).await;
    assert_eq!(answer.json()["result"]["session"], "s-1", "the client keeps its id");
    assert_eq!(server.requests().len(), 7);
}

#[tokio::test]
async fn a_lost_session_is_restored_once_for_all_requests_that_notice_it() {
    let server = that_loses_its_first_session().await;
    let fixture = Fixture::new(&server, json!([])).await;
    let id = session_id(&fixture.post(&[], &initialize()).await);
    // A successor knows nothing of the session.
    let successor = Fixture::new(&server, json!([])).await;
    for proxy in [&fixture, &successor] {
        let before =
            server.requests().iter().filter(|request| request.json()["method"] == "initialize").count();
        let within = [("mcp-session-id", &*id)];
        let list = call("tools/list", json!({}));
        let answers = futures::future::join_all((0..16).map(|_| proxy.post(&within, &list))).await;
        let sessions: std::collections::HashSet<String> =
            answers.iter().map(|answer| answer.json()["result"]["session"].to_string()).collect();
        assert_eq!(sessions.len(), 1, "{sessions:?}");
        let after =
            server.requests().iter().filter(|request| request.json()["method"] == "initialize").count();
        assert_eq!(after - before, 1);
    }
}

/// A server that forgets each session when another starts, and numbers the sessions that it starts.
async fn with_the_last_session() -> Server {
    let started = AtomicUsize::new(0);
    Server::start(move |request| match request.json()["method"].as_str() {
        Some("initialize") => {
            initialize_response(request, &format!("s-{}", started.fetch_add(1, Ordering::Relaxed)))
        }
        _ => {
            let last = format!("s-{}", started.load(Ordering::Relaxed).wrapping_sub(1));
            match request.header("mcp-session-id") {
                Some(id) if id == last => result(request, json!({"session": last})),
                _ => status(404),
            }
        }
    })
    .await
}

/// Proxy and server are replaced: what the first proxy knew of the session is lost.
#[tokio::test]
async fn a_session_is_restored_by_a_proxy_that_never_saw_it() {
    let server = with_the_last_session().await;
    let first = Fixture::new(&server, json!([])).await;
    let id = session_id(&first.post(&[], &initialize()).await);
    let within = [("mcp-session-id", &*id)];
    let list = call("tools/list", json!({}));
    // Another client starts a session, so the server has lost the first one.
    Fixture::new(&server, json!([])).await.post(&[], &initialize()).await;
    let restored = first.post(&within, &list).await;
    assert_eq!(restored.json()["result"]["session"], "s-2", "the first proxy restores it");

    for (proxy, expected) in [("second", "s-3"), ("third", "s-4")] {
        let successor = Fixture::new(&server, json!([])).await;
        for _ in 0..2 {
            let answer = successor.post(&within, &list).await;
            assert_eq!(answer.status, StatusCode::OK, "{proxy}");
            assert_eq!(answer.json()["result"]["session"], expected, "{proxy}");
        }
    }
    let starts: Vec<_> =
        server.requests().into_iter().filter(|request| request.json()["method"] == "initialize").collect();
    assert_eq!(starts.len(), 5);
    assert!(starts.iter().all(|start| start.body == starts[0].body), "each is started as the client did");
}

/// A client with a long `initialize` gets the id of the server, and its `initialize` stays in memory.
#[tokio::test]
async fn a_long_initialize_is_stored_and_not_carried() {
    let server = with_the_last_session().await;
    let fixture = Fixture::new(&server, json!([])).await;
    let client = json!({"name": "x".repeat(1_000), "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    let id = session_id(&fixture.post(&[], &call("initialize", params)).await);
    assert_eq!(id, "s-0");
    fixture.post(&[], &initialize()).await;
    let answer = fixture.post(&[("mcp-session-id", &id)], &call("tools/list", json!({}))).await;
    assert_eq!(answer.json()["result"]["session"], "s-2");
}

/// A server that ends that often, each time once it has read a request, and is started again. It counts what it has read.
async fn ending(ends: usize) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, read) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let count = read.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 1 << 16];
            assert_ne!(stream.read(&mut request).await.unwrap(), 0);
            if count.fetch_add(1, Ordering::Relaxed) < ends {
                continue;
            }
            let body = r#"{"jsonrpc":"2.0","id":7,"result":{}}"#;
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
            let answer = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (address, read)
}

#[tokio::test]
async fn an_idempotent_request_is_sent_again_when_the_server_ends_and_others_are_not() {
    for (message, ends, expected, times) in [
        (initialize(), 1, StatusCode::OK, 2),
        (initialize(), 2, StatusCode::OK, 3),
        (initialize(), usize::MAX, StatusCode::BAD_GATEWAY, 4),
        (call("tools/list", json!({})), 1, StatusCode::OK, 2),
        (call("tools/call", json!({"name": "pay"})), 1, StatusCode::BAD_GATEWAY, 1),
    ] {
        let (address, read) = ending(ends).await;
        let fixture = Fixture::before(address, json!([])).await;
        assert_eq!(fixture.post(&[], &message).await.status, expected, "{message}");
        assert_eq!(read.load(Ordering::Relaxed), times, "{message}");
    }
}
