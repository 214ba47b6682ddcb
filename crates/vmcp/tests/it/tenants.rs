//! Callers that are distinguished by headers that are passed on to backends.

use serde_json::json;

use crate::{
    Server,
    backend::Backend,
    client::{Client, text},
};

/// The attack: behind one ingress, all callers have its address. One that has no session is shown what the backend has for
/// another, and calls it in the other's session.
#[tokio::test]
async fn callers_without_sessions_share_nothing_if_their_passed_on_headers_differ() {
    let backend = Backend::start().await;
    backend.set_tools_of("red", &["whoami", "red"]);
    backend.set_tools_of("blue", &["whoami", "blue"]);
    let server = Server::before(&[("a", &backend)], "passthroughHeaders: [X-Tenant]\n").await;
    let client = |tenant: &str| Client::modern(server.address, json!({})).with_header("x-tenant", tenant);
    let (red, blue) = (client("red"), client("blue"));
    assert_eq!(red.tools().await, ["a_red", "a_whoami"]);
    assert_eq!(blue.tools().await, ["a_blue", "a_whoami"]);
    let (of_red, of_blue) = (red.call("a_whoami").await, blue.call("a_whoami").await);
    assert_ne!(text(&of_red), text(&of_blue));
    assert_eq!(text(&of_red), text(&client("red").call("a_whoami").await), "one caller keeps its session");
}
