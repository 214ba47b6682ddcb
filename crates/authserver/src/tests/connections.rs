//! Connections: the page for users, and the API for clients.

use bytes::Bytes;
use form_urlencoded::Serializer;
use http::{Request, Response, StatusCode, header};
use http_body_util::Full;
use serde_json::{Value, json};
use skep_testkit::IdentityProvider;

use super::{
    chains::{back, oauth2, world},
    world::{Visitor, World, hidden_fields, location, parameter},
};
use crate::UpstreamTokenError;

/// A session of Ann, and its access token.
async fn session(world: &World) -> (String, String) {
    let client = world.client().await;
    let tokens = world.tokens(&client).await;
    let token = tokens["access_token"].as_str().unwrap().to_owned();
    let claims = world.server.claims(&token).await.unwrap().unwrap();
    (claims["tsid"].as_str().unwrap().to_owned(), token)
}

async fn api(world: &World, method: &str, path: &str, token: &str) -> (StatusCode, Value) {
    let request =
        Request::builder().method(method).uri(path).header(header::AUTHORIZATION, format!("Bearer {token}"));
    let response = world.send(request.body(Full::default()).unwrap()).await;
    (response.status(), serde_json::from_slice(response.body()).unwrap_or_default())
}

fn page(session: &str) -> String {
    format!("/oauth/connections?session={session}")
}

/// Opens the page, and logs a user in for it.
async fn sign_in(world: &World, visitor: &mut Visitor, session: &str, user: &str) -> Response<Bytes> {
    let sent = world.open(visitor, &page(session)).await;
    assert_eq!(sent.status(), StatusCode::FOUND, "{sent:?}");
    let back = world.open(visitor, &world.at_upstream(&location(&sent), user)).await;
    assert_eq!(location(&back), world.server.connections_url(session));
    world.open(visitor, &page(session)).await
}

/// Presses a button of the page.
async fn press(
    world: &World,
    visitor: &mut Visitor,
    shown: &Response<Bytes>,
    action: &str,
    origin: &str,
) -> Response<Bytes> {
    let mut form = hidden_fields(shown);
    form.push(("action".into(), action.into()));
    submit(world, visitor, &form, origin).await
}

/// Submits a form that is on a page of this origin.
pub(super) async fn submit(
    world: &World,
    visitor: &Visitor,
    form: &[(String, String)],
    origin: &str,
) -> Response<Bytes> {
    let body = Serializer::new(String::new()).extend_pairs(form).finish();
    let request = Request::post("/oauth/connections")
        .header(header::COOKIE, visitor.cookies())
        .header(header::ORIGIN, origin)
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    world.send(request.body(Full::from(body)).unwrap()).await
}

pub(super) const OWN: &str = "http://127.0.0.1:1";

#[tokio::test]
async fn a_client_lists_the_connections_of_its_session_and_ends_one() {
    let world = World::new().await;
    world.provider.answer("/revoke", json!({}));
    let (session, token) = session(&world).await;
    let (status, listed) = api(&world, "GET", "/oauth/connections", &token).await;
    assert_eq!(status, StatusCode::OK, "{listed}");
    let one = &listed["connections"][0];
    let known = [&one["provider"], &one["connected"], &one["expired"], &one["scopes"]];
    assert_eq!(known, [&json!("corp"), &json!(true), &json!(false), &json!(["openid", "offline_access"])]);
    assert_eq!(one["renewed"], true);
    assert!(
        one["since"].as_u64().unwrap() > 1_700_000_000 && one["expires_at"].as_u64() > one["since"].as_u64()
    );
    assert_eq!(listed["page"], world.server.connections_url(&session));
    let (status, _) = api(&world, "DELETE", "/oauth/connections?provider=corp", &token).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    let revoked = world.provider.requests("/revoke");
    assert_eq!(
        revoked.iter().map(|request| &*request.form["token"]).collect::<Vec<_>>(),
        ["rt-of-ann", "at-of-ann"]
    );
    let found = world.server.upstream_tokens().access_token(&session, "corp").await;
    assert_eq!(found, Err(UpstreamTokenError::NotConnected));
    let (_, listed) = api(&world, "GET", "/oauth/connections", &token).await;
    assert_eq!(listed["connections"][0]["connected"], false);
    for (method, path, token, expected) in [
        ("GET", "/oauth/connections", "forged", StatusCode::UNAUTHORIZED),
        ("DELETE", "/oauth/connections?provider=corp", "", StatusCode::UNAUTHORIZED),
        ("DELETE", "/oauth/connections?provider=other", &*token, StatusCode::BAD_REQUEST),
    ] {
        assert_eq!(api(&world, method, path, token).await.0, expected, "{method} {path}");
    }
}

