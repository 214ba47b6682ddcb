//! Backends that get a token for the caller that another server has issued. The authorization server of the virtual server is a
//! fake; the token endpoints are those of an identity provider on loopback.

use std::sync::Arc;

use futures::future::join_all;
use serde_json::{Value, json};
use skep_testkit::IdentityProvider;
use skep_vmcp::{ProviderTokenError, Settings};

use crate::{
    Server,
    backend::Backend,
    client::text,
    upstream_tokens::{Caller, FakeServer, assert_names_where_to_go, caller_with, config_with},
    with_authorization_server,
};

const AUDIENCE: &str = "https://as.files.example";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
const OPEN: &str = "{type: unauthenticated}";

fn on_behalf_of(provider: &IdentityProvider) -> String {
    let url = &provider.issuer;
    format!(
        "{{type: obo, obo: {{tokenUrl: \"{url}/token\", clientId: app, clientSecret: s3cret, audience: \"api://files\", \
         subjectTokenProviderName: corp}}}}"
    )
}

fn cross_app(provider: &IdentityProvider) -> String {
    let url = &provider.issuer;
    format!(
        "{{type: xaa, xaa: {{idpTokenUrl: \"{url}/provider\", targetTokenUrl: \"{url}/token\", targetClientId: us, \
         targetAudience: \"{AUDIENCE}\", subjectProviderName: corp}}}}"
    )
}

fn token_exchange(provider: &IdentityProvider) -> String {
    let url = &provider.issuer;
    format!(
        "{{type: token_exchange, tokenExchange: {{tokenUrl: \"{url}/token\", subjectProviderName: corp}}}}"
    )
}

/// The address of AWS is not replaced: nothing is sent there without a token of the provider.
fn aws_sts(_: &IdentityProvider) -> String {
    let role = "arn:aws:iam::123456789012:role/dev";
    format!(
        "{{type: aws_sts, awsSts: {{region: eu-west-1, fallbackRoleArn: \"{role}\", subjectProviderName: corp}}}}"
    )
}

/// An assertion for this audience.
fn assertion(provider: &IdentityProvider, audience: &str) -> Value {
    let token = provider.token(json!({"aud": audience}));
    json!({"access_token": token, "token_type": "N_A", "issued_token_type": ID_JAG})
}

async fn started(fake: &Arc<FakeServer>, one: &Backend, two: &Backend, first: &str) -> Server {
    let config = config_with(one, two, first, OPEN);
    let settings = Settings::parse(&config).unwrap_or_else(|errors| panic!("{errors:?}"));
    Server::run(with_authorization_server(settings, fake.clone()).unwrap(), None, None).await
}

fn assert_succeeded(response: &Value) {
    assert!(response["result"].is_object() && !text(response).1, "{response}");
}

/// Uses a tool, a resource and a prompt of the first backend.
async fn use_all(caller: &Caller) {
    for (method, params) in [
        ("tools/call", json!({"name": "one_echo"})),
        ("resources/read", json!({"uri": "kit://1"})),
        ("prompts/get", json!({"name": "one_greet"})),
    ] {
        let response = caller.request(method, params).await;
        assert_succeeded(&response);
    }
}

#[tokio::test]
async fn tools_resources_and_prompts_are_used_with_the_token_of_their_caller() {
    for (strategy, subject, of_ann) in [
        (on_behalf_of as fn(&IdentityProvider) -> String, "assertion", "corp-token"),
        (token_exchange, "subject_token", "corp-token"),
        (cross_app, "", ""),
    ] {
        let provider = IdentityProvider::start().await;
        provider.answer("/provider", assertion(&provider, AUDIENCE));
        let (one, two) = (Backend::start().await, Backend::start().await);
        one.add_prompt();
        let server = started(&FakeServer::new(), &one, &two, &strategy(&provider)).await;
        let (ann, bob) = (caller_with(&server, "valid").await, caller_with(&server, "other").await);
        use_all(&ann).await;
        use_all(&bob).await;
        let requests = provider.requests("/token");
        assert_eq!(requests.len(), 2, "one exchange for each caller");
        if !subject.is_empty() {
            assert_eq!(requests[0].form[subject], of_ann);
            assert_eq!(requests[1].form[subject], format!("{of_ann}-of-bob"));
        }
        for method in ["tools/call", "resources/read", "prompts/get"] {
            let expected = ["exchanged-1", "exchanged-2"].map(|token| Some(format!("Bearer {token}")));
            assert_eq!(one.authorizations(method), expected, "{method}");
        }
        let ids = provider.requests("/provider");
        let ids: Vec<&str> = ids.iter().map(|request| &*request.form["subject_token"]).collect();
        let is_cross_app = subject.is_empty();
        assert_eq!(ids, if is_cross_app { vec!["id-corp-token", "id-corp-token-of-bob"] } else { vec![] });
    }
}

