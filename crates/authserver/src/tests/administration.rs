//! What administrators list, end and forget.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use http::StatusCode;
use serde_json::json;
use skep_testkit::Redis;

use super::{
    stores::{LIFE, PASSWORD, grant, row, settings},
    user_sessions::{OFFLINE, session_of},
    world::{REDIRECT, Visitor, World, authorize_path, location},
};
use crate::{
    SessionFilter,
    clock::Clock,
    limits,
    store::{Client, Grant, MemoryStore, Method, RedisStore, Session, Store, Upstream, User},
};

const PROVIDERS: [&str; 2] = ["corp", "hub"];

fn of(user: &str) -> SessionFilter {
    SessionFilter { user: Some(user.into()), ..SessionFilter::default() }
}

async fn ids(store: &dyn Store, most: usize) -> BTreeSet<String> {
    let (mut ids, mut from) = (BTreeSet::new(), String::new());
    loop {
        let (sessions, next) = store.all_sessions(&from, most, &PROVIDERS).await.unwrap();
        ids.extend(sessions.into_iter().map(|session| session.id));
        match next {
            Some(next) => from = next,
            None => return ids,
        }
    }
}

fn set<const N: usize>(ids: [&str; N]) -> BTreeSet<String> {
    ids.map(str::to_owned).into()
}

/// All sessions are found for as long as they go on, in parts of any size.
async fn check_sessions(store: Arc<dyn Store>, clock: &Clock) {
    assert!(ids(&*store, 10).await.is_empty());
    store.put_upstream("one", &row("access"), LIFE).await.unwrap();
    store.put_upstream("two", &row("access"), LIFE).await.unwrap();
    store.put_upstream("two", &Upstream { provider_id: "hub".into(), ..row("access") }, LIFE).await.unwrap();
    // It has lost its tokens, and goes on.
    store.put_refresh("s", &grant("offline"), 3 * LIFE).await.unwrap();
    for most in [1, 2, 10] {
        assert_eq!(ids(&*store, most).await, set(["offline", "one", "two"]));
    }
    let known = store.user_session("offline", &PROVIDERS).await.unwrap().unwrap();
    assert!(known.grant == Some(grant("offline")) && known.rows == [None, None]);
    assert_eq!((known.user_id(), known.client_id()), ("ann", "c"));
    // One that has ended is not found, also if a refresh that was under way ends later.
    store.end_session("two", &PROVIDERS, LIFE).await.unwrap();
    store.put_upstream("two", &row("late"), LIFE).await.unwrap();
    assert_eq!(ids(&*store, 10).await, set(["offline", "one"]));
    assert!(store.user_session("two", &PROVIDERS).await.unwrap().is_none());
    assert!(store.user_session("none", &PROVIDERS).await.unwrap().is_none());
    // A shorter row does not hide that it goes on, and a refresh token that is replaced lets it go on.
    store.put_upstream("offline", &row("access"), LIFE).await.unwrap();
    store.rotate("s", "t", &grant("offline"), 5 * LIFE).await.unwrap();
    clock.advance(LIFE + Duration::from_secs(1));
    let found = ids(&*store, 10).await;
    assert!(found.contains("offline") && !found.contains("one"), "{found:?}");
    for number in 0..250 {
        store.put_upstream(&format!("more-{number}"), &row("access"), LIFE).await.unwrap();
    }
    // A user has so many with tokens: the others are gone.
    assert_eq!(ids(&*store, 7).await.len(), limits::SESSIONS_OF_A_USER + 1);
}

fn client(id: &str) -> Client {
    Client {
        id: id.into(),
        name: String::new(),
        redirect_uris: vec![REDIRECT.into()],
        grant_types: Vec::new(),
        response_types: Vec::new(),
        scopes: Vec::new(),
        audience: Vec::new(),
        public: true,
        dcr_issued: true,
        token_endpoint_auth_method: Method::None,
        secret_hash: String::new(),
        any_secret_method: false,
        keys: None,
    }
}

