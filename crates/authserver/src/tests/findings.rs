//! Findings in other authorization servers that have no better place.

use http::{Request, StatusCode, header};
use http_body_util::Full;
use serde_json::json;
use skep_testkit::{IdentityProvider, Redis};

use super::{
    flow::{Flow, STEPS, Servers},
    stores::{PASSWORD, store_at},
    world::{REDIRECT, Visitor, World, authorize_path, config, hidden_fields},
};
use crate::AuthServer;

/// CVE-2026-7571: the parameters of a login changed between its steps.
#[tokio::test]
async fn what_a_page_was_about_cannot_be_changed_in_its_form() {
    let world = World::new().await;
    let client = world.client().await;
    let mut visitor = Visitor::default();
    let page = world.open(&mut visitor, &authorize_path(&client, &[])).await;
    let shown = hidden_fields(&page);
    for (from, to) in [("offline_access", "profile"), ("client-state", "another"), ("S256", "plain")] {
        let fields = shown.iter().map(|(name, value)| (name.clone(), value.replace(from, to)));
        let mut form: Vec<_> = fields.collect();
        assert_ne!(form, shown, "{from}");
        form.push(("decision".into(), "allow".into()));
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let request = Request::post("/oauth/consent")
            .header(header::COOKIE, visitor.cookies())
            .header(header::ORIGIN, "http://127.0.0.1:1")
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        let response = world.send(request.body(Full::from(body)).unwrap()).await;
        assert_eq!(response.status(), StatusCode::FORBIDDEN, "{from}");
    }
}

/// CVE-2026-9803: a malformed token at the registration endpoint was an internal error.
#[tokio::test]
async fn a_malformed_token_at_the_registration_is_not_read() {
    let world = World::new().await;
    for token in [&b"Bearer"[..], b"Bearer ", b"Bearer a.b.c.d", b"Bearer \xff\xfe", b"\x80"] {
        let request = Request::post("/oauth/register")
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::AUTHORIZATION, token);
        let body = json!({"redirect_uris": [REDIRECT]}).to_string();
        let response = world.send(request.body(Full::from(body)).unwrap()).await;
        assert_eq!(response.status(), StatusCode::CREATED, "{token:?}");
    }
}

/// CVE-2020-15223: a revocation was reported as done when the store had failed.
#[tokio::test]
async fn a_revocation_that_the_store_did_not_do_is_no_success() {
    let mut redis = Redis::with_password(PASSWORD).await;
    let (servers, provider) = Servers::new().await;
    let store = store_at(redis.address().parse().unwrap(), None).await;
    let world = World { server: servers.start(store).await, provider };
    let mut flow = Flow::new("ann");
    for step in STEPS {
        flow.step(&servers, &world, step).await.unwrap();
    }
    redis.kill();
    let (status, body) = flow.revoke(&world).await;
    assert_eq!(
        (status, &body["error"]),
        (StatusCode::SERVICE_UNAVAILABLE, &json!("temporarily_unavailable"))
    );
}

/// CVE-2025-6514: an address that a server had named was passed to a shell.
#[tokio::test]
async fn a_provider_sends_browsers_to_web_addresses_only() {
    let provider = IdentityProvider::start().await;
    for address in [
        "file:///etc/passwd",
        "javascript:alert(1)",
        "a:$(calc.exe)?response_type=code",
        "https:",
        "/authorize",
    ] {
        let metadata = json!({
            "issuer": provider.issuer, "authorization_endpoint": address,
            "token_endpoint": format!("{}/token", provider.issuer), "jwks_uri": format!("{}/keys", provider.issuer),
        });
        provider.answer("/.well-known/openid-configuration", metadata);
        let server = AuthServer::new(&config(&provider, &json!({}))).map_err(|_| ()).unwrap();
        let error = server.check().await.unwrap_err().to_string();
        assert!(error.contains("authorization_endpoint"), "{address}: {error}");
    }
}
