//! Requests through proxies.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use rustls::ClientConfig;
use skep_egress::{Client, Idle, Proxies};
use skep_testkit::{Tinyproxy, own_address};

use crate::{
    fake_proxy::FakeProxy,
    server::{Server, Tls},
};

const IDLE: Idle = Idle { time: Duration::from_secs(60), connections: 8 };

fn client(tls: &ClientConfig, variables: &[(&str, &str)]) -> Client {
    let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
    let proxies = Proxies::new(|name| find(name).map(|(_, value)| (*value).to_owned())).unwrap();
    Client::new(tls.clone(), proxies, IDLE).unwrap()
}

/// The response, or the innermost cause of its absence.
async fn post(client: &Client, uri: &str) -> Result<String, String> {
    let request = Request::post(uri).header("x-own", "1").header("proxy-authorization", "of the caller");
    let request = request.body(Full::new(Bytes::from_static(b"body"))).unwrap();
    match client.request(request).await {
        Ok(response) => {
            let text = response.into_body().collect().await.unwrap().to_bytes();
            Ok(String::from_utf8(text.to_vec()).unwrap())
        }
        Err(error) => {
            let mut cause: &dyn std::error::Error = &error;
            while let Some(next) = cause.source() {
                cause = next;
            }
            Err(cause.to_string())
        }
    }
}

#[tokio::test]
async fn a_proxy_gets_a_tunnel_for_https_and_the_whole_address_for_http() {
    let proxy = FakeProxy::start().await;
    let tls = Tls::new(&["mcp.example"], &["http/1.1"]);
    let (secured, plain) = (Server::start(Some(&tls)).await, Server::start(None).await);
    let address = format!("http://us%65r:secret@{}", proxy.address);
    let client = client(&tls.client, &[("HTTPS_PROXY", &address), ("http_proxy", &address)]);

    let target = format!("mcp.example:{}", secured.port);
    let seen = post(&client, &format!("https://own:password@{target}/mcp?a=1")).await.unwrap();
    assert!(seen.starts_with("HTTP/1.1 /mcp?a=1 ") && seen.ends_with(" body"), "{seen}");
    let tunnel = format!(
        "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nProxy-Authorization: Basic dXNlcjpzZWNyZXQ=\r\n\r\n"
    );
    assert_eq!(proxy.heads(), [tunnel]);

    let target = format!("mcp.example:{}", plain.port);
    let forwarded = post(&client, &format!("http://own:password@{target}/mcp?a=1")).await.unwrap();
    assert!(forwarded.starts_with("HTTP/1.1 /mcp?a=1 ") && forwarded.ends_with(" body"), "{forwarded}");
    let head = &proxy.heads()[1];
    assert!(head.starts_with(&format!("POST http://{target}/mcp?a=1 HTTP/1.1\r\n")), "{head}");
    assert!(head.contains("\r\nProxy-Authorization: Basic dXNlcjpzZWNyZXQ=\r\n"), "{head}");
    assert!(head.contains("\r\nX-Own: 1\r\n"), "names are written as usual: {head}");
    assert!(!head.contains("password"), "{head}");
    for seen in [seen, forwarded] {
        assert!(seen.contains("x-own") && !seen.contains("proxy-authorization"), "{seen}");
    }
}

#[tokio::test]
async fn a_host_in_no_proxy_and_one_on_this_machine_are_reached_directly() {
    let plain = Server::start(None).await;
    let own = own_address();
    let unused = "http://user:secret@127.0.0.1:9";
    let tls = Tls::new(&["mcp.example"], &[]);
    for (no_proxy, host) in [(own.to_string(), own.to_string()), (String::new(), "127.0.0.1".into())] {
        let client = client(&tls.client, &[("HTTP_PROXY", unused), ("NO_PROXY", &no_proxy)]);
        let seen = post(&client, &format!("http://{host}:{}/mcp", plain.port)).await.unwrap();
        assert!(!seen.contains("proxy-authorization"), "{seen}");
    }
    let client = client(&tls.client, &[("HTTP_PROXY", unused)]);
    let error = post(&client, &format!("http://{own}:{}/mcp", plain.port)).await.unwrap_err();
    assert!(!error.contains("secret"), "{error}");
}

#[tokio::test]
async fn requests_share_one_connection_where_a_host_speaks_http_2() {
    for (protocols, proxied) in [(&["h2", "http/1.1"][..], false), (&["h2"], true)] {
        let tls = Tls::new(&["mcp.example", "localhost"], protocols);
        let server = Server::start(Some(&tls)).await;
        let proxy = FakeProxy::start().await;
        let client = client(&tls.client, &[("https_proxy", &proxy.address)]);
        let host = if proxied { "mcp.example" } else { "localhost" };
        let uri = format!("https://{host}:{}/mcp", server.port);
        post(&client, &uri).await.unwrap();
        let both = futures::future::join(post(&client, &uri), post(&client, &uri)).await;
        for seen in [both.0.unwrap(), both.1.unwrap()] {
            assert!(seen.starts_with(&format!("HTTP/2.0 {uri} ")) && seen.ends_with(" body"), "{seen}");
        }
        assert_eq!((server.connections(), proxy.heads().len()), (1, usize::from(proxied)));
    }
}

#[tokio::test]
async fn a_real_proxy_forwards_requests_of_a_client_with_the_right_password() {
    let proxy = Tinyproxy::start("user", "secret").await;
    let own = own_address().to_string();
    let tls = Tls::new(&[&own], &["h2", "http/1.1"]);
    let (secured, plain) = (Server::start(Some(&tls)).await, Server::start(None).await);
    let address = format!("http://user:secret@{}", proxy.address());
    let right = client(&tls.client, &[("HTTPS_PROXY", &address), ("HTTP_PROXY", &address)]);
    let seen = post(&right, &format!("https://{own}:{}/a", secured.port)).await.unwrap();
    assert!(seen.starts_with("HTTP/2.0 ") && seen.ends_with(" body"), "{seen}");
    let seen = post(&right, &format!("http://{own}:{}/b", plain.port)).await.unwrap();
    assert!(
        seen.starts_with("HTTP/1.1 /b ") && seen.contains("\"via\"") && seen.ends_with(" body"),
        "{seen}"
    );
    assert!(!seen.contains("proxy-authorization"), "{seen}");
    let log = proxy.log();
    assert!(log.contains(&format!("CONNECT {own}:{}", secured.port)), "{log}");
    assert!(log.contains(&format!("POST http://{own}:{}/b", plain.port)), "{log}");

    let wrong = client(&tls.client, &[("HTTPS_PROXY", &address.replace("secret", "guess"))]);
    let error = post(&wrong, &format!("https://{own}:{}/a", secured.port)).await.unwrap_err();
    assert_eq!(error, format!("the egress proxy {} does not accept the credentials", proxy.address()));
}
