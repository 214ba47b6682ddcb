//! A proxy in a network that other hosts are reached from only through an egress proxy.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use skep_testkit::{IdentityProvider, PATIENCE, Tinyproxy, own_address};

use crate::proxy::Proxy;

/// Another host, which is an MCP server, a webhook and an issuer of keys. It responds to every request with this JSON,
/// by its path, and with the headers that it has received.
fn host(responses: impl Fn(&str) -> Value + Send + 'static) -> u16 {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && stream.read_line(&mut head).unwrap_or_default() > 0 {}
            let length = head
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            stream.read_exact(&mut vec![0; length.unwrap_or_default()]).ok();
            let mut body = responses(head.split(' ').nth(1).unwrap_or_default());
            if body["result"].is_object() {
                body["result"]["head"] = head.into();
            }
            let body = body.to_string();
            let length = body.len();
            write!(
                stream.get_mut(),
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            )
            .ok();
        }
    });
    port
}

fn post(port: u16, token: &str) -> (String, Value) {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nhost: proxy\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), serde_json::from_str(body).unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_keys_and_webhooks_are_reached_through_the_egress_proxy() {
    let (egress, provider) = (Tinyproxy::start("user", "hunter2").await, IdentityProvider::start().await);
    let key = provider.public();
    let other = format!(
        "{}:{}",
        own_address(),
        host(move |path| match path {
            "/keys" => json!({"keys": [key]}),
            "/hook" => json!({"allowed": true}),
            _ => json!({"jsonrpc": "2.0", "id": 1, "result": {}}),
        })
    );
    let oidc = provider.oidc(json!({"JWKSURL": format!("http://{other}/keys")}));
    let hook = json!({
        "name": "hook", "url": format!("http://{other}/hook"), "failure_policy": "fail",
        "timeout": 10_000_000_000_u64, "tls_config": {"insecure_skip_verify": true},
    });
    let hooks = json!({"webhooks": [hook], "server_name": "fetch", "transport": "streamable-http"});
    let config = json!({
        "remote_url": format!("http://{other}/mcp"),
        "middleware_configs": [
            {"type": "auth", "parameters": {"oidc_config": oidc}},
            {"type": "validating-webhook", "parameters": hooks},
        ],
    });
    let address = format!("http://user:hunter2@{}", egress.address());
    let proxy = Proxy::with("egress", config.clone(), &[("HTTP_PROXY", &address), ("TOOLHIVE_DEBUG", "1")]);
    let (head, answer) = post(proxy.port, &provider.token(json!({})));
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}: {answer}\n{}", proxy.log());
    let received = answer["result"]["head"].as_str().unwrap().to_lowercase();
    assert!(!received.contains("proxy-authorization") && !received.contains("hunter2"), "{received}");
    let log = egress.log();
    for request in ["GET http://{}/keys", "POST http://{}/hook", "POST http://{}/mcp"] {
        let request = request.replace("{}", &other);
        assert!(log.contains(&request), "{request} is missing in {log}");
    }
    assert!(!proxy.log().contains("hunter2"), "{}", proxy.log());

    let wrong = address.replace("hunter2", "guess7");
    let proxy = Proxy::with("no-egress", config, &[("HTTP_PROXY", &wrong)]);
    let (head, _) = post(proxy.port, &provider.token(json!({})));
    assert!(head.starts_with("HTTP/1.1 503 "), "{head}");
    assert!(!proxy.log().contains("guess7"), "{}", proxy.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_virtual_server_reaches_other_hosts_through_the_egress_proxy_and_services_directly() {
    let egress = Tinyproxy::start("user", "hunter2").await;
    let initialized = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}});
    let port = host(move |_| json!({"jsonrpc": "2.0", "id": 1, "result": initialized}));
    let (far, near) = (format!("{}:{port}", own_address()), format!("localhost:{port}"));
    let backend = |name, place: &str| json!({"name": name, "url": format!("http://{place}/mcp"), "transport": "streamable-http"});
    let config = json!({
        "name": "front", "groupRef": "team", "incomingAuth": {"type": "anonymous"},
        "outgoingAuth": {"source": "inline", "default": {"type": "unauthenticated"}},
        "aggregation": {"conflictResolution": "prefix", "conflictResolutionConfig": {"prefixFormat": "{workload}_"}},
        "backends": [backend("far", &far), backend("near", &near)],
    });
    let address = format!("http://user:hunter2@{}", egress.address());
    let front = Proxy::virtual_server("egress-vmcp", &config, &[("HTTP_PROXY", &address)]);
    let start = Instant::now();
    let request = format!("POST http://{far}/mcp");
    while !egress.log().contains(&request) {
        assert!(start.elapsed() < PATIENCE, "{request} is missing in {}\n{}", egress.log(), front.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(!egress.log().contains("localhost"), "{}", egress.log());
    assert!(!front.log().contains("hunter2"), "{}", front.log());
}
