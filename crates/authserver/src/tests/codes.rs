//! Codes.

use std::time::Duration;

use futures::future::join_all;
use http::StatusCode;
use skep_testkit::{IdentityProvider, Redis};

use super::{
    flow::{Flow, STEPS, Servers},
    stores::{PASSWORD, store_at},
    world::{Visitor, World},
};
use crate::rates::Rates;

#[tokio::test]
async fn of_many_uses_of_a_code_at_once_exactly_one_gets_tokens() {
    let world = World::new().await;
    let client = world.client().await;
    for _ in 0..10 {
        let code = world.log_in(&mut Visitor::default(), &client, &[]).await;
        let results = join_all((0..8).map(|_| world.redeem(&client, &code, &[]))).await;
        assert_eq!(results.iter().filter(|(status, _)| *status == StatusCode::OK).count(), 1);
    }
}

#[tokio::test]
async fn a_code_that_is_used_twice_ends_its_session() {
    let world = World::new().await;
    let client = world.client().await;
    let code = world.log_in(&mut Visitor::default(), &client, &[]).await;
    let (_, tokens) = world.redeem(&client, &code, &[]).await;
    let access = tokens["access_token"].as_str().unwrap();
    assert!(world.server.claims(access).await.unwrap().is_some());
    let (status, body) = world.redeem(&client, &code, &[]).await;
    assert_eq!((status, &*body["error"].to_string()), (StatusCode::BAD_REQUEST, "\"invalid_grant\""));
    assert_eq!(world.server.claims(access).await.unwrap(), None);
    let (_, body) = world.refresh(&client, tokens["refresh_token"].as_str().unwrap(), &[]).await;
    assert_eq!(body["error"], "invalid_grant");
}

/// A client that sends its request twice at once, or something on its way that does, reaches two replicas. They give it the same.
#[tokio::test]
async fn a_code_that_reaches_two_replicas_at_once_ends_no_session() {
    let redis = Redis::with_password(PASSWORD).await;
    let (servers, provider) = Servers::new().await;
    let store = async || store_at(redis.address().parse().unwrap(), None).await;
    let mut world = World { server: servers.start(store().await).await, provider };
    let other =
        World { server: servers.start(store().await).await, provider: IdentityProvider::start().await };
    for round in 0..25 {
        world.server.rates = Rates::default();
        let mut flow = Flow::new("ann");
        for step in &STEPS[..5] {
            flow.step(&servers, &world, step).await.unwrap();
        }
        let (one, two) = tokio::join!(flow.redeem(&world), flow.redeem(&other));
        let granted: Vec<_> =
            [&one, &two].into_iter().filter(|(status, _)| *status == StatusCode::OK).collect();
        assert!(!granted.is_empty(), "{round}: {one:?} {two:?}");
        for (_, tokens) in &granted {
            assert_eq!(tokens["refresh_token"], granted[0].1["refresh_token"], "{round}");
            let access = tokens["access_token"].as_str().unwrap();
            assert!(world.server.claims(access).await.unwrap().is_some(), "{round}: its session has ended");
        }
    }
}

/// Who sees codes, in a log or in another application, does not know the verifier.
#[tokio::test]
async fn a_spent_code_without_its_verifier_or_client_ends_no_session() {
    let world = World::new().await;
    let (client, other) = (world.client().await, world.client().await);
    let code = world.log_in(&mut Visitor::default(), &client, &[]).await;
    let (_, tokens) = world.redeem(&client, &code, &[]).await;
    let wrong = "wrong-verifier-0123456789-0123456789-0123456789";
    for (client, verifier) in [(&client, wrong), (&client, ""), (&other, wrong), (&other, "")] {
        let (_, body) = world.redeem(client, &code, &[("code_verifier", verifier)]).await;
        assert_eq!(body["error"], "invalid_grant");
        let access = tokens["access_token"].as_str().unwrap();
        assert!(world.server.claims(access).await.unwrap().is_some(), "its session has ended");
    }
}

/// CVE-2026-28513: a code must be bound to its client and to its time, both.
#[tokio::test]
async fn a_code_is_bound_to_client_redirect_resource_verifier_and_time() {
    let world = World::new().await;
    let (client, other) = (world.client().await, world.client().await);
    let code = world.log_in(&mut Visitor::default(), &client, &[]).await;
    for (client, changes, error) in [
        (&other, &[][..], "invalid_grant"),
        (&client, &[("redirect_uri", "http://127.0.0.1:7778/cb")], "invalid_grant"),
        (&client, &[("redirect_uri", "")], "invalid_grant"),
        (&client, &[("resource", "https://other.example/mcp")], "invalid_target"),
    ] {
        let (_, body) = world.redeem(client, &code, changes).await;
        assert_eq!(body["error"], error, "{changes:?}");
    }
    assert_eq!(world.redeem(&client, &code, &[]).await.0, StatusCode::OK, "a slip has spent the code");
    for wrong in ["", "wrong-verifier-0123456789-0123456789-0123456789"] {
        let code = world.log_in(&mut Visitor::default(), &client, &[]).await;
        assert_eq!(
            world.redeem(&client, &code, &[("code_verifier", wrong)]).await.1["error"],
            "invalid_grant"
        );
        assert_eq!(
            world.redeem(&client, &code, &[]).await.1["error"],
            "invalid_grant",
            "it may be guessed again"
        );
    }
    let code = world.log_in(&mut Visitor::default(), &client, &[]).await;
    world.server.clock.advance(Duration::from_secs(601));
    assert_eq!(world.redeem(&client, &code, &[]).await.1["error"], "invalid_grant");
}

#[tokio::test]
async fn a_token_request_with_a_parameter_twice_is_refused() {
    let world = World::new().await;
    let client = world.client().await;
    let code = world.log_in(&mut Visitor::default(), &client, &[]).await;
    let twice = [("code", &*code), ("code", "x")];
    assert_eq!(world.redeem(&client, &code, &twice).await.1["error"], "invalid_request");
}