#[tokio::test]
async fn calls_of_one_caller_at_the_same_time_wait_for_one_exchange() {
    let provider = IdentityProvider::start().await;
    let (one, two) = (Backend::start().await, Backend::start().await);
    let server = started(&FakeServer::new(), &one, &two, &on_behalf_of(&provider)).await;
    let ann = caller_with(&server, "valid").await;
    for response in join_all((0..8).map(|_| ann.call("one_echo"))).await {
        assert_succeeded(&response);
    }
    assert_eq!(provider.requests("/token").len(), 1);
}

#[tokio::test]
async fn a_caller_without_a_credential_sees_the_other_backends_and_an_error_that_names_this_one() {
    let provider = IdentityProvider::start().await;
    provider.answer("/provider", assertion(&provider, AUDIENCE));
    for strategy in [on_behalf_of, cross_app, token_exchange] {
        for needs_credentials in [false, true] {
            let (one, two) = (Backend::start().await, Backend::start().await);
            if needs_credentials {
                one.need_credentials();
            }
            let fake = FakeServer::new();
            fake.set("corp", Err(ProviderTokenError::Expired));
            let server = started(&fake, &one, &two, &strategy(&provider)).await;
            let ann = caller_with(&server, "valid").await;
            assert_succeeded(&ann.call("two_echo").await);
            let failed = ann.call("one_echo").await.to_string();
            assert!(failed.contains("backend one") && failed.contains("corp"), "{failed}");
            // The caller has logged in again.
            fake.set("corp", Ok("corp-token"));
            assert_succeeded(&ann.call("one_echo").await);
        }
    }
}

#[tokio::test]
async fn a_call_that_needs_another_login_names_where_to_go_whatever_the_token_is_exchanged_for() {
    let provider = IdentityProvider::start().await;
    for strategy in [on_behalf_of, cross_app, token_exchange, aws_sts] {
        let (one, two) = (Backend::start().await, Backend::start().await);
        let fake = FakeServer::new();
        let server = started(&fake, &one, &two, &strategy(&provider)).await;
        for error in [ProviderTokenError::Expired, ProviderTokenError::NotConnected] {
            fake.set("corp", Err(error));
            assert_names_where_to_go(&server, "one_echo").await;
        }
        assert!(one.received("tools/call").is_empty(), "a call without a credential reached the backend");
    }
}

#[tokio::test]
async fn a_token_that_another_application_could_use_reaches_no_backend_and_no_client() {
    let provider = IdentityProvider::start().await;
    let evil = assertion(&provider, "https://as.evil.example");
    provider.answer("/provider", evil.clone());
    let (one, two) = (Backend::start().await, Backend::start().await);
    let server = started(&FakeServer::new(), &one, &two, &cross_app(&provider)).await;
    let ann = caller_with(&server, "valid").await;
    let failed = ann.call("one_echo").await.to_string();
    assert!(failed.contains("backend one"), "{failed}");
    assert!(!failed.contains(evil["access_token"].as_str().unwrap()), "{failed}");
    assert!(!failed.contains("corp-token"), "{failed}");
    assert!(provider.requests("/token").is_empty());
    assert!(one.received("tools/call").is_empty());
}

