//! An explanation agrees with the proxy.

use http::StatusCode;
use serde_json::{Value, json};
use skep_config::RunConfig;
use skep_proxy::{Caller, Outcome, explain_request, listed_tools};
use skep_testkit::IdentityProvider;

use crate::fixture::{Fixture, Server, call, result};

const TOOLS: [&str; 4] = ["read", "write", "delete", "list"];

/// Policies of which any may be there or not.
const POLICIES: [&str; 5] = [
    r#"permit(principal, action == Action::"call_tool", resource == Tool::"read");"#,
    r#"permit(principal, action == Action::"call_tool", resource) when { principal.claim_team == "crm" };"#,
    r#"permit(principal == Client::"alice", action, resource);"#,
    r#"forbid(principal, action, resource == Tool::"delete") unless { context has arg_force && context.arg_force };"#,
    r#"forbid(principal, action, resource) when { principal has claim_blocked };"#,
];

/// Every combination of policies, with one of some filters each.
fn configurations(oidc: &Value) -> Vec<Value> {
    let filters = [
        json!({}),
        json!({"filter_tools": ["read", "delete"]}),
        json!({"filter_tools": ["fetch", "write"], "tools_override": {"read": {"name": "fetch"}}}),
    ];
    let configuration = |bits: usize| {
        let chosen = (0..POLICIES.len()).filter(|index| bits & 1 << index != 0).map(|index| POLICIES[index]);
        let policies: Vec<_> = chosen.collect();
        let filter = &filters[bits % filters.len()];
        let document = json!({"version": "1.0", "type": "cedarv1", "cedar": {"policies": policies, "entities_json": "[]"}});
        json!([
            {"type": "auth", "parameters": {"oidc_config": oidc}},
            {"type": "tool-filter", "parameters": filter},
            {"type": "tool-call-filter", "parameters": filter},
            {"type": "authorization", "parameters": {"config_data": document}},
        ])
    };
    (1..1 << POLICIES.len()).map(configuration).collect()
}

#[tokio::test]
async fn an_explanation_has_the_decision_and_the_reason_of_the_proxy() {
    let provider = IdentityProvider::start().await;
    let tools: Vec<_> = TOOLS.iter().map(|name| json!({"name": name})).collect();
    let server = Server::start(move |request| result(request, json!({"tools": tools}))).await;
    let callers = [
        json!({"sub": "alice"}),
        json!({"sub": "bob", "team": "crm"}),
        json!({"sub": "carol", "team": "hr", "blocked": true}),
        json!({"sub": "dave", "team": "hr"}),
    ];
    let mut rejected = 0;
    for middlewares in configurations(&provider.oidc(json!({}))) {
        let fixture = Fixture::new(&server, middlewares.clone()).await;
        let config =
            json!({"name": "files", "transport": "streamable-http", "middleware_configs": middlewares});
        let config = RunConfig::parse(&config.to_string()).unwrap();
        for claims in &callers {
            let token = format!("Bearer {}", provider.token(claims.clone()));
            let headers = [("authorization", token.as_str())];
            let caller = Caller::Claims(claims.as_object().unwrap().clone());
            let answer = fixture.post(&headers, &call("tools/list", json!({}))).await.json();
            let seen = answer["result"]["tools"].as_array().unwrap().iter();
            let seen: Vec<_> = seen.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
            assert_eq!(listed_tools(&config, &caller, &TOOLS.map(Into::into)).await.unwrap(), seen);
            for tool in TOOLS.iter().chain(&["fetch"]) {
                let params = json!({"name": tool, "arguments": {"force": tool.len() % 2 == 0}});
                let answer = fixture.post(&headers, &call("tools/call", params.clone())).await;
                let steps = explain_request(&config, &caller, "tools/call", &params).await.unwrap();
                let rejection = steps.iter().find_map(|step| match &step.outcome {
                    Outcome::Rejected { status, message } => Some((*status, message.clone())),
                    _ => None,
                });
                match rejection {
                    None => assert_eq!(answer.status, StatusCode::OK, "{params} {claims} {middlewares}"),
                    Some((status, message)) => {
                        rejected += 1;
                        assert_eq!(answer.status, status, "{params} {claims} {middlewares}");
                        assert_eq!(answer.json()["error"]["message"], message);
                    }
                }
            }
        }
        fixture.end().await;
    }
    assert!(rejected > 100, "{rejected}");
}
