//! Token exchange, assertions, and clients that sign.

use futures::future::join_all;
use http::StatusCode;
use serde_json::{Value, json};

use super::world::{REDIRECT, RESOURCE, Visitor, World, config};
use crate::{
    config::{Delegate, Settings},
    limits,
};

const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const JWT: &str = "urn:ietf:params:oauth:token-type:jwt";
const SECRET: &str = "delegate-secret-0123456789-0123456789";
const ISSUER: &str = "http://127.0.0.1:1";

/// A world that trusts its provider, with the delegate `agent`.
async fn world(trust: Value) -> World {
    let mut world = World::new().await;
    let mut trusted = json!({
        "issuer_url": world.provider.issuer, "expected_audience": RESOURCE, "insecure_allow_http": true,
        "jwks_url": format!("{}/keys", world.provider.issuer), "allow_private_ips": true,
        "allowed_delegate_clients": ["agent"],
    });
    for (key, value) in trust.as_object().unwrap() {
        trusted[key] = value.clone();
    }
    let config = config(&world.provider, &json!({"trusted_issuers": [trusted]}));
    let (settings, _) = Settings::new(&config).map_err(|errors| format!("{errors:?}")).unwrap();
    world.server.settings = settings;
    let (scopes, audiences) = (vec!["openid".into()], vec![RESOURCE.into()]);
    let delegate = Delegate { id: "agent".into(), secret: SECRET.into(), scopes, audiences };
    world.server.settings.delegates.push(delegate);
    world
}

async fn exchange(world: &World, token: &str, changes: &[(&str, &str)]) -> (StatusCode, Value) {
    let mut form = vec![
        ("grant_type", EXCHANGE),
        ("client_id", "agent"),
        ("client_secret", SECRET),
        ("subject_token", token),
        ("subject_token_type", JWT),
    ];
    form.extend(changes);
    world.post("/oauth/token", &form).await
}

#[tokio::test]
async fn a_delegate_acts_for_a_user_for_a_short_time_and_without_the_users_tokens() {
    let world = world(json!({})).await;
    let client = world.client().await;
    let tokens = world.tokens(&client).await;
    let token = tokens["access_token"].as_str().unwrap();
    let (status, body) = exchange(&world, token, &[]).await;
    assert_eq!((status, &body["expires_in"]), (StatusCode::OK, &json!(900)), "{body}");
    let claims = world.server.claims(body["access_token"].as_str().unwrap()).await.unwrap().unwrap();
    assert_eq!(claims["act"], json!({"iss": ISSUER, "sub": "agent"}));
    assert_eq!(claims["client_id"], "agent");
    assert_eq!((claims.get("tsid"), body.get("refresh_token")), (None, None));
    for (change, error) in [
        (("scope", "openid email"), "invalid_scope"),
        (("audience", "https://evil.example"), "invalid_target"),
        (("requested_token_type", "urn:ietf:params:oauth:token-type:refresh_token"), "invalid_request"),
    ] {
        assert_eq!(exchange(&world, token, &[change]).await.1["error"], error, "{change:?}");
    }
}

#[tokio::test]
async fn a_delegated_token_ends_with_the_session_of_its_user_and_cannot_be_revoked_alone() {
    let world = world(json!({})).await;
    let client = world.client().await;
    let tokens = world.tokens(&client).await;
    let token = tokens["access_token"].as_str().unwrap();
    let (_, once) = exchange(&world, token, &[]).await;
    let (_, twice) = exchange(&world, once["access_token"].as_str().unwrap(), &[]).await;
    let delegated = [&once, &twice].map(|body| body["access_token"].as_str().unwrap());
    for delegated in delegated {
        let form = [("client_id", "agent"), ("client_secret", SECRET), ("token", delegated)];
        let (status, body) = world.post("/oauth/revoke", &form).await;
        assert_eq!((status, &body["error"]), (StatusCode::BAD_REQUEST, &json!("unsupported_token_type")));
        assert!(world.server.claims(delegated).await.unwrap().is_some());
    }
    world.post("/oauth/revoke", &[("client_id", &client), ("token", token)]).await;
    for delegated in delegated {
        assert_eq!(world.server.claims(delegated).await.unwrap(), None);
    }
}

#[tokio::test]
async fn a_token_of_an_ended_session_is_not_exchanged() {
    let world = world(json!({})).await;
    let client = world.client().await;
    let tokens = world.tokens(&client).await;
    let token = tokens["access_token"].as_str().unwrap();
    world.post("/oauth/revoke", &[("client_id", &client), ("token", token)]).await;
    assert_eq!(exchange(&world, token, &[]).await.1["error"], "invalid_request");
}

