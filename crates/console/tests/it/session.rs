//! Sessions of users, at the address of a console and on a port of their own machine.

use super::*;

#[tokio::test]
async fn on_a_port_of_the_users_machine_the_session_is_in_no_cookie() {
    let test = skep_testkit::namespace().await;
    server(&test, "one").await;
    let address = console(&test).await;
    let token = token(&test, "viewer", vec![may_get(&["mcpservers"], &[])]).await;
    let mut page = Page::at(address, "localhost:8080");
    page.headers.insert("x-skep-console", HeaderValue::from_static("1"));
    let response = page.send(Method::POST, "session", &json!({"token": token}).to_string()).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers().get(header::SET_COOKIE), None, "other ports of the host would get it");
    let body: Value =
        serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap();
    let session = body["session"].as_str().unwrap();
    let bearer = HeaderValue::from_str(&format!("Bearer {session}")).unwrap();
    page.headers.insert(header::AUTHORIZATION, bearer);
    until("the console shows it", async || page.names().await == ["one"]).await;

    // A server on another port can set a cookie for this host, such as one of its own session.
    let mut fixed = Page::at(address, "localhost:8080");
    let cookie = HeaderValue::from_str(&format!("__Host-skep-console={session}")).unwrap();
    fixed.headers.insert(header::COOKIE, cookie.clone());
    assert_eq!(fixed.get("objects").await.0, StatusCode::UNAUTHORIZED);
    let mut elsewhere = Page::new(address);
    elsewhere.headers.insert(header::COOKIE, cookie);
    assert_eq!(elsewhere.get("objects").await.0, StatusCode::OK);

    assert_eq!(page.send(Method::DELETE, "session", "").await.status(), StatusCode::NO_CONTENT);
    assert_eq!(page.get("objects").await.0, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_user_who_holds_all_that_one_may_leaves_the_others_theirs() {
    let test = skep_testkit::namespace().await;
    let address = console(&test).await;
    let page = async |name: &str| {
        let token = token(&test, name, vec![may_get(&["mcpservers"], &[])]).await;
        Page::signed_in(address, &token).await
    };
    let (greedy, other) = (page("greedy").await, page("other").await);
    let mut held = Vec::new();
    for _ in 0..16 {
        let stream = greedy.send(Method::GET, "events", "").await;
        assert_eq!(stream.status(), StatusCode::OK);
        held.push(stream);
    }
    assert_eq!(greedy.send(Method::GET, "events", "").await.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(other.send(Method::GET, "events", "").await.status(), StatusCode::OK);
}