#[test]
fn a_strategy_that_cannot_work_is_an_error_that_names_the_field() {
    let rejected = |strategy: &str| {
        let config = format!(
            "name: t\ngroupRef: t\nincomingAuth: {{type: anonymous}}\noutgoingAuth: {{source: inline, default: {strategy}}}\n\
             aggregation: {{conflictResolution: prefix, conflictResolutionConfig: {{prefixFormat: \"{{workload}}_\"}}}}\n\
             backends: [{{name: a, url: \"http://localhost:1\", transport: streamable-http}}]\n"
        );
        let settings = Settings::parse(&config).unwrap_or_else(|errors| panic!("{errors:?}"));
        let listen = skep_vmcp::Listen { host: "127.0.0.1".into(), session_life: None, audits: false };
        settings.server(&listen, None).err().unwrap().to_string()
    };
    let role = "arn:aws:iam::123456789012:role/dev";
    for (strategy, expected) in [
        ("{type: obo, obo: {tokenUrl: \"https://login.example/t\"}}".to_owned(), "obo.scopes: or audience"),
        ("{type: obo, obo: {tokenUrl: \"http://login.example/t\", audience: a}}".into(), "tokenUrl: must be https"),
        (
            "{type: obo, obo: {tokenUrl: \"https://login.example/t\", audience: a, clientSecretEnv: SKEP_UNSET}}".into(),
            "obo.clientSecretEnv: the environment variable SKEP_UNSET is not set",
        ),
        (
            "{type: obo, obo: {tokenUrl: \"https://login.example/t\", audience: a, subjectTokenProviderName: corp}}".into(),
            "obo.subjectTokenProviderName: needs an authorization server",
        ),
        (
            "{type: xaa, xaa: {idpTokenUrl: \"http://idp.example\", targetTokenUrl: \"https://t.example\", targetAudience: a}}"
                .into(),
            "idpTokenUrl: must be https",
        ),
        (
            "{type: xaa, xaa: {idpTokenUrl: \"https://idp.example\", targetTokenUrl: \"https://t.example\", \
             targetAudience: a, subjectTokenType: jwt}}"
                .into(),
            "xaa.subjectTokenType: must be",
        ),
        ("{type: aws_sts, awsSts: {region: eu-west-1}}".into(), "awsSts: set fallback_role_arn or role_mappings"),
        (format!("{{type: aws_sts, awsSts: {{region: EU, fallbackRoleArn: \"{role}\"}}}}"), "awsSts: region"),
        (
            format!("{{type: aws_sts, awsSts: {{region: eu-west-1, fallbackRoleArn: \"{role}\", subjectProviderName: c}}}}"),
            "awsSts.subjectProviderName: needs an authorization server",
        ),
    ] {
        let error = rejected(&strategy);
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn a_token_that_its_backend_rejects_is_exchanged_again_once_in_a_while() {
    let provider = IdentityProvider::start().await;
    let (one, two) = (Backend::start().await, Backend::start().await);
    let server = started(&FakeServer::new(), &one, &two, &on_behalf_of(&provider)).await;
    let ann = caller_with(&server, "valid").await;
    assert_succeeded(&ann.call("one_echo").await);
    one.reject("Bearer exchanged-1");
    assert_succeeded(&ann.call("one_echo").await);
    assert_eq!(provider.requests("/token").len(), 2);
    one.reject("Bearer exchanged-2");
    for _ in 0..2 {
        let failed = ann.call("one_echo").await;
        assert!(text(&failed).0.contains("rejects the credentials"), "{failed}");
    }
    assert_eq!(provider.requests("/token").len(), 2);
}

#[tokio::test]
async fn a_provider_that_does_not_exist_fails_the_calls_of_its_backend_alone() {
    let (one, two) = (Backend::start().await, Backend::start().await);
    let strategy = "{type: upstream_inject, upstreamInject: {providerName: crop}}";
    let server = started(&FakeServer::new(), &one, &two, strategy).await;
    let ann = caller_with(&server, "valid").await;
    assert_succeeded(&ann.call("two_echo").await);
    let failed = ann.call("one_echo").await;
    assert!(text(&failed).0.contains("the authorization server has no provider \"crop\""), "{failed}");
}
