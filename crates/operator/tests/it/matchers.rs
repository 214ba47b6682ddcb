//! Invalid expressions over claims.

use crate::kinds::ExternalAuthConfigs;
use serde_json::{Value, json};
use skep_world::Watched;

use crate::fixture::Fixture;

fn valid(object: &Value) -> &Value {
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten().find(|condition| condition["type"] == "Valid").unwrap_or(&Value::Null)
}

#[tokio::test]
async fn an_expression_that_does_not_compile_makes_the_configuration_invalid_until_it_is_fixed() {
    let fixture = Fixture::new().await;
    let role = "arn:aws:iam::123456789012:role/Reader";
    let matcher = |matcher: &str| {
        let mappings = json!([{"claim": "readers", "roleArn": role}, {"matcher": matcher, "roleArn": role}]);
        json!({"region": "eu-west-1", "roleMappings": mappings})
    };
    let wrong = json!({"type": "awsSts", "awsSts": matcher("'admins' in claims.groups &&")});
    fixture.create(ExternalAuthConfigs::kind(), "aws", wrong).await;
    let provider = json!({
        "name": "corp", "type": "oidc", "oidcConfig": {"issuerUrl": "https://idp.example", "clientId": "mcp"},
    });
    let issuer = json!({
        "issuerUrl": "https://other.example", "expectedAudience": "a", "allowedDelegateClients": ["b"],
        "actorMatcher": "claims.act.lower() == 'ci'",
    });
    let server =
        json!({"issuer": "https://as.example", "upstreamProviders": [provider], "trustedIssuers": [issuer]});
    let wrong = json!({"type": "embeddedAuthServer", "embeddedAuthServer": server});
    fixture.create(ExternalAuthConfigs::kind(), "server", wrong).await;

    for (name, message) in [
        ("aws", "awsSts.roleMappings[1].matcher: line 1, column 29, after `'admins' in claims.groups &&`: "),
        ("server", "embeddedAuthServer.trustedIssuers[0].actorMatcher: there is no function \"lower\": "),
    ] {
        let reported = |object: &Value| {
            let condition = valid(object);
            condition["status"] == "False"
                && condition["reason"] == "ValidationFailed"
                && condition["message"].as_str().unwrap().starts_with(message)
        };
        fixture.until_any(ExternalAuthConfigs::kind(), name, "reported", reported).await;
    }
    let fixed = json!({"spec": {"awsSts": matcher("'admins' in claims.groups && claims.email_verified")}});
    fixture.patch_any(ExternalAuthConfigs::kind(), "aws", fixed).await;
    fixture
        .until_any(ExternalAuthConfigs::kind(), "aws", "valid", |object| valid(object)["status"] == "True")
        .await;
    fixture.operator.stop().await;
}
