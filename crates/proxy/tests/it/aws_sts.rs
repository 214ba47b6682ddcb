//! Signing for AWS, and what needs an authorization server. How requests are signed is tested with
//! the middleware, where AWS STS can be replaced by a fake.

use http::StatusCode;
use serde_json::{Value, json};
use skep_config::RunConfig;
use skep_proxy::Proxy;

use crate::fixture::{Fixture, Server, call, result};

const TARGET: &str = "https://mcp.aws.example/mcp";
const ROLE: &str = "arn:aws:iam::123456789012:role/dev";

fn error(fields: Value) -> String {
    let mut config = json!({"name": "r", "transport": "streamable-http", "remote_url": TARGET});
    config.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    Proxy::new(&RunConfig::parse(&config.to_string()).unwrap()).err().unwrap().to_string()
}

fn signing(config: Value, target: &str) -> Value {
    let parameters = json!({"aws_sts_config": config, "target_url": target});
    json!({"middleware_configs": [{"type": "auth"}, {"type": "awssts", "parameters": parameters}]})
}

#[tokio::test]
async fn an_invalid_configuration_is_an_error_that_names_the_field() {
    let config = |changes: Value| {
        let mut config = json!({"region": "eu-west-1", "fallback_role_arn": ROLE});
        config.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        config
    };
    for (changes, target, message) in [
        (json!({"region": ""}), TARGET, "awssts: region: "),
        (json!({"region": "evil.example/"}), TARGET, "awssts: region: "),
        (json!({"fallback_role_arn": ""}), TARGET, "awssts: set fallback_role_arn or role_mappings"),
        (json!({"session_duration": 60}), TARGET, "awssts: session_duration: 60 is not from 900 to 43200"),
        (
            json!({"role_mappings": [{"matcher": "claims.", "role_arn": ROLE}]}),
            TARGET,
            "awssts: role_mappings[0]: matcher: ",
        ),
        (json!({}), "", "awssts: target_url: it must be remote_url"),
        (json!({}), "https://mcp.aws.example/other", "awssts: target_url: it must be remote_url"),
        (json!({"subject_provider_name": "corp"}), TARGET, "awssts: subject_provider_name needs "),
    ] {
        let error = error(signing(config(changes), target));
        assert!(error.starts_with(message), "{error}");
    }
}

#[tokio::test]
async fn no_unsigned_request_reaches_the_server() {
    let server = Server::start(|request| result(request, json!({}))).await;
    let remote = format!("http://{}/mcp", server.address);
    let mut config = signing(json!({"region": "eu-west-1", "fallback_role_arn": ROLE}), &remote);
    config["name"] = json!("r");
    config["transport"] = json!("streamable-http");
    config["remote_url"] = json!(remote);
    let fixture = Fixture::of(&RunConfig::parse(&config.to_string()).unwrap()).await;
    // The caller has no token, so there is nothing to exchange for credentials.
    let answer = fixture.post(&[], &call("tools/list", json!({}))).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_configuration_that_needs_an_authorization_server_is_an_error_that_names_it() {
    let swap = json!([{"type": "upstreamswap", "parameters": {"config": {"provider_name": "corp"}}}]);
    let cedar =
        json!({"policies": ["permit(principal, action, resource);"], "primary_upstream_provider": "corp"});
    let document = json!({"version": "1.0", "type": "cedarv1", "cedar": cedar});
    let policies = json!([{"type": "authorization", "parameters": {"config_data": document}}]);
    for (middlewares, what) in
        [(swap, "upstreamswap: provider_name"), (policies, "authorization: cedar.primary_upstream_provider")]
    {
        let expected = format!("{what} needs embedded_auth_server_config, which is missing");
        assert_eq!(error(json!({"middleware_configs": middlewares})), expected);
    }
}
