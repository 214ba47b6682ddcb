//! The table of what can be wrong with an MCPServer.

use crate::kinds::ExternalAuthConfigs;
use serde_json::{Value, json};
use skep_operator::resources::ConfigMaps;
use skep_world::Watched;

use super::rows::{NOT_APPLIED, Row, object, row};
use crate::{fixture::Fixture, references::PERMIT};

/// What is wrong with the spec, or with what it names directly.
pub(super) fn of_the_spec() -> Vec<Row> {
    let redis = json!({"provider": "redis", "address": "redis:6379"});
    let limit = |period: &str| json!({"maxTokens": 1, "refillPeriod": period});
    let limits = |limits: Value| {
        let invalid = "RateLimitConfigInvalid";
        let wrong = json!({"sessionStorage": redis, "rateLimiting": limits});
        row(wrong, &[("RateLimitConfigValid", invalid)], Some(invalid))
    };
    let without_condition = |wrong: Value| row(wrong, &[], NOT_APPLIED);
    let document =
        json!({"version": "1.0", "type": "cedarv1", "cedar": {"policies": [PERMIT], "entities_json": "[]"}});
    let policies = json!({"data": {"authz.json": document.to_string()}});
    let from_map = |name: &str| {
        without_condition(json!({"authzConfig": {"type": "configMap", "configMap": {"name": name}}}))
    };
    vec![
        limits(json!({"shared": limit("0s")})),
        limits(json!({"shared": limit("1m"), "tools": [{"name": "a", "shared": limit("soon")}]})),
        without_condition(json!({"permissionProfile": {"type": "builtin", "name": "wide"}})),
        without_condition(json!({"externalAuthConfigRef": {"name": "aws"}})),
        without_condition(
            json!({"authzConfig": {"type": "inline", "inline": {"policies": ["permit", "forbid"]}}}),
        ),
        from_map("later").until(ConfigMaps::kind(), "later", policies),
        from_map("nonsense"),
        row(
            json!({"podTemplateSpec": {"spec": {"containers": "many"}}}),
            &[("PodTemplateValid", "InvalidPodTemplateSpec")],
            Some("InvalidPodTemplateSpec"),
        ),
    ]
}

/// An MCPExternalAuthConfig that only a remote server can use.
pub(super) async fn create_bad_ones(fixture: &Fixture) {
    let role = json!({"claim": "team", "roleArn": "arn:aws:iam::123456789012:role/Reader"});
    let sts = json!({"region": "eu-west-1", "roleMappings": [role]});
    let aws = object(ExternalAuthConfigs::kind(), "aws", json!({"spec": {"type": "awsSts", "awsSts": sts}}));
    fixture.create_any(ExternalAuthConfigs::kind(), &aws).await;
}
