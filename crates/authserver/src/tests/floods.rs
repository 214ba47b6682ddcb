//! Limits on every endpoint: one address does not keep others from being served, nor do many.

use std::{
    convert::Infallible,
    net::IpAddr,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures::FutureExt;
use http::{Method, Request, StatusCode, header};
use http_body::Frame;
use http_body_util::Full;
use serde_json::Value;
use tokio::time::Instant;

use super::world::{World, authorize_path};
use crate::limits;

const FORM: &str = "application/x-www-form-urlencoded";

/// More than any limit lets pass at once.
const FLOOD: u32 = 1400;

fn address(number: u32) -> IpAddr {
    IpAddr::from((u32::from_be_bytes([198, 18, 0, 0]) + number).to_be_bytes())
}

async fn status(world: &World, method: Method, path: &str, body: &str, peer: IpAddr) -> StatusCode {
    let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, FORM);
    let body: Full<Bytes> = Full::from(body.to_owned());
    world.server.respond(request.body(body).unwrap(), peer).await.status()
}

#[tokio::test]
async fn one_address_is_limited_on_every_endpoint_and_others_are_served() {
    let world = World::new().await;
    let paths = [
        (Method::GET, "/oauth/authorize"),
        (Method::GET, "/oauth/callback"),
        (Method::POST, "/oauth/consent"),
        (Method::GET, "/oauth/connections"),
        (Method::POST, "/oauth/connections"),
        (Method::POST, "/oauth/token"),
        (Method::POST, "/oauth/revoke"),
        (Method::POST, "/oauth/register"),
        (Method::GET, "/.well-known/jwks.json"),
        (Method::GET, "/.well-known/oauth-authorization-server"),
        (Method::GET, "/.well-known/openid-configuration"),
    ];
    for (number, (method, path)) in paths.into_iter().enumerate() {
        let flooding = address(2 * number as u32);
        let mut refused = 0;
        for _ in 0..FLOOD {
            let status = status(&world, method.clone(), path, "", flooding).await;
            refused += u32::from(status == StatusCode::TOO_MANY_REQUESTS);
        }
        assert!(refused > 0, "{path}");
        let other = status(&world, method, path, "", address(2 * number as u32 + 1)).await;
        assert_ne!(other, StatusCode::TOO_MANY_REQUESTS, "{path}");
    }
}

/// Whoever knows the id of a client sends requests in its name. Its users are served, however many these are.
#[tokio::test]
async fn many_addresses_together_do_not_keep_the_users_of_a_client_from_logging_in() {
    let world = World::new().await;
    let client = world.client().await;
    let token = format!("grant_type=refresh_token&client_id={client}&refresh_token=x");
    for number in 0..FLOOD {
        let (login, peer) = (authorize_path(&client, &[]), address(number % 20));
        status(&world, Method::GET, &login, "", peer).await;
        status(&world, Method::POST, "/oauth/token", &token, peer).await;
    }
    let peer = address(FLOOD);
    assert_eq!(status(&world, Method::GET, &authorize_path(&client, &[]), "", peer).await, StatusCode::OK);
    let answer = status(&world, Method::POST, "/oauth/token", &token, peer).await;
    assert_eq!(answer, StatusCode::BAD_REQUEST);
}

/// The id of a client with a document is known to everyone, so one stranger could use up its requests.
#[tokio::test]
async fn one_address_does_not_keep_the_users_of_a_client_elsewhere_from_logging_in() {
    let world = World::new().await;
    let client = world.client().await;
    let token = format!("grant_type=refresh_token&client_id={client}&refresh_token=x");
    let (flooding, other) = (address(1), address(2));
    let login = authorize_path(&client, &[]);
    let mut refused = 0;
    for _ in 0..FLOOD {
        let statuses = [
            status(&world, Method::GET, &login, "", flooding).await,
            status(&world, Method::POST, "/oauth/token", &token, flooding).await,
        ];
        refused += statuses.iter().filter(|status| **status == StatusCode::SERVICE_UNAVAILABLE).count();
    }
    assert!(refused > 0);
    assert_eq!(status(&world, Method::GET, &login, "", other).await, StatusCode::OK);
    let answer = status(&world, Method::POST, "/oauth/token", &token, other).await;
    assert_eq!(answer, StatusCode::BAD_REQUEST);
}

/// A body that never arrives.
struct Endless;

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}

#[tokio::test]
async fn bodies_that_never_arrive_end_and_keep_no_others_out() {
    let world = World::new().await;
    tokio::time::pause();
    let paths = ["/oauth/token", "/oauth/revoke", "/oauth/register", "/oauth/consent", "/oauth/connections"];
    let mut floods: Vec<_> = paths
        .iter()
        .cycle()
        .take(2 * limits::BODIES_OF_AN_ADDRESS)
        .map(|path| {
            let request = Request::post(*path).header(header::CONTENT_TYPE, FORM).body(Endless).unwrap();
            Box::pin(world.server.respond(request, address(1)))
        })
        .collect();
    let mut refused = 0;
    for flood in &mut floods {
        if let Some(response) = flood.now_or_never() {
            assert!(
                [StatusCode::SERVICE_UNAVAILABLE, StatusCode::TOO_MANY_REQUESTS].contains(&response.status())
            );
            refused += 1;
        }
    }
    assert!((limits::BODIES_OF_AN_ADDRESS..floods.len()).contains(&refused), "{refused}");

    let large = format!("grant_type=refresh_token&refresh_token={}", "x".repeat(5000));
    let other = status(&world, Method::POST, "/oauth/token", &large, address(2)).await;
    assert_eq!(other, StatusCode::BAD_REQUEST);

    let request = Request::post("/oauth/token").body(Endless).unwrap();
    let begin = Instant::now();
    assert_eq!(world.server.respond(request, address(3)).await.status(), StatusCode::REQUEST_TIMEOUT);
    let late = begin.elapsed() - limits::BODY_TIME;
    assert!(late < Duration::from_millis(10), "{late:?}");
}

/// RFC 6749, section 5.2: errors are JSON for clients that read it. Others get what ToolHive sends.
#[tokio::test]
async fn a_client_that_reads_json_gets_each_refusal_as_json() {
    let world = World::new().await;
    let send = async |path: &str, accept: &str, length: usize| {
        let request = Request::post(path)
            .header(header::ACCEPT, accept)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(header::ORIGIN, "https://app.example");
        world.send(request.body(Full::from("x".repeat(length))).unwrap()).await
    };
    let large = limits::BODY + 1;
    for path in ["/oauth/token", "/oauth/revoke", "/oauth/register"] {
        let response = send(path, "application/json, */*", large).await;
        assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
        let body: Value = serde_json::from_slice(response.body()).unwrap();
        assert_eq!(body["error"], "invalid_request", "{path}");
        assert_eq!(response.headers()[header::ACCESS_CONTROL_ALLOW_ORIGIN], "*");
        let other = send(path, "*/*", large).await;
        assert_eq!(other.body(), "Request Entity Too Large");
    }
    let limited = loop {
        let response = send("/oauth/register", "application/json", 1).await;
        if response.status() == StatusCode::TOO_MANY_REQUESTS {
            break response;
        }
    };
    let body: Value = serde_json::from_slice(limited.body()).unwrap();
    assert_eq!(body["error"], "temporarily_unavailable");
    assert_eq!(limited.headers()[header::RETRY_AFTER], "1");
}
