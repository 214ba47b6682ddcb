//! Policies about the annotations of tools.

use serde_json::json;
use skep_testkit::Redis;

use crate::{
    Server,
    backend::Backend,
    client::{Client, text},
};

/// Lets clients only read.
const READ: &str = r#"permit(principal, action == Action::"call_tool", resource) when { resource has readOnlyHint && resource.readOnlyHint };"#;

async fn reading(backend: &Backend, more: &str) -> Server {
    with_policy(READ, backend, more).await
}

async fn with_policy(policy: &str, backend: &Backend, more: &str) -> Server {
    let config = format!(
        "name: test\ngroupRef: test\noutgoingAuth: {{source: inline}}\n\
         incomingAuth: {{type: anonymous, authz: {{type: cedar, policies: ['{policy}']}}}}\n\
         aggregation: {{conflictResolution: prefix, conflictResolutionConfig: {{prefixFormat: \"{{workload}}_\"}}}}\n\
         backends: [{{name: a, url: \"{}\", transport: streamable-http}}]\n{more}",
        backend.url(),
    );
    Server::of(&config, None, None).await
}

async fn backend() -> Backend {
    let tool = |name: &str, reads: bool| json!({"name": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": reads}});
    Backend::with_tools(vec![tool("look", true), tool("change", false)]).await
}

#[tokio::test]
async fn a_call_before_any_list_is_judged_by_the_hints_of_its_tool() {
    let backend = backend().await;
    let server = reading(&backend, "").await;
    for client in [server.client().await, Client::modern(server.address, json!({}))] {
        let (allowed, denied) = (client.call("a_look").await, client.call("a_change").await);
        assert!(allowed["result"].is_object() && !text(&allowed).1, "{allowed}");
        assert!(denied["error"].is_object() || text(&denied).1, "{denied}");
    }
    assert_eq!(backend.received("tools/call").len(), 2);
}

#[tokio::test]
async fn a_session_is_judged_alike_at_a_replica_that_has_sent_it_no_list() {
    let (redis, backend) = (Redis::start().await, backend().await);
    let storage = format!("sessionStorage: {{provider: redis, address: \"{}\"}}\n", redis.address());
    let (first, second) = (reading(&backend, &storage).await, reading(&backend, &storage).await);
    let client = first.client().await;
    assert_eq!(client.tools().await, ["a_look"]);
    let client = client.at(second.address);
    let called = client.call("a_look").await;
    assert!(called["result"].is_object() && !text(&called).1, "{called}");
}

#[tokio::test]
async fn a_hint_that_changes_counts_from_the_next_list_of_the_backend_on() {
    let backend = backend().await;
    let server = reading(&backend, "").await;
    assert_eq!(server.client().await.tools().await, ["a_look"]);
    let tool =
        json!({"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": false}});
    backend.set_tools(vec![tool]);
    loop {
        // A new session reads lists that are old, though it requests none.
        let called = server.client().await.call("a_look").await;
        if called["error"].is_object() || text(&called).1 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_denied_call_costs_a_backend_nothing_unless_policies_read_hints() {
    let backend = backend().await;
    let policy = r#"permit(principal, action == Action::"call_tool", resource == Tool::"a_look");"#;
    let server = with_policy(policy, &backend, "passthroughHeaders: [X-Tenant]\n").await;
    let client = |tenant: &str| Client::modern(server.address, json!({})).with_header("x-tenant", tenant);
    assert!(client("red").call("a_look").await["result"].is_object());
    backend.forget();
    for tenant in ["blue", "green"] {
        let denied = client(tenant).call("a_change").await;
        assert!(denied["error"].is_object() || text(&denied).1, "{denied}");
    }
    assert_eq!(backend.requests(), 0);
}
