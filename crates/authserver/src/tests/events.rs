//! What is told of sessions and clients.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::json;

use super::world::{REDIRECT, Visitor, World, authorize_path};
use crate::{
    SessionFilter,
    events::{Event, EventKind, EventOutcome},
    limits,
};

type Told = Arc<Mutex<Vec<(EventKind, EventOutcome, String, String)>>>;

fn observed(world: &World) -> Told {
    let told = Told::default();
    let all = told.clone();
    world.server.observe(Arc::new(move |event: &Event<'_>| {
        // Requests have an address, and what an administrator does has none.
        assert_eq!(event.peer.is_none(), event.kind == EventKind::SessionEnd);
        let told = (event.kind, event.outcome, event.user.to_owned(), event.client.to_owned());
        all.lock().unwrap().push(told);
    }));
    told
}

fn take(told: &Told) -> Vec<(EventKind, EventOutcome)> {
    told.lock().unwrap().drain(..).map(|(kind, outcome, ..)| (kind, outcome)).collect()
}

#[tokio::test]
async fn what_happens_to_a_session_is_told_from_the_registration_of_its_client_to_its_end() {
    use EventKind::{Consent, Login, Refresh, Registration, Reuse, Revocation, SessionEnd};
    use EventOutcome::{Denied, Failure, Success};
    let world = World::new().await;
    let told = observed(&world);
    world.register(json!({"redirect_uris": ["javascript:x"]})).await;
    assert_eq!(take(&told), [(Registration, Failure)]);
    let client = world.client().await;
    assert_eq!(take(&told), [(Registration, Success)]);
    let tokens = world.tokens(&client).await;
    let user = world.server.verified(tokens["access_token"].as_str().unwrap()).unwrap()["sub"].clone();
    {
        let mut told = told.lock().unwrap();
        let expected = [
            (Consent, Success, String::new(), client.clone()),
            (Login, Success, user.as_str().unwrap().to_owned(), client.clone()),
        ];
        assert_eq!(*told, expected);
        told.clear();
    }
    let first = tokens["refresh_token"].as_str().unwrap();
    world.refresh(&client, first, &[]).await;
    assert_eq!(take(&told), [(Refresh, Success)]);
    world.server.clock.advance(limits::REPLACED_LEEWAY + Duration::from_secs(1));
    world.refresh(&client, first, &[]).await;
    assert_eq!(take(&told), [(Reuse, Denied), (Refresh, Failure)]);

    let tokens = world.tokens(&client).await;
    take(&told);
    world
        .post(
            "/oauth/revoke",
            &[("client_id", &client), ("token", tokens["refresh_token"].as_str().unwrap())],
        )
        .await;
    assert_eq!(take(&told), [(Revocation, Success)]);
    // A token that is not known revokes nothing.
    world.post("/oauth/revoke", &[("client_id", &client), ("token", "x")]).await;
    assert!(take(&told).is_empty());

    world.tokens(&client).await;
    take(&told);
    let all = SessionFilter { client: Some(client.clone()), ..SessionFilter::default() };
    world.server.end_sessions(&all, "").await.unwrap();
    assert_eq!(take(&told), [(SessionEnd, Success)]);
}

#[tokio::test]
async fn a_login_that_is_denied_is_told_whoever_denies_it() {
    use EventKind::{Consent, Login};
    use EventOutcome::{Denied, Success};
    let world = World::with(json!({"allowed_users": {"email_domains": ["other.test"]}})).await;
    let client = world.client().await;
    let told = observed(&world);
    let mut visitor = Visitor::default();
    let page = world.open(&mut visitor, &authorize_path(&client, &[])).await;
    world.decide(&mut visitor, &page, "deny").await;
    assert_eq!(take(&told), [(Consent, Denied)]);
    let url = world.begin(&mut visitor, &client, &[]).await;
    world.open(&mut visitor, &world.at_upstream(&url, "ann")).await;
    assert_eq!(take(&told), [(Consent, Success), (Login, Denied)]);
    let mut settings = world;
    settings.server.settings.registration.is_open = false;
    settings.register(json!({"redirect_uris": [REDIRECT]})).await;
    assert_eq!(take(&told), [(EventKind::Registration, Denied)]);
}
