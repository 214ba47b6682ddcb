//! The page where a user, without a client, sees all sessions and ends one; and attacks on it.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body_util::Full;
use serde_json::{Value, json};
use skep_testkit::{IdentityProvider, Redis};

use super::{
    chains::{oauth2, world},
    connections::{OWN, submit, unnamed_session},
    stores::{LIFE, PASSWORD, grant, row, store_at},
    world::{
        REDIRECT, Visitor, World, authorize_path, config, hidden_fields, location, metadata_of, parameter,
    },
};
use crate::{
    AuthServer,
    browser::{Browser, Cookies},
    clock::Clock,
    limits,
    store::{MemoryStore, Store, Upstream, UserSession},
};

const PAGE: &str = "/oauth/connections";

/// A session of a user, in which a client of this name acts.
pub(super) struct OfUser {
    pub(super) client: String,
    pub(super) id: String,
    pub(super) tokens: Value,
}

pub(super) async fn session_of(world: &World, user: &str, client_name: &str, scope: &str) -> OfUser {
    let metadata = json!({"client_name": client_name, "redirect_uris": [REDIRECT]});
    let client = world.register(metadata).await.1["client_id"].as_str().unwrap().to_owned();
    let mut visitor = Visitor::default();
    let url = world.begin(&mut visitor, &client, &[("scope", scope)]).await;
    let back = world.open(&mut visitor, &world.at_upstream(&url, user)).await;
    let (status, tokens) = world.redeem(&client, &parameter(&location(&back), "code"), &[]).await;
    assert_eq!(status, StatusCode::OK, "{tokens}");
    let claims = world.server.claims(tokens["access_token"].as_str().unwrap()).await.unwrap().unwrap();
    OfUser { client, id: claims["tsid"].as_str().unwrap().to_owned(), tokens }
}

pub(super) const OFFLINE: &str = "openid offline_access";

impl OfUser {
    pub(super) async fn goes_on(&self, world: &World) -> bool {
        let token = self.tokens["access_token"].as_str().unwrap();
        world.server.claims(token).await.unwrap().is_some()
    }
}

/// Opens the page, and logs a user in for it.
async fn sign_in(world: &World, visitor: &mut Visitor, user: &str) -> Response<Bytes> {
    let sent = world.open(visitor, PAGE).await;
    assert_eq!(sent.status(), StatusCode::FOUND, "{sent:?}");
    let back = world.open(visitor, &world.at_upstream(&location(&sent), user)).await;
    assert_eq!(location(&back), format!("{OWN}{PAGE}"));
    world.open(visitor, PAGE).await
}

fn text(page: &Response<Bytes>) -> String {
    String::from_utf8(page.body().to_vec()).unwrap()
}

/// The names on a page with sessions.
fn names(page: &Response<Bytes>) -> Vec<String> {
    let text = text(page);
    let names = text.split("<h2>").skip(1).map(|rest| rest.split_once("</h2>").unwrap().0.to_owned());
    names.collect()
}

/// The form that ends a session, as it is on the page.
fn form(page: &Response<Bytes>, session: &str) -> Vec<(String, String)> {
    let fields = hidden_fields(page);
    let pair = fields.chunks(2).find(|pair| pair[0].1 == session).unwrap_or_else(|| panic!("{fields:?}"));
    let mut form = pair.to_vec();
    form.push(("action".into(), "end".into()));
    form
}