async fn check_clients(store: Arc<dyn Store>) {
    let at = [203, 0, 113, 1].into();
    for id in ["a", "b", "new"] {
        store.put_client(&client(id), at).await.unwrap();
    }
    for id in ["a", "b"] {
        store.renew_client(id).await.unwrap();
    }
    let (found, next) = store.used_clients("", 10).await.unwrap();
    assert_eq!(found.iter().map(|client| &*client.id).collect::<BTreeSet<_>>(), BTreeSet::from(["a", "b"]));
    assert_eq!(next, None);
    for (id, is_there) in [("a", true), ("new", true), ("a", false), ("none", false)] {
        assert_eq!(store.remove_client(id).await, Ok(is_there), "{id}");
        assert!(store.client(id).await.unwrap().is_none());
    }
    // One that gets tokens late does not come back.
    store.renew_client("a").await.unwrap();
    assert_eq!(store.used_clients("", 10).await.unwrap().0.len(), 1);
    assert_eq!(store.approvals_mark("a").await.unwrap(), "");
    store.forget_approvals("a", "1").await.unwrap();
    assert_eq!(store.approvals_mark("a").await.unwrap(), "1");
    assert_eq!(store.approvals_mark("b").await.unwrap(), "");
}

#[tokio::test]
async fn the_memory_store_finds_all_sessions_and_clients() {
    let clock = Clock::default();
    check_sessions(Arc::new(MemoryStore::new(clock.clone())), &clock).await;
    check_clients(Arc::new(MemoryStore::new(clock))).await;
}

#[tokio::test]
async fn the_redis_store_finds_all_sessions_and_clients() {
    for key in [None, Some([7; 32])] {
        let (redis, clock) = (Redis::with_password(PASSWORD).await, Clock::default());
        let settings = settings(None, PASSWORD, redis.address().parse().unwrap(), key);
        let store = Arc::new(RedisStore::new(settings, clock.clone()).unwrap());
        check_sessions(store.clone(), &clock).await;
        check_clients(store).await;
    }
}

#[tokio::test]
async fn sessions_are_listed_by_user_and_client_and_never_with_a_token() {
    let world = World::new().await;
    let notes = session_of(&world, "ann", "Notes", OFFLINE).await;
    let mail = session_of(&world, "ann", "Mail", OFFLINE).await;
    let of_bob = session_of(&world, "bob", "Bobs", "openid").await;
    let listed = async |filter: &SessionFilter| {
        let page = world.server.list_sessions(filter, "").await.unwrap();
        assert_eq!((page.next, page.shared), (None, false));
        page.sessions.into_iter().map(|session| session.id).collect::<BTreeSet<_>>()
    };
    let all = set([&notes.id, &mail.id, &of_bob.id]);
    assert_eq!(listed(&SessionFilter::default()).await, all);
    let of_client = SessionFilter { client: Some(mail.client.clone()), ..SessionFilter::default() };
    assert_eq!(listed(&of_client).await, set([&mail.id]));
    let page = world.server.list_sessions(&of_client, "").await.unwrap();
    let text = serde_json::to_string(&page).unwrap();
    for secret in ["at-of", "rt-of", "ey", mail.tokens["refresh_token"].as_str().unwrap()] {
        assert!(!text.contains(secret), "{text}");
    }
    let session = &page.sessions[0];
    assert_eq!((session.client_name.as_str(), session.name.as_deref()), ("Mail", Some("Ann")));
    assert_eq!(session.accounts[0].subject, "ann");
    // The subject of tokens, the one at the provider, and the e-mail address, in the sessions that have it.
    for user in [session.user.as_str(), "ann"] {
        assert_eq!(listed(&of(user)).await, set([&notes.id, &mail.id]), "{user}");
    }
    assert_eq!(listed(&of("Ann@Example.test")).await, set([&notes.id, &mail.id]));
    assert!(listed(&of("an")).await.is_empty());
    // Both, and an id of another user.
    let both = SessionFilter { session: Some(of_bob.id.clone()), ..of("ann") };
    assert!(listed(&both).await.is_empty());
    assert_eq!(listed(&SessionFilter { user: Some("bob".into()), ..both }).await, set([&of_bob.id]));
    // Nothing continues it, and its token is not valid any more.
    world.server.clock.advance(world.server.settings.access_life + world.server.settings.code_life);
    assert!(!listed(&SessionFilter::default()).await.contains(&of_bob.id));
}

