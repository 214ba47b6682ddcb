//! A server that ends between two steps of a flow, or within one, and replicas that share a Redis.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
};

use http::StatusCode;
use skep_testkit::{IdentityProvider, Redis};

use super::{
    flow::{Flow, STEPS, Servers},
    stores::{PASSWORD, store_at},
    world::World,
};
use crate::{
    clock::Clock,
    store::{MemoryStore, Store},
};

async fn redis_store(redis: &Redis) -> Arc<dyn Store> {
    store_at(redis.address().parse().unwrap(), None).await
}

/// A server with a store, as if it had just started.
async fn started(servers: &Servers, provider: IdentityProvider, store: Arc<dyn Store>) -> World {
    World { server: servers.start(store).await, provider }
}

#[tokio::test]
async fn a_flow_with_redis_goes_on_when_the_server_is_replaced_between_any_two_steps() {
    let redis = Redis::with_password(PASSWORD).await;
    let (servers, provider) = Servers::new().await;
    let mut world = started(&servers, provider, redis_store(&redis).await).await;
    for restarted in STEPS {
        let mut flow = Flow::new("ann");
        for step in STEPS {
            if step == restarted {
                world = started(&servers, world.provider, redis_store(&redis).await).await;
            }
            let taken = flow.step(&servers, &world, step).await;
            taken.unwrap_or_else(|failure| panic!("{restarted}: {step}: {failure:?}"));
        }
        flow.reuse(&world).await;
    }
}

#[tokio::test]
async fn a_flow_in_memory_ends_with_a_page_that_says_what_to_do_when_the_server_is_replaced() {
    let (servers, provider) = Servers::new().await;
    let memory = || Arc::new(MemoryStore::new(Clock::default()));
    let mut world = started(&servers, provider, memory()).await;
    // The last step is a call: its token is accepted, and its account must be connected again.
    for restarted in &STEPS[1..STEPS.len() - 1] {
        let mut flow = Flow::new("ann");
        for step in STEPS {
            if step == *restarted {
                world = started(&servers, world.provider, memory()).await;
            }
            let Err(failure) = flow.step(&servers, &world, step).await else { continue };
            assert_eq!(step, *restarted, "{failure:?}");
            match step {
                "code" | "refresh" => {
                    let is_unknown = failure.body.contains("invalid_client");
                    assert!(failure.status == StatusCode::UNAUTHORIZED && is_unknown, "{failure:?}");
                }
                _ => {
                    assert!(failure.status.is_client_error(), "{step}: {failure:?}");
                    assert!(
                        failure.body.contains("<h1>") && failure.body.contains("start again"),
                        "{failure:?}"
                    );
                }
            }
            break;
        }
        assert!(flow.tokens.is_null() || *restarted == "refresh", "{restarted}");
    }
}

#[tokio::test]
async fn the_steps_of_a_flow_can_alternate_between_replicas() {
    let redis = Redis::with_password(PASSWORD).await;
    let (servers, provider) = Servers::new().await;
    let mut world = started(&servers, provider, redis_store(&redis).await).await;
    let mut other = servers.start(redis_store(&redis).await).await;
    for first in [0, 1] {
        let mut flow = Flow::new("ann");
        for (number, step) in STEPS.into_iter().enumerate() {
            if number % 2 == first {
                std::mem::swap(&mut world.server, &mut other);
            }
            flow.step(&servers, &world, step).await.unwrap_or_else(|failure| panic!("{step}: {failure:?}"));
        }
        // A session that one replica ends has ended for the other.
        flow.reuse(&world).await;
        std::mem::swap(&mut world.server, &mut other);
        let access = flow.tokens["access_token"].as_str().unwrap();
        assert!(world.server.claims(access).await.unwrap().is_none());
    }
}

/// Runs a request for a part of its way, as if the process ended then. `None`: it had not ended.
async fn cut_off<T>(polls: usize, request: impl Future<Output = T>) -> Option<T> {
    let (mut request, mut left) = (pin!(request), polls);
    poll_fn(|context| match request.as_mut().poll(context) {
        Poll::Ready(response) => Poll::Ready(Some(response)),
        Poll::Pending if left == 0 => Poll::Ready(None),
        Poll::Pending => {
            left -= 1;
            Poll::Pending
        }
    })
    .await
}

/// Takes steps of a flow up to a token request, which is cut off after each part of its way, and is sent again then. The client gets
/// tokens, also if the first request was given up when they were issued, and there is no second session.
async fn check_grants_once(
    steps: &[&str],
    request: impl AsyncFn(&Flow, &World) -> (StatusCode, serde_json::Value),
) {
    let redis = Redis::with_password(PASSWORD).await;
    let (servers, provider) = Servers::new().await;
    let world = started(&servers, provider, redis_store(&redis).await).await;
    let mut flow = Flow::new("ann");
    flow.step(&servers, &world, "register").await.unwrap();
    for polls in 0.. {
        for step in steps {
            flow.step(&servers, &world, step).await.unwrap();
        }
        let first = cut_off(polls, request(&flow, &world)).await;
        let second = request(&flow, &world).await;
        let Some((status, _)) = first else {
            // Cut off when the store was told that they are on their way: they may be, as far as the server knows.
            assert!(
                second.0 == StatusCode::OK || second.1["error"] == "invalid_grant",
                "{polls}: {}",
                second.1
            );
            continue;
        };
        assert_eq!((status, &second.1["error"]), (StatusCode::OK, &"invalid_grant".into()), "{polls}");
        break;
    }
}

#[tokio::test]
async fn a_code_gives_tokens_once_wherever_the_request_for_them_was_cut_off() {
    check_grants_once(&STEPS[1..5], Flow::redeem).await;
}

#[tokio::test]
async fn a_refresh_token_gives_tokens_once_wherever_the_request_for_them_was_cut_off() {
    check_grants_once(&STEPS[1..6], Flow::refresh_first).await;
}

#[tokio::test]
async fn a_login_gives_a_code_once_wherever_its_last_step_was_cut_off() {
    let redis = Redis::with_password(PASSWORD).await;
    let (servers, provider) = Servers::new().await;
    let world = started(&servers, provider, redis_store(&redis).await).await;
    let mut flow = Flow::new("ann");
    flow.step(&servers, &world, "register").await.unwrap();
    for polls in 0.. {
        for step in &STEPS[1..4] {
            flow.step(&servers, &world, step).await.unwrap();
        }
        let first = cut_off(polls, flow.step(&servers, &world, "second provider")).await;
        if let Some(first) = first {
            first.unwrap();
            let again = flow.step(&servers, &world, "second provider").await.unwrap_err();
            assert_eq!(again.status, StatusCode::BAD_REQUEST);
            break;
        }
        // The user reloads the page: the login goes on, or the page says what to do.
        if let Err(failure) = flow.step(&servers, &world, "second provider").await {
            assert!(failure.body.contains("start again"), "{polls}: {failure:?}");
        }
    }
}
