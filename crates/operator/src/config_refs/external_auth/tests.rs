use serde_json::{Value, json};

use skep_api::refs::ExternalAuthConfigRef;
use skep_config::{RunConfig, run_config::RemoteAuth};

use super::*;
use crate::config_refs::{
    ConfigRef,
    samples::{fields, resolved, sample, variables},
};

fn spec(type_: &str, fields: Value) -> MCPExternalAuthConfigSpec {
    sample(json!({"type": type_, type_: fields}))
}

fn upstream(spec: &MCPExternalAuthConfigSpec) -> ConfigRef<ExternalAuthConfigRef> {
    resolved(ExternalAuthConfigRef::default(), MCPExternalAuthConfig::new("auth", spec.clone()))
}

fn run_config(spec: &MCPExternalAuthConfigSpec) -> RunConfig {
    let mut run_config = RunConfig::default();
    upstream(spec).add_to(&mut run_config);
    run_config
}

fn secret(name: &str, key: &str) -> Value {
    json!({"name": name, "key": key})
}

#[test]
fn a_token_exchange_replaces_the_callers_token_unless_a_header_is_set() {
    let minimal = spec("tokenExchange", json!({"tokenUrl": "https://sts.example", "audience": "crm"}));
    let replaced = TokenExchange {
        token_url: "https://sts.example".into(),
        audience: "crm".into(),
        header_strategy: Some(HeaderStrategy::Replace),
        ..TokenExchange::default()
    };
    assert_eq!(run_config(&minimal).token_exchange_config, Some(replaced.clone()));
    assert_eq!(upstream(&minimal).variables().count(), 0);

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
    assert_eq!(run_config(&full).token_exchange_config, Some(custom));
    assert_eq!(
        variables(|list| upstream(&full).add_env(list)),
        ["TOOLHIVE_TOKEN_EXCHANGE_CLIENT_SECRET<sts/secret"]
    );
}

#[test]
fn types_of_tokens_have_their_full_name() {
    for name in ["id_token", "urn:ietf:params:oauth:token-type:id_token"] {
        assert_eq!(token_type(name), "urn:ietf:params:oauth:token-type:id_token");
    }
}

#[test]
fn a_bearer_token_is_named_after_its_secret() {
    let spec = spec("bearerToken", json!({"tokenSecretRef": secret("api-token", "token")}));
    let expected =
        RemoteAuth { bearer_token: "api-token,target=bearer_token".into(), ..RemoteAuth::default() };
    assert_eq!(run_config(&spec).remote_auth_config, Some(expected));
    assert_eq!(
        variables(|list| upstream(&spec).add_env(list)),
        ["TOOLHIVE_SECRET_api-token<api-token/token"]
    );
}

#[test]
fn aws_sts_has_defaults_for_omitted_fields() {
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
    assert_eq!(MCPExternalAuthConfig::check(&spec), []);
    assert_eq!(run_config(&spec).aws_sts_config, Some(expected));
}

#[test]
fn aws_sts_needs_a_role_and_one_rule_per_mapping() {
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
        let errors = MCPExternalAuthConfig::check(&spec("awsSts", sts));
        let [only] = errors.as_slice() else { panic!("{errors:?}") };
        assert!(only.to_string().starts_with(error), "{only}");
    }
}

#[test]
fn some_types_give_a_proxy_nothing() {
    for spec in [
        sample(json!({"type": "unauthenticated"})),
        spec("headerInjection", json!({"headerName": "X-Key", "valueSecretRef": secret("a", "b")})),
        spec("upstreamInject", json!({"providerName": "corp"})),
        spec(
            "xaa",
            json!({"idpTokenUrl": "https://a.example", "targetTokenUrl": "https://b.example", "targetAudience": "b"}),
        ),
    ] {
        assert_eq!(MCPExternalAuthConfig::check(&spec), [], "{:?}", spec.type_);
        assert_eq!(run_config(&spec), RunConfig::default(), "{:?}", spec.type_);
        assert_eq!(upstream(&spec).variables().count(), 0);
    }
}

#[test]
fn on_behalf_of_needs_a_tenant_a_client_and_an_application() {
    let empty = MCPExternalAuthConfig::check(&spec("obo", json!({})));
    assert_eq!(fields(&empty), ["obo.tenantId", "obo.clientId", "obo.clientSecretRef", "obo.audience"]);
    let whole = json!({
        "tenantId": "contoso.example", "clientId": "app", "clientSecretRef": secret("s", "k"), "scopes": ["read"],
    });
    assert_eq!(MCPExternalAuthConfig::check(&spec("obo", whole)), []);
}

#[test]
fn the_type_and_its_fields_belong_together() {
    for (written, error) in [
        (json!({"type": "bearerToken"}), "bearerToken: is required with type bearerToken"),
        (
            json!({"type": "unauthenticated", "upstreamInject": {"providerName": "corp"}}),
            "upstreamInject: does not apply to type unauthenticated: remove it",
        ),
    ] {
        let spec = sample(written);
        let errors: Vec<_> = MCPExternalAuthConfig::check(&spec).iter().map(ToString::to_string).collect();
        assert_eq!(errors, [error]);
    }
}

#[test]
fn addresses_and_secrets_are_required() {
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
        let errors = MCPExternalAuthConfig::check(&spec);
        let [only] = errors.as_slice() else { panic!("{errors:?}") };
        assert!(only.to_string().starts_with(error), "{only}");
    }
}

#[test]
fn every_mistake_is_reported() {
    let spec = sample(json!({
        "type": "bearerToken",
        "tokenExchange": {"tokenUrl": "sts", "audience": "a", "clientSecretRef": secret("", "k")},
        "embeddedAuthServer": {"issuer": "as", "upstreamProviders": []},
    }));
    let expected = [
        "tokenExchange",
        "bearerToken",
        "embeddedAuthServer",
        "tokenExchange.tokenUrl",
        "tokenExchange.clientSecretRef.name",
        "embeddedAuthServer.issuer",
        "embeddedAuthServer.upstreamProviders",
    ];
    assert_eq!(fields(&MCPExternalAuthConfig::check(&spec)), expected);
    let mappings = json!([{"roleArn": "a"}, {"matcher": "claims.a =", "roleArn": "a"}]);
    let sts = self::spec("awsSts", json!({"region": "eu-west-1", "roleMappings": mappings}));
    assert_eq!(
        fields(&MCPExternalAuthConfig::check(&sts)),
        ["awsSts.roleMappings[0]", "awsSts.roleMappings[1].matcher"]
    );
}
