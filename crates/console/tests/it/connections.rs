//! The connections of users at identity providers: personal data, for those who may read calls.

use std::sync::Mutex;

use futures::{FutureExt, future::BoxFuture};
use skep_gateway::{Connection, ConnectionSource, Connections, ProviderTokenError};

use super::{
    calls::{FakeProxy, read_until, reading_console},
    *,
};

/// A fake authorization server with one connection of each of these users.
struct FakeServer(Mutex<Vec<&'static str>>);

impl ConnectionSource for FakeServer {
    fn connections(&self, _: usize) -> BoxFuture<'_, Result<Connections, ProviderTokenError>> {
        let connection = |user: &&str| Connection {
            user: (*user).into(),
            provider: "corp".into(),
            account: format!("{user}@corp").into(),
            since: "2030-01-01T00:00:00Z".parse().ok(),
            until: None,
            renewed: true,
        };
        let shown: Vec<_> = self.0.lock().unwrap().iter().map(connection).collect();
        let found = Connections { available: true, shared: true, total: 70, shown };
        async { Ok(found) }.boxed()
    }
}

#[tokio::test]
async fn connections_of_users_are_shown_to_those_who_may_read_calls_and_to_no_others() {
    let (test, other) = (skep_testkit::namespace().await, skep_testkit::namespace().await);
    server(&test, "one").await;
    server(&other, "theirs").await;
    let proxy = FakeProxy::start(&test, "one").await;
    let users = Arc::new(FakeServer(Mutex::new(vec!["ann-1"])));
    proxy.page.log().set_connection_source(users.clone());
    let address = reading_console(&test).await;
    let (all, object, calls) =
        (&["mcpservers", "mcpservers/calls"][..], &["mcpservers"][..], &["mcpservers/calls"][..]);
    let page = async |test: &Namespace, name: &str, resources: &[&str]| {
        Page::signed_in(address, &token(test, name, vec![may_get(resources, &[])]).await).await
    };
    let reader = page(&test, "reader", all).await;
    // They may get the object but not its calls, its calls but not the object, and all of another namespace.
    let viewer = page(&test, "viewer", object).await;
    let listener = page(&test, "listener", calls).await;
    let outsider = page(&other, "outsider", all).await;
    proxy.serve(&test, "one").await;
    until("the console shows it", async || reader.names().await == ["one"]).await;
    until("the console shows theirs", async || outsider.names().await == ["theirs"]).await;

    let key = format!("MCPServer/{}/one", test.name());
    let stream =
        async |page: &Page| page.send(Method::GET, &format!("events?calls={key}"), "").await.into_body();
    let mut of_reader = stream(&reader).await;
    let mut others = [stream(&viewer).await, stream(&listener).await, stream(&outsider).await];
    let mut read = String::new();
    read_until(&mut of_reader, &mut read, "ann-1").await;
    users.0.lock().unwrap().push("bob-2");
    read_until(&mut of_reader, &mut read, "bob-2").await;
    assert!(read.contains("event: connections\n"), "{read}");
    // What comes after the connections has come, so they would have, too.
    set_phase(&test, "one", "Failed").await;
    set_phase(&other, "theirs", "Failed").await;
    let [of_viewer, of_listener, of_outsider] = &mut others;
    for (name, body, last) in [("viewer", of_viewer, "\"Failed\""), ("outsider", of_outsider, "\"Failed\"")] {
        let mut seen = String::new();
        read_until(body, &mut seen, last).await;
        assert!(!seen.contains("connections") && !seen.contains("ann-1"), "{name}: {seen}");
    }
    // They see no object that could change, so only comments come.
    while let Some(frame) = of_listener.frame().now_or_never() {
        let frame = frame.unwrap().unwrap();
        assert!(frame.data_ref().unwrap().starts_with(b":"), "{frame:?}");
    }

    let detail = async |page: &Page| page.get(&format!("objects/{key}")).await;
    let (_, known) = detail(&reader).await;
    let known: Value = serde_json::from_str(&known).unwrap();
    let one = |user: &str| {
        json!({
            "user": user, "provider": "corp", "account": format!("{user}@corp"), "since": "2030-01-01T00:00:00Z",
            "until": null, "renewed": true,
        })
    };
    let shown = json!([one("ann-1"), one("bob-2")]);
    assert_eq!(known["connections"], json!({"available": true, "shared": true, "total": 70, "shown": shown}));
    let (status, seen) = detail(&viewer).await;
    let known: Value = serde_json::from_str(&seen).unwrap();
    assert_eq!((status, &known["connections"]), (StatusCode::OK, &Value::Null));
    for (page, expected) in [
        (&viewer, StatusCode::OK),
        (&listener, StatusCode::NOT_FOUND),
        (&outsider, StatusCode::NOT_FOUND),
        (&Page::new(address), StatusCode::UNAUTHORIZED),
    ] {
        let (status, seen) = detail(page).await;
        assert_eq!(status, expected, "{seen}");
        assert!(!seen.contains("ann-1") && !seen.contains("bob-2") && !seen.contains("@corp"), "{seen}");
    }
}
