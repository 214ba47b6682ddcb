//! Ambiguous and endless HTTP requests.

use std::time::Duration;

use serde_json::json;
use skep_proxy::limits;

use super::raw::{Raw, post, status};
use crate::fixture::{Fixture, Server, call, result};

const PING: &str = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;

async fn server() -> Server {
    Server::start(|request| result(request, json!({}))).await
}

fn chunked(body: &str) -> String {
    format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len())
}

#[tokio::test]
async fn invalid_and_ambiguously_framed_requests_are_rejected() {
    let server = server().await;
    let fixture = Fixture::new(&server, json!([])).await;
    let length = format!("Content-Length: {}", PING.len());
    let many: Vec<String> = (0..200).map(|number| format!("X-{number}: 1")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).chain([length.as_str()]).collect();
    let with = |lines: &[&str]| post(lines, PING);
    let in_chunks = |body: &str| post(&["Transfer-Encoding: chunked"], body);
    let rows = [
        ("two lengths", with(&[&length, "Content-Length: 5"]), 400),
        ("two lengths in one", with(&[&format!("{length}, 5")]), 400),
        ("a length with a sign", with(&[&length.replace(": ", ": +")]), 400),
        ("a length below nothing", with(&["Content-Length: -1"]), 400),
        ("a length in another base", with(&["Content-Length: 0x28"]), 400),
        ("a length beyond all", with(&["Content-Length: 99999999999999999999999"]), 400),
        ("chunks that are not last", post(&["Transfer-Encoding: chunked, gzip"], &chunked(PING)), 400),
        ("chunks by another name", post(&["Transfer-Encoding: xchunked"], &chunked(PING)), 400),
        (
            "chunks twice, the last one not",
            post(&["Transfer-Encoding: chunked", "Transfer-Encoding: x"], ""),
            400,
        ),
        ("a chunk of no size", in_chunks("zz\r\n"), 400),
        ("a chunk of an endless size", in_chunks("fffffffffffffffff\r\n"), 400),
        ("a chunk below nothing", in_chunks("-1\r\n"), 400),
        ("a chunk without its end", in_chunks(&format!("{:x}\r\n{PING}xx", PING.len())), 400),
        ("a chunk with an endless extension", in_chunks(&format!("1;{}", "x".repeat(20 << 10))), 400),
        ("a folded line", with(&[&length, "X-A: 1", " folded"]), 400),
        ("a bare CR", with(&[&length, "X-A: 1\rX-B: 2"]), 400),
        ("a NUL", with(&[&length, "X-A: 1\0"]), 400),
        ("a space before the colon", with(&["Content-Length : 40"]), 400),
        ("a line without a name", with(&[&length, ": 1"]), 400),
        ("a line without a colon", with(&[&length, "nothing"]), 400),
        ("a name with a space", with(&[&length, "X A: 1"]), 400),
        ("two hosts", with(&[&length, "Host: other"]), 400),
        ("too many headers", with(&many), 431),
        ("no HTTP", "\x16\x03\x01\x02\x00\r\n\r\n".into(), 400),
        ("HTTP of 1991", "GET /mcp\r\n\r\n".into(), 400),
        ("chunks in HTTP of 1996", in_chunks(&chunked(PING)).replacen("HTTP/1.1", "HTTP/1.0", 1), 400),
    ];
    for (what, bytes, expected) in rows {
        let mut raw = Raw::new(fixture.address).await;
        raw.send(bytes).await;
        let reply = raw.reply().await.unwrap_or_else(|| panic!("{what}: no response"));
        assert_eq!(reply.status, expected, "{what}: {}", reply.head);
        assert!(raw.ends().await, "{what}: nothing may follow on the connection");
    }
    assert!(server.requests().is_empty(), "{:?}", server.requests());
    assert_eq!(status(fixture.address, with(&[&length])).await, Some(200), "the proxy still serves");
}

#[tokio::test]
async fn headers_that_are_too_long_are_rejected() {
    let server = server().await;
    let fixture = Fixture::new(&server, json!([])).await;
    let mut raw = Raw::new(fixture.address).await;
    let line = format!("X-Long: {}\r\n", "x".repeat(1000));
    let mut sent = 0;
    // Until the connection ends, and the response may be lost with it.
    while sent < 64 << 20 && raw.try_send(if sent == 0 { "POST /mcp HTTP/1.1\r\n" } else { &line }).await {
        sent += line.len();
    }
    assert!(sent < 64 << 20, "the proxy did not read all of it");
    assert!(matches!(raw.reply().await.map(|reply| reply.status), None | Some(431)));
    assert!(server.requests().is_empty());
    let fits = format!("X-Long: {}", "x".repeat(limits::HEAD / 2));
    let ping = post(&[&fits, &format!("Content-Length: {}", PING.len())], PING);
    assert_eq!(status(fixture.address, ping).await, Some(200), "a long token has room");
}