#[tokio::test]
async fn a_user_sees_all_sessions_without_a_client_and_ends_one() {
    let world = World::new().await;
    let notes = session_of(&world, "ann", "Notes", OFFLINE).await;
    let mail = session_of(&world, "ann", "Mail", OFFLINE).await;
    session_of(&world, "bob", "Bobs own", OFFLINE).await;
    let connections = world.server.user_connections(10).await.unwrap().total;
    let mut ann = Visitor::default();
    let shown = sign_in(&world, &mut ann, "ann").await;
    assert_eq!(shown.status(), StatusCode::OK);
    let mut found = names(&shown);
    found.sort();
    assert_eq!(found, ["Mail", "Notes"]);
    let page = text(&shown);
    for part in ["<strong>Ann</strong>", "corp", "connected since 20", " UTC, then renewed"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("at-of-ann") && !page.contains("rt-of-ann") && !page.contains("<script"));
    let policy = shown.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
    assert!(
        policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
        "{policy}"
    );
    assert_eq!(shown.headers()[header::CACHE_CONTROL], "no-store");
    // The login for the page connects nothing.
    assert_eq!(world.server.user_connections(10).await.unwrap().total, connections);

    let done = submit(&world, &ann, &form(&shown, &notes.id), OWN).await;
    assert_eq!((done.status(), location(&done)), (StatusCode::SEE_OTHER, format!("{OWN}{PAGE}")));
    assert!(!notes.goes_on(&world).await && mail.goes_on(&world).await);
    let (status, _) =
        world.refresh(&notes.client, notes.tokens["refresh_token"].as_str().unwrap(), &[]).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(names(&world.open(&mut ann, PAGE).await), ["Mail"]);
    let of_ended = world.open(&mut ann, &format!("{PAGE}?session={}", notes.id)).await;
    assert_eq!(of_ended.status(), StatusCode::NOT_FOUND);
    // It does not come back when its end is forgotten.
    world.server.clock.advance(Duration::from_secs(24 * 3600));
    assert_eq!(names(&sign_in(&world, &mut ann, "ann").await), ["Mail"]);
}

