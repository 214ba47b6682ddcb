//! Logins, and attacks on them.

use http::{StatusCode, header};
use serde_json::json;
use skep_testkit::IdentityProvider;

use super::world::{
    REDIRECT, RESOURCE, VERIFIER, Visitor, World, authorize_path, config, location, metadata_of, parameter,
};
use crate::AuthServer;

#[tokio::test]
async fn a_user_logs_in_and_the_client_gets_tokens() {
    let world = World::new().await;
    let client = world.client().await;
    let tokens = world.tokens(&client).await;
    assert_eq!((&tokens["token_type"], &tokens["expires_in"]), (&json!("bearer"), &json!(3600)));
    assert!(tokens["refresh_token"].as_str().unwrap().starts_with("ory_rt_"));
    let claims = world.server.claims(tokens["access_token"].as_str().unwrap()).await.unwrap().unwrap();
    let expected = [
        ("iss", json!("http://127.0.0.1:1")),
        ("aud", json!([RESOURCE])),
        ("client_id", json!(client)),
        ("scp", json!(["openid", "offline_access"])),
        ("name", json!("Ann")),
        ("email", json!("ann@example.test")),
    ];
    for (name, value) in expected {
        assert_eq!(claims[name], value, "{name}");
    }
    let session = claims["tsid"].as_str().unwrap();
    let token = world.server.upstream_tokens().access_token(session, "corp").await;
    assert_eq!(token.as_deref(), Ok("at-of-ann"));
}

#[tokio::test]
async fn a_user_has_the_same_subject_in_every_login() {
    let world = World::new().await;
    let client = world.client().await;
    let mut claims = Vec::new();
    for _ in 0..2 {
        let tokens = world.tokens(&client).await;
        claims.push(world.server.claims(tokens["access_token"].as_str().unwrap()).await.unwrap().unwrap());
    }
    assert_eq!(claims[0]["sub"], claims[1]["sub"]);
    assert_ne!(claims[0]["tsid"], claims[1]["tsid"]);
}