/// toolhive#6323: a token that names its actor itself must not go round the list.
#[tokio::test]
async fn may_act_does_not_go_round_the_list_of_actors() {
    let world = world(json!({"allowed_actors": ["robot"], "allow_may_act": true})).await;
    let may_act = json!({"iss": ISSUER, "sub": "agent"});
    let token = |claims: &Value| {
        let mut all = json!({"sub": "ext", "aud": RESOURCE});
        all.as_object_mut().unwrap().extend(claims.as_object().unwrap().clone());
        world.provider.token(all)
    };
    for (claims, status) in [
        (json!({"azp": "robot"}), StatusCode::OK),
        (json!({"azp": "robot", "may_act": may_act}), StatusCode::OK),
        (json!({"azp": "stranger", "may_act": may_act}), StatusCode::BAD_REQUEST),
        (json!({"may_act": may_act}), StatusCode::BAD_REQUEST),
        (json!({"azp": "robot", "nonce": "n"}), StatusCode::BAD_REQUEST),
        (json!({"azp": "robot", "aud": "https://evil.example"}), StatusCode::BAD_REQUEST),
    ] {
        let (found, body) = exchange(&world, &token(&claims), &[]).await;
        assert_eq!(found, status, "{claims}: {body}");
    }
}

#[tokio::test]
async fn an_actor_is_listed_or_matches_the_expression() {
    let trust = json!({"allowed_actors": ["robot"], "actor_matcher": "claims.act.sub == 'ci'"});
    let world = world(trust).await;
    for (claims, status) in [
        (json!({"sub": "ext", "aud": RESOURCE, "azp": "robot"}), StatusCode::OK),
        (json!({"sub": "ext", "aud": RESOURCE, "act": {"sub": "ci"}}), StatusCode::OK),
        (json!({"sub": "ext", "aud": RESOURCE, "act": {"sub": "cd"}}), StatusCode::BAD_REQUEST),
        (json!({"sub": "ext", "aud": RESOURCE}), StatusCode::BAD_REQUEST),
    ] {
        let (found, body) = exchange(&world, &world.provider.token(claims.clone()), &[]).await;
        assert_eq!(found, status, "{claims}: {body}");
    }
}

/// GHSA-3p3g-vpw6-4w66: the id of an assertion is used once.
#[tokio::test]
async fn an_assertion_is_used_once() {
    let bindings = json!([{"subject": "svc", "allowed_resources": [RESOURCE]}]);
    let grant = json!({"max_assertion_age": "5m", "subject_bindings": bindings});
    let world = world(json!({"jwt_bearer_grant": grant})).await;
    let now = world.server.clock.now();
    let audience = format!("{ISSUER}/oauth/token");
    let claims = json!({"sub": "svc", "aud": audience, "iat": now, "exp": now + 240, "jti": "1"});
    let assertion = world.provider.token(claims);
    let type_ = "urn:ietf:params:oauth:grant-type:jwt-bearer";
    let form = [("grant_type", type_), ("assertion", &*assertion), ("resource", RESOURCE)];
    let results = join_all((0..8).map(|_| world.post("/oauth/token", &form))).await;
    let won = results.iter().filter(|(status, _)| *status == StatusCode::OK);
    assert_eq!(won.count(), 1, "{results:?}");
}

#[tokio::test]
async fn a_client_with_keys_in_its_document_signs_an_assertion_for_each_request() {
    let world = World::with(json!({"cimd": {"enabled": true}})).await;
    let id = format!("{}/c.json", world.provider.issuer);
    let document = json!({
        "client_id": id, "redirect_uris": [REDIRECT], "token_endpoint_auth_method": "private_key_jwt",
        "jwks_uri": format!("{}/keys", world.provider.issuer),
    });
    world.provider.answer("/c.json", document);
    let code = world.log_in(&mut Visitor::default(), &id, &[]).await;
    assert_eq!(world.redeem(&id, &code, &[]).await.1["error"], "invalid_client");
    let end = world.server.clock.now() + 60;
    let signed = |subject: &str, audience: &str| {
        let claims = json!({"iss": subject, "sub": subject, "aud": audience, "exp": end, "jti": audience});
        world.provider.token(claims)
    };
    let type_ = ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
    for wrong in [signed(&id, "https://other.example"), signed("https://other.example/c.json", ISSUER)] {
        let (status, _) = world.redeem(&id, &code, &[type_, ("client_assertion", &wrong)]).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
    }
    let right = signed(&id, ISSUER);
    let (status, tokens) = world.redeem(&id, &code, &[type_, ("client_assertion", &right)]).await;
    assert_eq!(status, StatusCode::OK, "{tokens}");
    let refresh = tokens["refresh_token"].as_str().unwrap();
    let (status, _) = world.refresh(&id, refresh, &[type_, ("client_assertion", &right)]).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED, "the assertion was used twice");
    // Its keys change before its document is to be fetched again.
    world.provider.rotate();
    world.provider.retire();
    world.server.clock.advance(limits::DOCUMENT_PAUSE);
    let newest = signed(&id, &format!("{ISSUER}/oauth/token"));
    let (status, body) = world.refresh(&id, refresh, &[type_, ("client_assertion", &newest)]).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    let fetched = world.provider.requests("/c.json").len();
    let (status, _) = world.refresh(&id, refresh, &[type_, ("client_assertion", "e30.e30.x")]).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    assert_eq!(world.provider.requests("/c.json").len(), fetched, "anyone can send that");
}
