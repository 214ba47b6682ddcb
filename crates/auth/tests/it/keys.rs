//! Keys that are added, rotated and withdrawn.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use skep_auth::{AuthenticationError, Pace};
use skep_testkit::{IdentityProvider, Signing};
use tokio::time::Instant;

use crate::fixture::{CONFIGURATION, Fixture, KEYS};

const UNKNOWN: AuthenticationError =
    AuthenticationError::Token("the issuer has no key with the id that the token names (kid)");

fn quick() -> Pace {
    let pause = Duration::from_millis(200);
    Pace { pause, retry: pause, ..Pace::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rotation_under_load_loses_no_valid_request() {
    let provider = Arc::new(IdentityProvider::start().await);
    let fixture = Arc::new(Fixture::new(&provider));
    let callers: Vec<_> = (0..16)
        .map(|_| {
            let (provider, fixture) = (provider.clone(), fixture.clone());
            tokio::spawn(async move {
                for _ in 0..60 {
                    // A token is used at once, with the key with which its issuer signs now.
                    let token = provider.token(json!({}));
                    assert_eq!(fixture.subject(&token).await.as_deref(), Ok("alice"));
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            })
        })
        .collect();
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(700)).await;
        provider.rotate();
    }
    for caller in callers {
        caller.await.unwrap();
    }
    let fetches = provider.requests(KEYS).len();
    assert!((2..=4).contains(&fetches), "one at the start, and at most one for each new key: {fetches}");
}

/// The largest number of fetches since then.
fn most(pause: Duration, began: Instant) -> usize {
    (began.elapsed().as_millis() / pause.as_millis()) as usize + 2
}

/// Waits until the token is rejected for that reason.
async fn wait_until_rejected(fixture: &Fixture, token: &str, reason: AuthenticationError) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while fixture.check(token).await != Err(reason) {
        assert!(Instant::now() < deadline, "it was not rejected in time: {reason}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_flood_of_made_up_keys_does_not_flood_the_issuer() {
    let provider = IdentityProvider::start().await;
    let pause = Duration::from_secs(1);
    let pace = Pace { pause, missing: Duration::from_secs(600), ..Pace::default() };
    let fixture = Arc::new(Fixture::with(&provider, json!({}), pace));
    let began = Instant::now();
    assert!(fixture.check(&provider.token(json!({}))).await.is_ok());
    let forged = |number: usize| provider.token_with(json!({"kid": format!("forged-{number}")}), json!({}));
    let flood: Vec<_> = (0..500)
        .map(|number| {
            let (fixture, token) = (fixture.clone(), forged(number));
            tokio::spawn(async move { fixture.subject(&token).await })
        })
        .collect();
    // Meanwhile tokens with known keys pass at once, and a key that is really new is accepted.
    let good = provider.token(json!({}));
    let before = provider.requests(KEYS).len();
    assert!(fixture.check(&good).await.is_ok());
    assert_eq!(provider.requests(KEYS).len(), before);
    provider.rotate();
    assert!(fixture.check(&provider.token(json!({}))).await.is_ok());
    for forged in flood {
        assert_eq!(forged.await.unwrap(), Err(UNKNOWN));
    }
    // The same ones again: it is cached that the issuer does not have them.
    for number in 0..500 {
        assert_eq!(fixture.subject(&forged(number)).await, Err(UNKNOWN));
    }
    let fetches = provider.requests(KEYS).len();
    assert!(fetches <= most(pause, began), "{fetches} fetches in {:?}", began.elapsed());
}

#[tokio::test]
async fn the_first_requests_share_one_fetch() {
    let provider = IdentityProvider::start().await;
    provider.slow(Duration::from_millis(100));
    let fixture = Arc::new(Fixture::new(&provider));
    let began = Instant::now();
    let callers: Vec<_> = (0..50)
        .map(|number| {
            let (fixture, token) = (fixture.clone(), provider.token(json!({})));
            tokio::spawn(async move {
                // Some arrive while it is running, and need not wait for another.
                tokio::time::sleep(Duration::from_millis(number)).await;
                fixture.subject(&token).await
            })
        })
        .collect();
    for caller in callers {
        assert_eq!(caller.await.unwrap().as_deref(), Ok("alice"));
    }
    assert_eq!((provider.requests(CONFIGURATION).len(), provider.requests(KEYS).len()), (1, 1));
    assert!(began.elapsed() < Pace::default().pause);
}

#[tokio::test]
async fn cached_keys_are_used_while_the_issuer_is_unavailable_but_not_for_ever() {
    let provider = IdentityProvider::start().await;
    let pace = Pace { fresh: Duration::ZERO, stale: Duration::from_secs(4), ..quick() };
    let fixture = Fixture::with(&provider, json!({}), pace);
    let token = provider.token(json!({}));
    assert!(fixture.check(&token).await.is_ok());
    provider.down();
    tokio::time::sleep(Duration::from_millis(500)).await;
    for _ in 0..5 {
        assert!(fixture.check(&token).await.is_ok());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(provider.requests(CONFIGURATION).len() > 1, "newer keys were requested");
    wait_until_rejected(&fixture, &token, AuthenticationError::Unavailable).await;
    provider.up();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(fixture.check(&token).await.is_ok());
}

#[tokio::test]
async fn an_issuer_without_usable_keys_for_a_moment_rejects_no_token() {
    let provider = IdentityProvider::start().await;
    let pace = Pace { fresh: Duration::ZERO, ..quick() };
    let fixture = Fixture::with(&provider, json!({}), pace);
    let token = provider.token(json!({}));
    assert!(fixture.check(&token).await.is_ok());
    for keys in [json!([]), json!([{"kty": "oct", "kid": "other", "k": "c2VjcmV0"}])] {
        provider.answer(KEYS, json!({"keys": keys}));
        let before = provider.requests(KEYS).len();
        // The first of two further fetches is over.
        while provider.requests(KEYS).len() < before + 2 {
            assert_eq!(fixture.subject(&token).await.as_deref(), Ok("alice"));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(fixture.subject(&token).await.as_deref(), Ok("alice"));
    }
}

#[tokio::test]
async fn an_unavailable_issuer_is_reported_as_unavailable() {
    let provider = IdentityProvider::start().await;
    provider.down();
    let fixture = Fixture::with(&provider, json!({}), quick());
    let token = provider.token(json!({}));
    let began = Instant::now();
    for _ in 0..20 {
        assert_eq!(fixture.check(&token).await, Err(AuthenticationError::Unavailable));
    }
    let requests = provider.requests(CONFIGURATION).len();
    assert!(requests <= most(quick().pause, began), "not every caller causes a request: {requests}");
    provider.up();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(fixture.check(&token).await.is_ok());
}

#[tokio::test]
async fn a_key_that_the_issuer_withdraws_is_no_longer_trusted() {
    let provider = IdentityProvider::start().await;
    let pace = Pace { fresh: Duration::ZERO, ..quick() };
    let fixture = Fixture::with(&provider, json!({}), pace);
    let old = provider.token(json!({}));
    assert!(fixture.check(&old).await.is_ok());
    provider.rotate();
    provider.retire();
    // The first request after a while starts a fetch of the old keys in the background.
    wait_until_rejected(&fixture, &old, UNKNOWN).await;
    assert!(fixture.check(&provider.token(json!({}))).await.is_ok());
}

#[tokio::test]
async fn two_keys_with_one_id_are_both_tried_and_malformed_ones_are_skipped() {
    let provider = IdentityProvider::start().await;
    let (first, second, stranger) = (Signing::ecdsa("same"), Signing::rsa("same"), Signing::ecdsa("same"));
    let with = |mut key: Value, changes: Value| {
        key.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        key
    };
    let third = Signing::rsa("other");
    let (wrapping, verifying) = (Signing::ecdsa("wraps"), Signing::ecdsa("verifies"));
    provider.answer(
        KEYS,
        json!({"keys": [
            7, {}, {"kty": "oct", "kid": "same", "k": "c2VjcmV0"}, {"kty": "new", "kid": "same"},
            with(stranger.public(), json!({"use": "enc"})),
            with(wrapping.public(), json!({"key_ops": ["wrapKey", "encrypt"]})),
            with(verifying.public(), json!({"key_ops": ["verify"]})),
            first.public(), second.public(), with(third.public(), json!({"alg": "RS512"})),
        ]}),
    );
    let fixture = Fixture::new(&provider);
    let claims = provider.claims(json!({}));
    for (what, key, fine) in [
        ("the first", &first, true),
        ("the second", &second, true),
        ("one that is for encryption", &stranger, false),
        ("one that only encrypts", &wrapping, false),
        ("one that verifies", &verifying, true),
        ("one that is for another algorithm", &third, false),
    ] {
        assert_eq!(fixture.check(&key.token(&key.header(), &claims)).await.is_ok(), fine, "{what}");
    }
}

/// A token that was verified counts on while its key does.
#[tokio::test]
async fn a_key_that_is_replaced_under_its_id_is_no_longer_trusted() {
    let provider = IdentityProvider::start().await;
    let (first, second) = (Signing::ecdsa("same"), Signing::ecdsa("same"));
    provider.answer(KEYS, json!({"keys": [first.public()]}));
    let pace = Pace { fresh: Duration::ZERO, ..quick() };
    let fixture = Fixture::with(&provider, json!({}), pace);
    let claims = provider.claims(json!({}));
    let (old, new) = (first.token(&first.header(), &claims), second.token(&second.header(), &claims));
    assert!(fixture.check(&old).await.is_ok());
    provider.answer(KEYS, json!({"keys": [second.public()]}));
    let deadline = Instant::now() + Duration::from_secs(20);
    while fixture.check(&old).await.is_ok() {
        assert!(Instant::now() < deadline, "a token of the former key is still accepted");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(fixture.check(&new).await.is_ok());
}

/// docs/compatibility.md and docs/security.md promise these.
#[test]
fn keys_are_fetched_and_trusted_for_as_long_as_is_documented() {
    let seconds = Duration::from_secs;
    let Pace { fresh, stale, pause, .. } = Pace::default();
    assert_eq!((fresh, stale, pause), (seconds(15 * 60), seconds(24 * 3600), seconds(2)));
    assert_eq!(skep_auth::limits::ANSWER_LIFE, seconds(30));
}