#[tokio::test]
async fn a_head_has_the_documented_length_and_no_byte_more() {
    let server = server().await;
    let fixture = Fixture::new(&server, json!([])).await;
    let length = format!("Content-Length: {}", PING.len());
    let with = |fill: usize| post(&[&length, &format!("X-Long: {}", "x".repeat(fill))], PING);
    let rest = with(0).find("\r\n\r\n").unwrap() + "\r\n\r\n".len();
    for (more, expected) in [(0, 200), (1, 431), (limits::HEAD / 2, 431)] {
        let answered = status(fixture.address, with(limits::HEAD - rest + more)).await;
        assert_eq!(answered, Some(expected), "{more} more");
    }
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_request_that_is_parsed_leniently_is_forwarded_with_clean_framing() {
    let server = server().await;
    let fixture = Fixture::new(&server, json!([])).await;
    let length = format!("Content-Length: {}", PING.len());
    let smuggled = post(&["Content-Length: 0"], "");
    let rows = [
        ("the same length twice", post(&[&length, &length], PING)),
        ("lines that end in LF", post(&[&length], PING).replace("\r\n", "\n")),
        ("chunks", post(&["Transfer-Encoding: chunked"], &chunked(PING))),
        (
            "a length that would hide a request, then chunks",
            post(&["Content-Length: 400", "Transfer-Encoding: chunked"], &(chunked(PING) + &smuggled)),
        ),
        (
            "chunks, then a length that would hide a request",
            post(&["Transfer-Encoding: chunked", "Content-Length: 400"], &(chunked(PING) + &smuggled)),
        ),
        ("no host", post(&[&length], PING).replace("Host: files\r\n", "")),
    ];
    let count = rows.len();
    for (what, bytes) in rows {
        let ends = bytes.contains("chunked");
        let mut raw = Raw::new(fixture.address).await;
        raw.send(bytes).await;
        let reply = raw.reply().await.unwrap_or_else(|| panic!("{what}: no response"));
        assert_eq!(reply.status, 200, "{what}");
        if ends {
            assert!(reply.head.contains("connection: close"), "{what}");
            assert!(raw.ends().await, "{what}: what follows is no request");
        }
    }
    let requests = server.requests();
    assert_eq!(requests.len(), count);
    for request in requests {
        assert_eq!((&*request.body, request.header("transfer-encoding")), (PING.as_bytes(), None));
        assert_eq!(request.headers.get_all("content-length").iter().count(), 1);
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_is_rejected_by_its_length_or_once_it_exceeds_the_limit() {
    let server = server().await;
    let fixture =
        Fixture::new(&server, json!([{"type": "bodylimit", "parameters": {"max_bytes": 100}}])).await;
    for (what, bytes) in [
        ("by its length, of which nothing is sent", post(&["Content-Length: 101"], "")),
        ("by an absurd length", post(&["Content-Length: 18446744073709551613"], "")),
        (
            "in chunks without end",
            post(&["Transfer-Encoding: chunked"], &format!("c8\r\n{}", "x".repeat(200))),
        ),
        (
            "in many chunks",
            post(&["Transfer-Encoding: chunked"], &"32\r\n{}\r\n".replace("{}", &"x".repeat(50)).repeat(3)),
        ),
    ] {
        let mut raw = Raw::new(fixture.address).await;
        raw.send(bytes).await;
        assert_eq!(raw.reply().await.unwrap().status, 413, "{what}");
        assert!(raw.ends().await, "{what}");
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn slow_headers_and_a_slow_body_time_out() {
    let server = server().await;
    let fixture = Fixture::new(&server, json!([])).await;
    let (mut head, mut body) = (Raw::new(fixture.address).await, Raw::new(fixture.address).await);
    head.send("POST /mcp HTTP/1.1\r\nHost: fi").await;
    let whole = post(&["Content-Length: 1000"], "{\"jsonrpc\":");
    body.send(&whole).await;
    // The proxy has read what there is; then time passes at once.
    tokio::time::sleep(Duration::from_millis(300)).await;
    tokio::time::pause();
    let begin = tokio::time::Instant::now();
    assert!(head.ends().await, "there is no response without a request");
    let head_time = begin.elapsed().as_secs();
    assert!((14..30).contains(&head_time), "{head_time} s");
    assert_eq!(body.reply().await.unwrap().status, 408);
    assert!(body.ends().await);
    let body_time = begin.elapsed().as_secs();
    assert!((29..60).contains(&body_time), "{body_time} s");
    tokio::time::resume();
    assert!(server.requests().is_empty());
    let ping = call("ping", json!({}));
    assert_eq!(fixture.post(&[], &ping).await.status, 200);
}
