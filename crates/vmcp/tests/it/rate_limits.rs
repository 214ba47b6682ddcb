//! Rate limits of a virtual server, counted in a real Redis for all its replicas.

use http::{Method, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use skep_testkit::Redis;

use crate::{
    Server,
    backend::Backend,
    client::{Client, text},
};

fn limited(redis: &Redis, limits: &str) -> String {
    format!(
        "sessionStorage: {{provider: redis, address: \"{}\"}}\nrateLimiting: {limits}\n\
         compositeTools:\n  - {{name: twice, description: d, steps: [{{id: s, tool: a_echo}}, {{id: t, tool: a_echo}}]}}\n",
        redis.address()
    )
}

/// The status, the time to retry and the body of the response to a call.
async fn called(client: &Client, tool: &str) -> (StatusCode, Option<String>, Value) {
    let mut params = json!({"name": tool, "arguments": {}});
    if client.session.is_empty() {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
    }
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let response = client.send(Method::POST, Some(&body)).await;
    let (status, headers) = (response.status(), response.headers().clone());
    let retry = headers.get("retry-after").map(|time| time.to_str().unwrap().to_owned());
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, retry, serde_json::from_slice(&body).unwrap())
}

#[tokio::test]
async fn calls_beyond_the_limit_are_rejected_at_all_replicas_for_clients_of_all_revisions() {
    let (redis, backend) = (Redis::start().await, Backend::start().await);
    let more = limited(&redis, "{shared: {maxTokens: 3, refillPeriod: 1h}}");
    let first = Server::before(&[("a", &backend)], &more).await;
    let second = Server::before(&[("a", &backend)], &more).await;
    let older = first.client().await;
    let newer = Client::modern(second.address, json!({}));
    for client in [&older, &newer, &older] {
        assert_eq!(called(client, "a_echo").await.0, StatusCode::OK);
    }
    let error = json!({"code": 429, "message": "Rate limit exceeded", "data": {"retryAfterSeconds": 1200}});
    for client in [&older, &newer] {
        let (status, retry, body) = called(client, "a_echo").await;
        assert_eq!((status, retry.as_deref()), (StatusCode::TOO_MANY_REQUESTS, Some("1200")));
        assert_eq!(body["error"], error);
    }
    assert_eq!(backend.called().len(), 3, "a rejected call does not reach a backend");
    assert_eq!(older.tools().await.len(), 4, "only calls of tools are counted");
}

#[tokio::test]
async fn a_limit_of_a_tool_is_for_the_name_that_clients_use_and_counts_steps_of_workflows() {
    let (redis, backend) = (Redis::start().await, Backend::start().await);
    let limits = "{tools: [{name: a_echo, shared: {maxTokens: 2, refillPeriod: 1h}}]}";
    let server = Server::before(&[("a", &backend)], &limited(&redis, limits)).await;
    let client = server.client().await;
    let response = client.call("twice").await;
    assert!(response.get("result").is_some() && !text(&response).1, "{response}");
    assert_eq!(called(&client, "a_echo").await.0, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(called(&client, "a_whoami").await.0, StatusCode::OK);
    let failed = client.call("twice").await;
    assert!(failed.to_string().contains("Rate limit exceeded"), "{failed}");
}
