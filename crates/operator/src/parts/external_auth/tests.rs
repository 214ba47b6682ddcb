use serde_json::{Value, json};

use super::*;
use crate::parts::samples::{sample, variables};

fn spec(type_: &str, fields: Value) -> MCPExternalAuthConfigSpec {
    sample(json!({"type": type_, type_: fields}))
}

fn secret(name: &str, key: &str) -> Value {
    json!({"name": name, "key": key})
}

#[test]
fn a_token_exchange_replaces_the_callers_token_unless_it_has_a_header_of_its_own() {
    let minimal = spec("tokenExchange", json!({"tokenUrl": "https://sts.example", "audience": "crm"}));
    let replaced = TokenExchange {
        token_url: "https://sts.example".into(),
        audience: "crm".into(),
        header_strategy: Some(HeaderStrategy::Replace),
        ..TokenExchange::default()
    };
    assert_eq!(external_auth(&minimal), Ok(ExternalAuth::TokenExchange(replaced.clone())));
    assert!(secrets(&minimal).is_empty());

    let full = spec(
        "tokenExchange",
        json!({
            "tokenUrl": "https://sts.example", "audience": "crm", "clientId": "proxy", "scopes": ["a"],
            "clientSecretRef": secret("sts", "secret"), "externalTokenHeaderName": "X-Token",
            "subjectTokenType": "jwt", "subjectProviderName": "corp",
        }),
    );
    let custom = TokenExchange {
        client_id: "proxy".into(),
        scopes: vec!["a".into()],
        subject_token_type: "urn:ietf:params:oauth:token-type:jwt".into(),
        header_strategy: Some(HeaderStrategy::Custom),
        external_token_header_name: "X-Token".into(),
        ..replaced
    };
    assert_eq!(external_auth(&full), Ok(ExternalAuth::TokenExchange(custom)));
    assert_eq!(variables(|list| add_env(&full, list)), ["TOOLHIVE_TOKEN_EXCHANGE_CLIENT_SECRET<sts/secret"]);
}

#[test]
fn types_of_tokens_are_told_in_full() {
    for name in ["id_token", "urn:ietf:params:oauth:token-type:id_token"] {
        assert_eq!(token_type(name), "urn:ietf:params:oauth:token-type:id_token");
    }
}

#[test]
fn a_bearer_token_is_found_by_the_name_of_its_secret() {
    let spec = spec("bearerToken", json!({"tokenSecretRef": secret("api-token", "token")}));
    let expected =
        RemoteAuth { bearer_token: "api-token,target=bearer_token".into(), ..RemoteAuth::default() };
    assert_eq!(external_auth(&spec), Ok(ExternalAuth::RemoteAuth(Box::new(expected))));
    assert_eq!(variables(|list| add_env(&spec, list)), ["TOOLHIVE_SECRET_api-token<api-token/token"]);
    assert_eq!(secrets(&spec).len(), 1);
}

#[test]
fn aws_sts_has_defaults_for_what_is_left_out() {
    let role = "arn:aws:iam::123456789012:role/Reader";
    let spec = spec(
        "awsSts",
        json!({"region": "eu-west-1", "roleMappings": [{"claim": "team", "roleArn": role, "priority": 0}]}),
    );
    let expected = AwsSts {
        region: "eu-west-1".into(),
        service: "aws-mcp".into(),
        role_mappings: vec![RoleMapping {
            claim: "team".into(),
            role_arn: role.into(),
            priority: Some(0),
            ..RoleMapping::default()
        }],
        role_claim: "groups".into(),
        session_duration: 3600,
        session_name_claim: "sub".into(),
        ..AwsSts::default()
    };
    assert_eq!(check(&spec), Ok(()));
    assert_eq!(external_auth(&spec), Ok(ExternalAuth::AwsSts(expected)));
}

#[test]
fn aws_sts_has_a_role_for_someone_and_one_rule_for_each() {
    let role = "arn:aws:iam::123456789012:role/Reader";
    for (fields, error) in [
        (json!({}), "awsSts: "),
        (json!({"roleMappings": [{"roleArn": role}]}), "awsSts.roleMappings[0]: "),
        (
            json!({"roleMappings": [{"claim": "a", "roleArn": role}, {"claim": "a", "matcher": "b", "roleArn": role}]}),
            "awsSts.roleMappings[1]: ",
        ),
        (
            json!({"roleMappings": [{"matcher": "true", "roleArn": role}, {"matcher": "claim.a", "roleArn": role}]}),
            "awsSts.roleMappings[1].matcher: \"claim\" is not known: the only name is claims",
        ),
    ] {
        let mut sts = json!({"region": "eu-west-1"});
        sts.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let message = check(&spec("awsSts", sts)).unwrap_err();
        assert!(message.starts_with(error), "{message}");
    }
}

#[test]
fn some_types_are_for_virtual_servers_or_for_nothing() {
    for spec in [
        sample(json!({"type": "unauthenticated"})),
        spec("headerInjection", json!({"headerName": "X-Key", "valueSecretRef": secret("a", "b")})),
        spec("upstreamInject", json!({"providerName": "corp"})),
        spec(
            "xaa",
            json!({"idpTokenUrl": "https://a.example", "targetTokenUrl": "https://b.example", "targetAudience": "b"}),
        ),
    ] {
        assert_eq!(check(&spec), Ok(()), "{:?}", spec.type_);
        assert_eq!(external_auth(&spec), Ok(ExternalAuth::Nothing), "{:?}", spec.type_);
        assert!(secrets(&spec).is_empty());
    }
}

#[test]
fn on_behalf_of_is_not_supported() {
    let spec = spec("obo", json!({}));
    let message = "type: \"obo\" is not supported: choose another one, such as tokenExchange".to_owned();
    assert_eq!(check(&spec), Err(message.clone()));
    assert_eq!(external_auth(&spec), Err(message));
}

#[test]
fn the_type_and_its_fields_belong_together() {
    for (written, error) in [
        (json!({"type": "bearerToken"}), "bearerToken: set it, as type is bearerToken"),
        (
            json!({"type": "unauthenticated", "upstreamInject": {"providerName": "corp"}}),
            "upstreamInject: leave it out, as type is unauthenticated",
        ),
    ] {
        assert_eq!(check(&sample(written)), Err(error.into()));
    }
}

#[test]
fn addresses_and_secrets_must_be_there() {
    for (spec, error) in [
        (
            spec("tokenExchange", json!({"tokenUrl": "sts", "audience": "a"})),
            "tokenExchange.tokenUrl: \"sts\" ",
        ),
        (
            spec("bearerToken", json!({"tokenSecretRef": secret("", "k")})),
            "bearerToken.tokenSecretRef.name: ",
        ),
        (
            spec("headerInjection", json!({"headerName": "a", "valueSecretRef": secret("s", "")})),
            "headerInjection.valueSecretRef.key: ",
        ),
    ] {
        let message = check(&spec).unwrap_err();
        assert!(message.starts_with(error), "{message}");
    }
}