#[tokio::test]
async fn the_sessions_of_a_user_end_with_their_approvals_and_no_others() {
    let world = World::new().await;
    let client = world.client().await;
    let mut browser = Visitor::default();
    let code = world.log_in(&mut browser, &client, &[]).await;
    let (_, tokens) = world.redeem(&client, &code, &[]).await;
    let of_bob = session_of(&world, "bob", "Bobs", OFFLINE).await;
    let back = async |browser: &mut Visitor| {
        let sent = location(&world.open(browser, &authorize_path(&client, &[])).await);
        world.open(browser, &world.at_upstream(&sent, "ann")).await.status()
    };
    assert_eq!(back(&mut browser).await, StatusCode::SEE_OTHER, "it is approved");
    let ended = world.server.end_sessions(&of("ann"), "").await.unwrap();
    // The second login has given a code that was not redeemed: a session as well.
    assert_eq!((ended.ended.len(), ended.next), (2, None));
    assert!(world.server.claims(tokens["access_token"].as_str().unwrap()).await.unwrap().is_none());
    let (status, _) = world.refresh(&client, tokens["refresh_token"].as_str().unwrap(), &[]).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(back(&mut browser).await, StatusCode::OK, "the user is asked again");
    assert!(of_bob.goes_on(&world).await);
    // The id of a session of another server, or of none, ends nothing and stores nothing.
    let unknown = SessionFilter { session: Some("of-another".into()), ..SessionFilter::default() };
    assert!(world.server.end_sessions(&unknown, "").await.unwrap().ended.is_empty());
    assert_eq!(world.server.store.is_ended("of-another").await, Ok(false));
}

#[tokio::test]
async fn a_client_that_is_forgotten_must_register_and_be_approved_again() {
    let world = World::new().await;
    let client = world.client().await;
    let mut browser = Visitor::default();
    let code = world.log_in(&mut browser, &client, &[]).await;
    let (_, tokens) = world.redeem(&client, &code, &[]).await;
    let listed = world.server.list_clients("").await.unwrap().clients;
    assert_eq!((listed[0].id.as_str(), listed[0].name.as_str()), (client.as_str(), "Notes"));
    let row = world.server.store.client(&client).await.unwrap().unwrap();
    assert!(world.server.forget_client(&client).await.unwrap());
    assert!(!world.server.forget_client(&client).await.unwrap(), "it is forgotten already");
    assert!(world.server.list_clients("").await.unwrap().clients.is_empty());
    let (status, body) = world.refresh(&client, tokens["refresh_token"].as_str().unwrap(), &[]).await;
    assert_eq!((status, &body["error"]), (StatusCode::UNAUTHORIZED, &json!("invalid_client")));
    assert_eq!(
        world.open(&mut browser, &authorize_path(&client, &[])).await.status(),
        StatusCode::UNAUTHORIZED
    );
    // Even if it comes back under its id, as one with a document does, no browser has its approval.
    world.server.store.put_client(&row, [203, 0, 113, 1].into()).await.unwrap();
    let page = world.open(&mut browser, &authorize_path(&client, &[])).await;
    assert_eq!(page.status(), StatusCode::OK, "it is approved again");
    let back = world.decide(&mut browser, &page, "allow").await;
    world.open(&mut browser, &world.at_upstream(&location(&back), "ann")).await;
    let sent = world.open(&mut browser, &authorize_path(&client, &[])).await;
    assert_eq!(sent.status(), StatusCode::FOUND, "and then remembered");
}

/// An administrator waits for a bounded part of the sessions, and finds all in the end.
#[tokio::test]
async fn many_sessions_are_listed_in_bounded_parts() {
    let world = World::new().await;
    let number = limits::ADMINISTRATION_PAGE * (limits::ADMINISTRATION_PAGES + 3);
    for number in 0..number {
        let user = User { id: format!("user-{number}"), name: None, email: None };
        let session = Session { id: format!("session-{number}"), user };
        let grant = Grant { session, ..grant("x") };
        world.server.store.put_refresh("s", &grant, LIFE).await.unwrap();
    }
    let last = SessionFilter { user: Some(format!("user-{}", number - 1)), ..SessionFilter::default() };
    for (filter, wanted) in [(SessionFilter::default(), number), (last, 1)] {
        let (mut found, mut from, mut parts) = (0, String::new(), 0);
        loop {
            let page = world.server.list_sessions(&filter, &from).await.unwrap();
            assert!(page.sessions.len() <= limits::ADMINISTRATION_PAGE);
            (found, parts) = (found + page.sessions.len(), parts + 1);
            match page.next {
                Some(next) => from = next,
                None => break,
            }
        }
        assert!(found == wanted && parts > 1, "{found} in {parts}");
    }
}
