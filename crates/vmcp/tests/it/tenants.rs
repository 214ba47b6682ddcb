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

#[tokio::test(flavor = "multi_thread")]
async fn lists_that_are_different_for_each_caller_take_no_more_than_the_budget_of_bodies() {
    let backend = Backend::start().await;
    let server = Server::before(&[("a", &backend)], "passthroughHeaders: [X-Tenant]\n").await;
    // They count twice: as they were received, and as clients see them.
    let tenants: Vec<String> = (0..9).map(|number| format!("tenant-{number}")).collect();
    for tenant in &tenants {
        backend.set_tools_of(tenant, &[tenant, &"x".repeat(2 << 20)]);
    }
    let start = |tenant: &str| {
        Client::without_session(server.address).with_header("x-tenant", tenant).started(json!({}))
    };
    let mut clients = Vec::new();
    for tenant in &tenants {
        let client = start(tenant).await;
        let response = client.call(&format!("a_{tenant}")).await;
        clients.push((client, response.to_string()));
    }
    let refused: Vec<&String> = clients
        .iter()
        .map(|(_, response)| response)
        .filter(|response| response.contains("unknown tool"))
        .collect();
    assert!(!refused.is_empty() && refused.len() < tenants.len(), "{} are refused", refused.len());
    assert!(refused.iter().all(|response| response.contains("there is no memory")), "{refused:?}");
    // What ends makes room.
    for (client, _) in &clients {
        client.end().await;
    }
    let client = start("tenant-0").await;
    assert!(!text(&client.call("a_tenant-0").await).1);
}
