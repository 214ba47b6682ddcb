//! Validation of tokens.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use skep_auth::AuthenticationError;
use skep_testkit::{IdentityProvider, Signing};

use crate::fixture::{Fixture, KEYS};

fn part(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

/// The same token with another part.
fn with_part(token: &str, number: usize, part: &str) -> String {
    let mut parts: Vec<_> = token.split('.').collect();
    parts[number] = part;
    parts.join(".")
}

#[tokio::test]
async fn a_valid_token_yields_the_identity() {
    let provider = IdentityProvider::start().await;
    let fixture = Fixture::new(&provider);
    let act = json!({"sub": "agent"});
    let token = provider.token(json!({"email": "a@b.example", "tsid": "internal", "act": act}));
    let identity = fixture.check(&token).await.unwrap();
    assert_eq!(identity.subject, "alice");
    assert_eq!(identity.claims["email"], "a@b.example");
    assert_eq!(identity.claims.get("tsid"), None);
    assert_eq!(identity.delegation.actors[0].subject.as_deref(), Some("agent"));
    for scheme in ["bearer", "BEARER"] {
        assert!(fixture.headers(&[&format!("{scheme} {token}")]).await.is_ok(), "{scheme}");
    }
    provider.adopt(Signing::rsa("rsa"));
    assert_eq!(fixture.subject(&provider.token(json!({}))).await.as_deref(), Ok("alice"));
}

#[tokio::test]
async fn a_hostile_token_is_rejected_with_a_reason() {
    let provider = IdentityProvider::start().await;
    let fixture = Fixture::new(&provider);
    let now = provider.claims(json!({}))["iat"].as_u64().unwrap();
    let good = provider.token(json!({}));
    assert!(fixture.check(&good).await.is_ok());
    let stranger = Signing::ecdsa("key-1");
    let admin = part(&provider.claims(json!({"sub": "admin"})));
    let signed = |claims: Value| provider.token(claims);
    let headed = |header: Value| provider.token_with(header, json!({}));
    let algorithm = "the token must be signed with RSA or ECDSA";
    let signature = "the signature of the token is wrong";
    let table = [
        ("no algorithm, no signature", with_part(&headed(json!({"alg": "none"})), 2, ""), algorithm),
        ("no algorithm, and a signature", headed(json!({"alg": "none"})), algorithm),
        ("no algorithm, in another case", headed(json!({"alg": "nOnE"})), algorithm),
        ("an algorithm that shares its key", headed(json!({"alg": "HS256"})), algorithm),
        ("an algorithm that is null", headed(json!({"alg": null})), algorithm),
        ("an algorithm of another kind of key", headed(json!({"alg": "RS256"})), signature),
        ("an algorithm of another curve", headed(json!({"alg": "ES384"})), signature),
        (
            "an extension",
            headed(json!({"crit": ["b64"], "b64": false})),
            "the token has an extension that is not supported",
        ),
        ("no key", headed(json!({"kid": null})), "the token does not name the key it is signed with (kid)"),
        (
            "a key ID that is not a string",
            headed(json!({"kid": 1})),
            "the token does not name the key it is signed with (kid)",
        ),
        (
            "a stranger's key under a known id",
            stranger.token(&stranger.header(), &provider.claims(json!({}))),
            signature,
        ),
        ("another payload", with_part(&good, 1, &admin), signature),
        ("another signature", with_part(&good, 2, &"A".repeat(86)), signature),
        ("no signature", with_part(&good, 2, ""), signature),
        ("another issuer", signed(json!({"iss": "https://evil.example"})), "the token is of another issuer"),
        ("no issuer", signed(json!({"iss": null})), "the token is of another issuer"),
        ("another audience", signed(json!({"aud": ["hr", "crm2"]})), "the token is for another audience"),
        ("no audience", signed(json!({"aud": null})), "the token is for another audience"),
        ("expired", signed(json!({"exp": now - 1})), "the token has expired"),
        ("without expiration time", signed(json!({"exp": null})), "the token has no expiration time (exp)"),
        (
            "an expiration time in words",
            signed(json!({"exp": "never"})),
            "the expiration time of the token (exp) is not a number",
        ),
        ("not yet", signed(json!({"nbf": now + 60})), "the token is not valid yet"),
        ("no subject", signed(json!({"sub": null})), "the token has no subject (sub)"),
        (
            "a subject that is not a string",
            signed(json!({"sub": {"a": 1}})),
            "the token has no subject (sub)",
        ),
        ("not a JWT", "opaque".into(), "the token is not a JWT"),
        ("three parts of nothing", "a.b.c".into(), "the token is not a JWT"),
        ("a part too many", format!("{good}.x"), "the token is not a JWT"),
    ];
    for (what, token, reason) in table {
        assert_eq!(fixture.check(&token).await, Err(AuthenticationError::Token(reason)), "{what}");
    }
    assert_eq!(provider.requests(KEYS).len(), 1, "none of them caused a fetch");
}

#[tokio::test]
async fn a_token_signed_with_the_public_key_as_a_secret_is_rejected() {
    let provider = IdentityProvider::start().await;
    provider.adopt(Signing::rsa("rsa"));
    let fixture = Fixture::new(&provider);
    let public = provider.public();
    let message =
        format!("{}.{}", part(&json!({"alg": "HS256", "kid": "rsa"})), part(&provider.claims(json!({}))));
    for secret in [public["n"].as_str().unwrap().as_bytes().to_vec(), public.to_string().into_bytes()] {
        let key = jsonwebtoken::EncodingKey::from_secret(&secret);
        let signature =
            jsonwebtoken::crypto::sign(message.as_bytes(), &key, jsonwebtoken::Algorithm::HS256).unwrap();
        let result = fixture.check(&format!("{message}.{signature}")).await;
        assert_eq!(result, Err(AuthenticationError::Token("the token must be signed with RSA or ECDSA")));
    }
}

#[tokio::test]
async fn a_request_has_one_token_of_a_sensible_length() {
    let provider = IdentityProvider::start().await;
    let fixture = Fixture::new(&provider);
    let good = format!("Bearer {}", provider.token(json!({})));
    let huge = format!("Bearer {}", provider.token(json!({"groups": "g".repeat(40 << 10)})));
    let table: [(&[&str], &str); 5] = [
        (&[], "the request has no token"),
        (&[&good, &good], "the request has more than one Authorization header"),
        (&["Basic YTpi"], "the Authorization header must be Bearer and a token"),
        (&["Bearer"], "the Authorization header must be Bearer and a token"),
        (&[&huge], "the token is too long"),
    ];
    for (values, reason) in table {
        assert_eq!(fixture.headers(values).await, Err(AuthenticationError::Request(reason)), "{reason}");
    }
    assert_eq!(provider.requests(KEYS).len(), 0);
}

#[tokio::test]
async fn a_token_is_verified_once_and_rejected_after_its_end() {
    let provider = IdentityProvider::start().await;
    let fixture = Fixture::new(&provider);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let token = provider.token(json!({"exp": now + 2}));
    let (first, second) = (fixture.check(&token).await.unwrap(), fixture.check(&token).await.unwrap());
    assert!(std::sync::Arc::ptr_eq(&first, &second));
    let ended = async {
        while fixture.check(&token).await.is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        fixture.check(&token).await
    };
    let ended = tokio::time::timeout(std::time::Duration::from_secs(30), ended).await.unwrap();
    assert_eq!(ended, Err(AuthenticationError::Token("the token has expired")));
}