/// The browser remembers the approval. A user who has ended a session of the client has taken it back.
#[tokio::test]
async fn a_client_whose_session_the_user_has_ended_gets_no_other_one_without_the_user() {
    let world = World::new().await;
    let client = world.client().await;
    let mut ann = Visitor::default();
    let code = world.log_in(&mut ann, &client, &[]).await;
    let (_, tokens) = world.redeem(&client, &code, &[]).await;
    let claims = world.server.claims(tokens["access_token"].as_str().unwrap()).await.unwrap().unwrap();
    // Without a page, as long as it is approved.
    let back = async |visitor: &mut Visitor| {
        let sent = location(&world.open(visitor, &authorize_path(&client, &[])).await);
        world.open(visitor, &world.at_upstream(&sent, "ann")).await
    };
    assert_eq!(back(&mut ann).await.status(), StatusCode::SEE_OTHER);
    let shown = sign_in(&world, &mut ann, "ann").await;
    let done = submit(&world, &ann, &form(&shown, claims["tsid"].as_str().unwrap()), OWN).await;
    assert_eq!(done.status(), StatusCode::SEE_OTHER);
    let page = back(&mut ann).await;
    assert_eq!((page.status(), text(&page).contains("Allow access?")), (StatusCode::OK, true), "{page:?}");
    // Another look does not help, and the user's decision does.
    let page = back(&mut ann).await;
    assert_eq!(page.status(), StatusCode::OK);
    let allowed = world.decide(&mut ann, &page, "allow").await;
    assert!(!parameter(&location(&allowed), "code").is_empty(), "{allowed:?}");
    assert_eq!(back(&mut ann).await.status(), StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn a_session_that_no_token_continues_is_listed_while_its_access_token_is_valid() {
    let world = World::new().await;
    session_of(&world, "ann", "Once", "openid").await;
    let mut ann = Visitor::default();
    assert_eq!(names(&sign_in(&world, &mut ann, "ann").await), ["Once"]);
    world.server.clock.advance(world.server.settings.access_life + world.server.settings.code_life);
    let shown = sign_in(&world, &mut ann, "ann").await;
    assert!(text(&shown).contains("No application acts for you"), "{}", text(&shown));
}

#[tokio::test]
async fn a_session_of_another_user_is_neither_seen_nor_ended() {
    let world = World::new().await;
    let of_ann = session_of(&world, "ann", "Notes", OFFLINE).await;
    let of_bob = session_of(&world, "bob", "Mail", OFFLINE).await;
    let mut bob = Visitor::default();
    let shown = sign_in(&world, &mut bob, "bob").await;
    assert_eq!(names(&shown), ["Mail"]);
    assert!(!text(&shown).contains(&of_ann.id));
    let address = format!("{PAGE}?session={}", of_ann.id);
    assert_eq!(world.open(&mut bob, &address).await.status(), StatusCode::FORBIDDEN);
    // With the token of his own form, and with one that fits.
    let mut foreign = form(&shown, &of_bob.id);
    foreign[0].1.clone_from(&of_ann.id);
    assert_eq!(submit(&world, &bob, &foreign, OWN).await.status(), StatusCode::FORBIDDEN);
    foreign[1].1 = fitting_token(&world, &bob, &of_ann.id);
    assert_eq!(submit(&world, &bob, &foreign, OWN).await.status(), StatusCode::FORBIDDEN);
    assert!(of_ann.goes_on(&world).await);
}

/// The token of a form about a session that was never shown in this browser.
fn fitting_token(world: &World, visitor: &Visitor, session: &str) -> String {
    let headers = HeaderMap::from_iter([(header::COOKIE, visitor.cookies().parse().unwrap())]);
    let browser = Browser::of(&Cookies::parse(&headers, false), [203, 0, 113, 9].into()).unwrap();
    browser.form_token(&world.server.settings.opaque, session)
}

#[tokio::test]
async fn no_other_page_and_no_other_browser_ends_a_session() {
    let world = World::new().await;
    let session = session_of(&world, "ann", "Notes", OFFLINE).await;
    let (mut ann, mut other) = (Visitor::default(), Visitor::default());
    let shown = sign_in(&world, &mut ann, "ann").await;
    sign_in(&world, &mut other, "ann").await;
    let form = form(&shown, &session.id);
    let without_token: Vec<_> = form.iter().filter(|(name, _)| name != "token").cloned().collect();
    let wrong: Vec<_> = form
        .iter()
        .map(|(name, value)| (name.clone(), if name == "token" { "x".repeat(22) } else { value.clone() }))
        .collect();
    for (visitor, form, origin) in [
        (&ann, &form, "https://evil.example"),
        (&ann, &form, "null"),
        (&ann, &without_token, OWN),
        (&ann, &wrong, OWN),
        (&other, &form, OWN),
        (&Visitor::default(), &form, OWN),
    ] {
        let refused = submit(&world, visitor, form, origin).await;
        assert_eq!(refused.status(), StatusCode::FORBIDDEN, "{origin} {form:?}");
    }
    // Nor does an address, which a link or an image can have.
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(&form).finish();
    world.open(&mut ann, &format!("{PAGE}?{query}")).await;
    assert!(session.goes_on(&world).await);
}

/// The attacker would see the sessions of the victim, or have the victim look at the attacker's.
#[tokio::test]
async fn a_login_for_the_page_that_is_continued_in_another_browser_is_refused() {
    let world = World::new().await;
    session_of(&world, "ann", "Notes", OFFLINE).await;
    let (mut attacker, mut victim) = (Visitor::default(), Visitor::default());
    let sent = world.open(&mut attacker, PAGE).await;
    let back = world.at_upstream(&location(&sent), "ann");
    let refused = world.open(&mut victim, &back).await;
    assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
    assert!(world.provider.requests("/token").len() == 1, "the code was used");
    for visitor in [&mut victim, &mut attacker] {
        assert_eq!(world.open(visitor, PAGE).await.status(), StatusCode::FOUND, "it is logged in");
    }
    // The browser that began it can go on, once.
    assert_eq!(location(&world.open(&mut attacker, &back).await), format!("{OWN}{PAGE}"));
    assert_eq!(world.open(&mut attacker, &back).await.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn the_browser_is_sent_to_the_provider_and_back_and_nowhere_else() {
    let world = World::new().await;
    let evil = "https%3A%2F%2Fevil.example%2F";
    for query in ["session=", "redirect_uri=", "next=", "return_to=", "session=&url="] {
        let mut visitor = Visitor::default();
        let sent = world.open(&mut visitor, &format!("{PAGE}?{query}{evil}")).await;
        if query == "session=" {
            assert_eq!((sent.status(), sent.headers().get("location")), (StatusCode::NOT_FOUND, None));
            continue;
        }
        assert!(location(&sent).starts_with(&format!("{}/authorize?", world.provider.issuer)), "{sent:?}");
        assert!(!location(&sent).contains("evil"), "{sent:?}");
        let back = world.at_upstream(&location(&sent), "ann");
        let back = world.open(&mut visitor, &format!("{back}&{query}{evil}")).await;
        assert_eq!(
            back.headers().get("location").map(|value| value.to_str().unwrap()),
            Some(&*format!("{OWN}{PAGE}"))
        );
    }
}

#[tokio::test]
async fn who_has_logged_in_is_in_a_cookie_of_this_host_alone_that_no_script_reads() {
    let provider = IdentityProvider::start().await;
    provider.answer("/.well-known/openid-configuration", metadata_of(&provider));
    let upstreams = json!([{"name": "corp", "type": "oidc", "oidc_config": {
        "issuer_url": provider.issuer, "client_id": "us", "redirect_uri": "https://as.example/oauth/callback",
    }}]);
    let config = config(&provider, &json!({"issuer": "https://as.example", "upstreams": upstreams}));
    let server = AuthServer::new(&config).map_err(|errors| format!("{errors:?}")).unwrap();
    server.check().await.unwrap();
    let world = World { server, provider };
    let mut visitor = Visitor::default();
    let sent = world.open(&mut visitor, PAGE).await;
    let back = world.open(&mut visitor, &world.at_upstream(&location(&sent), "ann")).await;
    for (response, name) in [(&sent, "__Host-skep-login-browser="), (&back, "__Host-skep-login-user=")] {
        let cookies: Vec<_> = response.headers().get_all(header::SET_COOKIE).iter().collect();
        let [cookie] = cookies[..] else { panic!("{cookies:?}") };
        let (value, attributes) = cookie.to_str().unwrap().split_once("; ").unwrap();
        assert!(value.starts_with(name), "{value}");
        let mut attributes: Vec<_> =
            attributes.split("; ").filter(|attribute| !attribute.starts_with("Max-Age=")).collect();
        attributes.sort_unstable();
        assert_eq!(attributes, ["HttpOnly", "Path=/", "SameSite=Lax", "Secure"]);
    }
    // Without the prefix, another host of the same site could set it.
    let stolen = visitor.cookies().replace("__Host-", "");
    let request = Request::get(PAGE).header(header::COOKIE, stolen).body(Full::default()).unwrap();
    assert_eq!(world.send(request).await.status(), StatusCode::FOUND);
    assert_eq!(world.open(&mut visitor, PAGE).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn the_page_of_users_whom_no_provider_names_is_for_the_browser_of_a_login() {
    let provider = IdentityProvider::start().await;
    let upstreams = vec![oauth2(&provider, "one", json!({}))];
    let world = world(provider, upstreams).await;
    let (mut ann, mut bob) = (Visitor::default(), Visitor::default());
    let session = unnamed_session(&world, &mut ann, "of-ann").await;
    unnamed_session(&world, &mut bob, "of-bob").await;
    let stranger = world.open(&mut Visitor::default(), PAGE).await;
    assert_eq!(stranger.status(), StatusCode::NOT_FOUND);
    assert!(!text(&world.open(&mut bob, PAGE).await).contains(&session));
    let shown = world.open(&mut ann, PAGE).await;
    assert_eq!(names(&shown), ["Notes"]);
    let done = submit(&world, &ann, &form(&shown, &session), OWN).await;
    assert_eq!(done.status(), StatusCode::SEE_OTHER);
    assert!(names(&world.open(&mut ann, PAGE).await).is_empty());
}

#[tokio::test]
async fn a_session_keeps_its_client_when_a_provider_is_connected_again() {
    let world = World::new().await;
    let session = session_of(&world, "ann", "Notes", OFFLINE).await;
    let mut ann = Visitor::default();
    let shown = sign_in(&world, &mut ann, "ann").await;
    let mut connect = form(&shown, &session.id);
    connect[2].1 = "connect".into();
    connect.push(("provider".into(), "corp".into()));
    let sent = submit(&world, &ann, &connect, OWN).await;
    world.open(&mut ann, &world.at_upstream(&location(&sent), "ann")).await;
    assert_eq!(names(&world.open(&mut ann, PAGE).await), ["Notes"]);
}

fn of(user: &str, provider: &str, connected_at: u64) -> Upstream {
    Upstream { user_id: user.into(), provider_id: provider.into(), connected_at, ..row("access") }
}

fn ids(sessions: &[UserSession]) -> Vec<&str> {
    let mut ids: Vec<_> = sessions.iter().map(|session| &*session.id).collect();
    ids.sort_unstable();
    ids
}

/// Both stores list the sessions of a user that have not ended, and nothing of others.
async fn check_sessions(store: Arc<dyn Store>) {
    let providers = ["corp", "hub"];
    assert!(store.sessions("ann", &providers).await.unwrap().is_empty());
    store.put_upstream("one", &of("ann", "corp", 10), LIFE).await.unwrap();
    store.put_upstream("one", &of("ann", "hub", 20), LIFE).await.unwrap();
    store.put_upstream("two", &of("ann", "corp", 30), 2 * LIFE).await.unwrap();
    store.put_upstream("of-bob", &of("bob", "corp", 40), LIFE).await.unwrap();
    store.put_refresh("s", &grant("two"), 2 * LIFE).await.unwrap();
    let mut sessions = store.sessions("ann", &providers).await.unwrap();
    sessions.sort_by(|left, right| left.id.cmp(&right.id));
    let expected = [
        UserSession {
            id: "one".into(),
            grant: None,
            rows: vec![Some(of("ann", "corp", 10)), Some(of("ann", "hub", 20))],
        },
        UserSession {
            id: "two".into(),
            grant: Some(grant("two")),
            rows: vec![Some(of("ann", "corp", 30)), None],
        },
    ];
    assert!(sessions == expected);
    assert_eq!(sessions[0].connected_at(), 20);
    assert_eq!(ids(&store.sessions("bob", &providers).await.unwrap()), ["of-bob"]);
    // The rows of one session, in the order of the providers.
    let rows = store.session("two", &["hub", "corp"]).await.unwrap().unwrap();
    assert!(rows == [None, Some(of("ann", "corp", 30))]);
    assert!(store.session("none", &["corp"]).await.unwrap().unwrap() == [None]);
    // One that has ended is none.
    store.end_session("two", &providers, 3 * LIFE).await.unwrap();
    assert!(store.session("two", &providers).await.unwrap().is_none());
    assert_eq!(ids(&store.sessions("ann", &providers).await.unwrap()), ["one"]);
    // As many as a user may have.
    for number in 0..limits::SESSIONS_OF_A_USER + 5 {
        store.put_upstream(&format!("of-eve-{number}"), &of("eve", "corp", 1), LIFE).await.unwrap();
    }
    assert_eq!(store.sessions("eve", &providers).await.unwrap().len(), limits::SESSIONS_OF_A_USER);
}

#[tokio::test]
async fn the_memory_store_lists_the_sessions_of_a_user() {
    let clock = Clock::default();
    let store = Arc::new(MemoryStore::new(clock.clone()));
    check_sessions(store.clone()).await;
    clock.advance(LIFE + Duration::from_secs(1));
    assert!(store.sessions("ann", &["corp", "hub"]).await.unwrap().is_empty(), "it has expired");
}

#[tokio::test]
async fn the_redis_store_lists_the_sessions_of_a_user() {
    for key in [None, Some([7; 32])] {
        let redis = Redis::with_password(PASSWORD).await;
        check_sessions(store_at(redis.address().parse().unwrap(), key).await).await;
    }
}