#[tokio::test]
async fn a_user_disconnects_a_provider_on_a_page_and_connects_it_again() {
    let world = World::new().await;
    let (session, _) = session(&world).await;
    let mut ann = Visitor::default();
    let shown = sign_in(&world, &mut ann, &session, "ann").await;
    let text = String::from_utf8(shown.body().to_vec()).unwrap();
    assert!(
        shown.status() == StatusCode::OK && text.contains("corp") && text.contains("Disconnect"),
        "{text}"
    );
    assert!(!text.contains("<script") && !text.contains("at-of-ann"), "{text}");
    let policy = shown.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
    assert!(
        policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
        "{policy}"
    );
    let done = press(&world, &mut ann, &shown, "disconnect", OWN).await;
    assert_eq!(done.status(), StatusCode::SEE_OTHER);
    let tokens = world.server.upstream_tokens();
    assert_eq!(tokens.access_token(&session, "corp").await, Err(UpstreamTokenError::NotConnected));
    let shown = world.open(&mut ann, &page(&session)).await;
    assert!(String::from_utf8_lossy(shown.body()).contains("not connected"));
    // Another account is not connected to her session.
    for (user, found) in [("bob", Err(UpstreamTokenError::NotConnected)), ("ann", Ok("at-of-ann".to_owned()))]
    {
        let sent = press(&world, &mut ann, &shown, "connect", OWN).await;
        world.open(&mut ann, &world.at_upstream(&location(&sent), user)).await;
        assert_eq!(tokens.access_token(&session, "corp").await, found, "{user}");
    }
}

#[tokio::test]
async fn the_page_is_for_the_user_of_the_session_alone() {
    let world = World::new().await;
    let (session, _) = session(&world).await;
    let shown = sign_in(&world, &mut Visitor::default(), &session, "bob").await;
    assert_eq!(shown.status(), StatusCode::FORBIDDEN);
    let mut ann = Visitor::default();
    let shown = sign_in(&world, &mut ann, &session, "ann").await;
    // A page of another site cannot press the button, and a form of one browser is of no use in another.
    let foreign = press(&world, &mut ann, &shown, "disconnect", "https://evil.example").await;
    assert_eq!(foreign.status(), StatusCode::FORBIDDEN);
    let mut other = Visitor::default();
    sign_in(&world, &mut other, &session, "ann").await;
    assert_eq!(press(&world, &mut other, &shown, "disconnect", OWN).await.status(), StatusCode::FORBIDDEN);
    assert!(world.server.upstream_tokens().access_token(&session, "corp").await.is_ok());
    assert_eq!(world.open(&mut ann, &page("none")).await.status(), StatusCode::NOT_FOUND);
    // Who has logged in is forgotten after some time.
    world.server.clock.advance(std::time::Duration::from_secs(1000));
    assert_eq!(world.open(&mut ann, &page(&session)).await.status(), StatusCode::FOUND);
}

/// A session of a user whom the provider does not name, in this browser.
pub(super) async fn unnamed_session(world: &World, visitor: &mut Visitor, token: &str) -> String {
    let client = world.client().await;
    world.provider.answer("/token", json!({"access_token": token, "token_type": "bearer"}));
    let url = world.begin(visitor, &client, &[]).await;
    let code = parameter(&location(&world.open(visitor, &back(&url)).await), "code");
    let (_, tokens) = world.redeem(&client, &code, &[]).await;
    let claims = world.server.claims(tokens["access_token"].as_str().unwrap()).await.unwrap().unwrap();
    claims["tsid"].as_str().unwrap().to_owned()
}

/// Another login there is another user, so no login would ever open the page.
#[tokio::test]
async fn the_page_of_a_user_whom_no_provider_names_is_for_the_browser_of_the_login() {
    let provider = IdentityProvider::start().await;
    let upstreams = vec![oauth2(&provider, "one", json!({}))];
    let world = world(provider, upstreams).await;
    let (mut ann, mut bob) = (Visitor::default(), Visitor::default());
    let session = unnamed_session(&world, &mut ann, "of-ann").await;
    unnamed_session(&world, &mut bob, "of-bob").await;
    for (visitor, status) in
        [(&mut bob, StatusCode::FORBIDDEN), (&mut Visitor::default(), StatusCode::NOT_FOUND)]
    {
        assert_eq!(world.open(visitor, &page(&session)).await.status(), status);
    }
    let shown = world.open(&mut ann, &page(&session)).await;
    assert_eq!(shown.status(), StatusCode::OK);
    assert_eq!(press(&world, &mut ann, &shown, "disconnect", OWN).await.status(), StatusCode::SEE_OTHER);
    let tokens = world.server.upstream_tokens();
    assert_eq!(tokens.access_token(&session, "one").await, Err(UpstreamTokenError::NotConnected));
    let shown = world.open(&mut ann, &page(&session)).await;
    let sent = press(&world, &mut ann, &shown, "connect", OWN).await;
    world.provider.answer("/token", json!({"access_token": "of-ann-again", "token_type": "bearer"}));
    assert_eq!(world.open(&mut bob, &back(&location(&sent))).await.status(), StatusCode::BAD_REQUEST);
    world.open(&mut ann, &back(&location(&sent))).await;
    assert_eq!(tokens.access_token(&session, "one").await.as_deref(), Ok("of-ann-again"));
    // A login for the page proves nothing there.
    world.server.clock.advance(std::time::Duration::from_secs(7 * 24 * 3600 + 1));
    assert_eq!(world.open(&mut ann, &page(&session)).await.status(), StatusCode::NOT_FOUND);
}
