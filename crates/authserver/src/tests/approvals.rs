//! The user's approval of a client.

use http::{Request, StatusCode, header};
use http_body_util::Full;
use serde_json::json;

use super::world::{REDIRECT, Visitor, World, authorize_path, config, location, parameter};

/// GHSA-c2jp-c369-7pvx: the login of a user at the upstream would give a code to any client.
#[tokio::test]
async fn a_client_gets_nothing_before_the_user_allows_it() {
    let world = World::new().await;
    let client = world.client().await;
    let mut visitor = Visitor::default();
    let page = world.open(&mut visitor, &authorize_path(&client, &[])).await;
    assert_eq!(page.status(), StatusCode::OK);
    let text = String::from_utf8(page.body().to_vec()).unwrap();
    for part in ["Notes", REDIRECT, "know who you are", "keep its access", "corp"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let denied = world.decide(&mut visitor, &page, "deny").await;
    assert_eq!(parameter(&location(&denied), "error"), "access_denied");
    let allowed = world.decide(&mut visitor, &page, "allow").await;
    assert!(location(&allowed).starts_with(&world.provider.issuer));
}

#[tokio::test]
async fn a_user_approves_a_client_once_and_another_user_once_more() {
    let world = World::new().await;
    let (client, other) = (world.client().await, world.client().await);
    let mut visitor = Visitor::default();
    world.log_in(&mut visitor, &client, &[]).await;
    let again = world.open(&mut visitor, &authorize_path(&client, &[])).await;
    assert_eq!(again.status(), StatusCode::FOUND, "the same user sees the page again");
    let back = world.at_upstream(&location(&again), "bob");
    let page = world.open(&mut visitor, &back).await;
    assert_eq!(page.status(), StatusCode::OK, "another user sees no page");
    let allowed = world.decide(&mut visitor, &page, "allow").await;
    assert!(parameter(&location(&allowed), "code").starts_with("ory_ac_"));
    for path in [authorize_path(&other, &[]), authorize_path(&client, &[("scope", "openid profile")])] {
        assert_eq!(world.open(&mut visitor, &path).await.status(), StatusCode::OK, "{path}");
    }
    let stranger = world.open(&mut Visitor::default(), &authorize_path(&client, &[])).await;
    assert_eq!(stranger.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_form_that_this_browser_was_not_shown_decides_nothing() {
    let world = World::new().await;
    let client = world.client().await;
    let (mut attacker, mut victim) = (Visitor::default(), Visitor::default());
    let page = world.open(&mut attacker, &authorize_path(&client, &[])).await;
    world.open(&mut victim, &authorize_path(&client, &[])).await;
    assert_eq!(world.decide(&mut victim, &page, "allow").await.status(), StatusCode::FORBIDDEN);
    let foreign = Request::post("/oauth/consent")
        .header(header::ORIGIN, "https://evil.example")
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    let response = world.send(foreign.body(Full::from("decision=allow&request=x&token=y")).unwrap()).await;
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_login_cannot_be_ended_without_the_upstream() {
    let world = World::new().await;
    let client = world.client().await;
    let mut visitor = Visitor::default();
    let url = world.begin(&mut visitor, &client, &[]).await;
    let body = format!(r#"<input type="hidden" name="flow" value="{}">"#, parameter(&url, "state"));
    let page = http::Response::new(body.into());
    assert_eq!(world.decide(&mut visitor, &page, "allow").await.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_client_that_the_administrator_names_needs_no_approval() {
    let world = World::new().await;
    let client = world.client().await;
    let mut world = world;
    world.server.settings.clients_without_consent = vec![client.clone()];
    let response = world.open(&mut Visitor::default(), &authorize_path(&client, &[])).await;
    assert_eq!(response.status(), StatusCode::FOUND);
    let (status, body) = world.register(json!({"redirect_uris": [REDIRECT]})).await;
    assert_eq!(status, StatusCode::CREATED);
    let other = body["client_id"].as_str().unwrap();
    let response = world.open(&mut Visitor::default(), &authorize_path(other, &[])).await;
    assert_eq!(response.status(), StatusCode::OK);
}

/// A proxy has its callback below the path of the resource, and there is no other page.
#[tokio::test]
async fn the_form_of_a_page_below_another_path_is_sent_to_this_server() {
    let mut world = World::new().await;
    let callback = "http://127.0.0.1:1/mcp/oauth/callback";
    let upstreams = json!([{"name": "corp", "type": "oidc", "oidc_config": {
        "issuer_url": world.provider.issuer, "client_id": "us", "redirect_uri": callback,
    }}]);
    world.server =
        crate::AuthServer::new(&config(&world.provider, &json!({"upstreams": upstreams}))).unwrap();
    world.server.check().await.unwrap();
    let client = world.client().await;
    let mut visitor = Visitor::default();
    world.log_in(&mut visitor, &client, &[]).await;
    let again = world.open(&mut visitor, &authorize_path(&client, &[])).await;
    let back = world.at_upstream(&location(&again), "bob").replace("/oauth/", "/mcp/oauth/");
    let page = world.open(&mut visitor, &back).await;
    let text = String::from_utf8(page.body().to_vec()).unwrap();
    assert!(text.contains(r#"action="http://127.0.0.1:1/oauth/consent""#), "{text}");
}