/// GHSA-rww4-4w9c-7733: an attacker begins a login, and has a victim finish it.
#[tokio::test]
async fn a_login_that_is_continued_in_another_browser_is_refused() {
    let world = World::new().await;
    let client = world.client().await;
    let (mut attacker, mut victim) = (Visitor::default(), Visitor::default());
    let url = world.begin(&mut attacker, &client, &[]).await;
    let back = world.at_upstream(&url, "victim");
    assert_eq!(world.open(&mut victim, &back).await.status(), StatusCode::BAD_REQUEST);
    assert!(world.provider.requests("/token").is_empty());
    // The browser that began it can still go on.
    assert_eq!(world.open(&mut attacker, &back).await.status(), StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn a_return_from_the_upstream_works_once() {
    let world = World::new().await;
    let client = world.client().await;
    let mut visitor = Visitor::default();
    let url = world.begin(&mut visitor, &client, &[]).await;
    let back = world.at_upstream(&url, "ann");
    assert_eq!(world.open(&mut visitor, &back).await.status(), StatusCode::SEE_OTHER);
    assert_eq!(world.open(&mut visitor, &back).await.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_return_of_another_issuer_is_refused() {
    let world = World::new().await;
    let client = world.client().await;
    let mut visitor = Visitor::default();
    let url = world.begin(&mut visitor, &client, &[]).await;
    let back = format!("{}&iss=https://evil.example", world.at_upstream(&url, "ann"));
    let response = world.open(&mut visitor, &back).await;
    assert_eq!(parameter(&location(&response), "error"), "server_error");
    assert!(world.provider.requests("/token").is_empty(), "the code was given to the other issuer");
}

#[tokio::test]
async fn every_response_to_a_client_names_the_issuer() {
    let world = World::new().await;
    let client = world.client().await;
    let mut visitor = Visitor::default();
    let url = world.begin(&mut visitor, &client, &[]).await;
    let fine = world.open(&mut visitor, &world.at_upstream(&url, "ann")).await;
    let wrong = world.open(&mut visitor, &authorize_path(&client, &[("scope", "root")])).await;
    for response in [fine, wrong] {
        let location = location(&response);
        assert!(location.starts_with(REDIRECT), "{location}");
        assert_eq!(parameter(&location, "iss"), "http://127.0.0.1:1");
        assert_eq!(parameter(&location, "state"), "client-state");
    }
}

#[tokio::test]
async fn a_request_that_is_refused_is_sent_to_no_unknown_address() {
    let world = World::new().await;
    let client = world.client().await;
    let twice = format!("{}&redirect_uri=https://evil.example/cb", authorize_path(&client, &[]));
    let requests = [
        (twice, 400),
        (authorize_path(&client, &[("redirect_uri", "https://evil.example/cb")]), 400),
        (authorize_path(&client, &[("redirect_uri", "http://127.0.0.1:7777/cb/../x")]), 400),
        (authorize_path(&client, &[("request", "eyJhbGciOiJub25lIn0.e30.")]), 400),
        (authorize_path("unknown", &[]), 401),
    ];
    for (path, status) in requests {
        let response = world.open(&mut Visitor::default(), &path).await;
        assert_eq!(
            (response.status().as_u16(), response.headers().get("location")),
            (status, None),
            "{path}"
        );
    }
}

#[tokio::test]
async fn what_a_client_requests_wrongly_is_refused_before_the_user_logs_in() {
    let world = World::new().await;
    let client = world.client().await;
    for (changes, error) in [
        ([("code_challenge", "")], "invalid_request"),
        ([("code_challenge_method", "plain")], "invalid_request"),
        ([("response_type", "token")], "unsupported_response_type"),
        ([("scope", "root")], "invalid_scope"),
        ([("resource", "https://evil.example/mcp")], "invalid_target"),
        ([("prompt", "none")], "login_required"),
    ] {
        let response = world.open(&mut Visitor::default(), &authorize_path(&client, &changes)).await;
        assert_eq!(parameter(&location(&response), "error"), error, "{changes:?}");
    }
}

#[tokio::test]
async fn an_id_token_of_another_login_is_refused() {
    let world = World::new().await;
    let client = world.client().await;
    let (mut one, mut two) = (Visitor::default(), Visitor::default());
    let first = world.begin(&mut one, &client, &[]).await;
    let second = world.begin(&mut two, &client, &[]).await;
    let back = world.at_upstream(&first, "ann");
    world.at_upstream(&second, "bob");
    let response = world.open(&mut one, &back).await;
    assert_eq!(parameter(&location(&response), "error"), "server_error");
}

/// Browsers are at another address than other clients.
async fn world_with_base() -> World {
    let provider = IdentityProvider::start().await;
    let upstream = json!({"name": "corp", "type": "oidc", "oidc_config": {
        "issuer_url": provider.issuer, "client_id": "us", "redirect_uri": "https://mcp.example/mcp/oauth/callback",
    }});
    provider.answer("/.well-known/openid-configuration", metadata_of(&provider));
    let changes =
        json!({"authorization_endpoint_base_url": "https://login.example", "upstreams": [upstream]});
    let server =
        AuthServer::new(&config(&provider, &changes)).map_err(|errors| format!("{errors:?}")).unwrap();
    assert!(server.check().await.unwrap().is_empty());
    World { server, provider }
}

#[tokio::test]
async fn cookies_are_for_encrypted_connections_where_browsers_have_them() {
    let world = world_with_base().await;
    let client = world.client().await;
    let page = world.open(&mut Visitor::default(), &authorize_path(&client, &[])).await;
    let cookie = page.headers()[header::SET_COOKIE].to_str().unwrap();
    assert!(cookie.starts_with("__Host-skep-login-browser=") && cookie.ends_with("; Secure"), "{cookie}");
}

/// A provider may send browsers to the address of the resource, while their cookies are for that of the logins.
#[tokio::test]
async fn a_browser_that_comes_back_at_another_host_is_sent_to_the_one_with_its_cookies() {
    let world = world_with_base().await;
    let client = world.client().await;
    let mut visitor = Visitor::default();
    let url = world.begin(&mut visitor, &client, &[]).await;
    let back = world.at_upstream(&url, "ann").replace("/oauth/", "/mcp/oauth/");
    let sent = location(&world.open(&mut Visitor::default(), &back).await);
    let path = sent.strip_prefix("https://login.example").unwrap();
    assert_eq!(
        world.open(&mut Visitor::default(), path).await.status(),
        StatusCode::BAD_REQUEST,
        "it is sent in circles"
    );
    let done = location(&world.open(&mut visitor, path).await);
    assert!(done.starts_with(REDIRECT) && !parameter(&done, "code").is_empty(), "{done}");
}

/// Anyone can register a client, and send a link: it leads to no address of the stranger before the user has decided.
#[tokio::test]
async fn a_link_with_a_mistake_leads_to_no_address_that_a_stranger_has_registered() {
    let world = World::new().await;
    for uri in ["https://evil.example/cb", "com.example.app:/cb"] {
        let (_, client) = world.register(json!({"redirect_uris": [uri]})).await;
        let client = client["client_id"].as_str().unwrap();
        for mistake in
            [("scope", "nope"), ("prompt", "none"), ("response_type", "token"), ("code_challenge", "")]
        {
            let path = authorize_path(client, &[("redirect_uri", uri), mistake]);
            let response = world.open(&mut Visitor::default(), &path).await;
            assert_eq!(response.headers().get(header::LOCATION), None, "{uri}: {mistake:?}");
            assert!(response.status().is_client_error());
        }
    }
}

#[tokio::test]
async fn a_user_of_an_application_that_is_not_known_any_more_learns_what_to_do() {
    let world = World::new().await;
    let response = world.open(&mut Visitor::default(), &authorize_path("gone", &[])).await;
    let text = String::from_utf8(response.body().to_vec()).unwrap();
    assert!(text.contains("remove the server there, and add it again"), "{text}");
}

/// What is not there would be cached, shown in a frame, guessed to be of another type, or leak a code to where the user goes next.
#[tokio::test]
async fn every_response_has_the_headers_that_protect_it() {
    let world = World::new().await;
    let client = world.client().await;
    let mut visitor = Visitor::default();
    let headers = |response: &http::Response<bytes::Bytes>, names: &[&str]| -> Vec<String> {
        let value =
            |name: &&str| response.headers().get(*name).map(|value| value.to_str().unwrap().to_owned());
        names.iter().map(|name| value(name).unwrap_or_default()).collect()
    };
    let page = world.open(&mut visitor, &authorize_path(&client, &[])).await;
    let names = ["cache-control", "x-frame-options", "x-content-type-options", "referrer-policy"];
    assert_eq!(headers(&page, &names), ["no-store", "DENY", "nosniff", "same-origin"]);
    let policy = headers(&page, &["content-security-policy"]).remove(0);
    for directive in ["default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"] {
        assert!(policy.contains(directive), "{policy}");
    }
    let url = world.begin(&mut visitor, &client, &[]).await;
    let sent = world.open(&mut visitor, &world.at_upstream(&url, "ann")).await;
    let names = ["cache-control", "pragma", "referrer-policy"];
    assert_eq!(headers(&sent, &names), ["no-store", "no-cache", "no-referrer"]);
    let code = parameter(&location(&sent), "code");
    let post = async |form: &str| {
        let request = http::Request::post("/oauth/token")
            .header(header::ORIGIN, "https://app.example")
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        world.send(request.body(http_body_util::Full::from(form.to_owned())).unwrap()).await
    };
    let form = format!(
        "grant_type=authorization_code&client_id={client}&code={code}&code_verifier={VERIFIER}&redirect_uri={REDIRECT}"
    );
    let (issued, refused) = (post(&form).await, post("grant_type=x").await);
    assert_eq!((issued.status(), refused.status()), (StatusCode::OK, StatusCode::BAD_REQUEST));
    for response in [issued, refused] {
        assert_eq!(headers(&response, &["cache-control", "pragma"]), ["no-store", "no-cache"]);
    }
    // A page of another origin sees why it is refused.
    let too_large = post(&"x".repeat(crate::limits::BODY + 1)).await;
    assert_eq!(too_large.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(headers(&too_large, &["access-control-allow-origin"]), ["*"]);
}

#[tokio::test]
async fn a_login_that_nobody_finishes_ends_after_ten_minutes() {
    let world = World::new().await;
    let client = world.client().await;
    for (time, is_there) in [(590, true), (601, false)] {
        let mut visitor = Visitor::default();
        let url = world.begin(&mut visitor, &client, &[]).await;
        world.server.clock.advance(std::time::Duration::from_secs(time));
        let back = world.open(&mut visitor, &world.at_upstream(&url, "ann")).await;
        assert_eq!(back.status() == StatusCode::SEE_OTHER, is_there, "{time}");
    }
}
