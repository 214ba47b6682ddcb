//! The AWS role of a caller.

use serde_json::{Map, Value};
use skep_authz::Matcher;
use skep_config::run_config;

const ROLE_CLAIM: &str = "groups";

/// The roles, in the order in which they are tried.
pub(super) struct Roles {
    claim: String,
    mappings: Vec<Mapping>,
    fallback: Option<String>,
}

struct Mapping {
    condition: Condition,
    role: String,
}

enum Condition {
    /// The claim holds this value.
    Holds(String),
    /// The claims match.
    Matches(Matcher),
}

impl Roles {
    pub(super) fn new(config: &run_config::AwsSts) -> Result<Self, String> {
        let fallback = Some(&config.fallback_role_arn).filter(|role| !role.is_empty());
        if let Some(role) = fallback {
            check(role).map_err(|error| format!("fallback_role_arn: {error}"))?;
        }
        if fallback.is_none() && config.role_mappings.is_empty() {
            return Err("set fallback_role_arn or role_mappings".into());
        }
        let mut numbered = Vec::new();
        for (index, mapping) in config.role_mappings.iter().enumerate() {
            let read = Mapping::new(mapping).map_err(|error| format!("role_mappings[{index}]: {error}"))?;
            // Roles without a priority come last; equal ones keep their order.
            numbered.push((mapping.priority.is_none(), mapping.priority, read));
        }
        numbered.sort_by_key(|(unnumbered, priority, _)| (*unnumbered, *priority));
        let claim = if config.role_claim.is_empty() { ROLE_CLAIM } else { &config.role_claim };
        Ok(Self {
            claim: claim.to_owned(),
            mappings: numbered.into_iter().map(|(_, _, mapping)| mapping).collect(),
            fallback: fallback.cloned(),
        })
    }

    /// The role of a caller with these claims.
    pub(super) fn of(&self, claims: &Map<String, Value>) -> Option<&str> {
        let matches = |mapping: &&Mapping| match &mapping.condition {
            Condition::Holds(value) => holds(claims.get(&self.claim), value),
            Condition::Matches(matcher) => matcher.matches(claims),
        };
        let mapping = self.mappings.iter().find(matches);
        mapping.map(|mapping| &mapping.role).or(self.fallback.as_ref()).map(String::as_str)
    }
}

impl Mapping {
    fn new(mapping: &run_config::RoleMapping) -> Result<Self, String> {
        check(&mapping.role_arn).map_err(|error| format!("role_arn: {error}"))?;
        let condition = match (mapping.claim.as_str(), mapping.matcher.as_str()) {
            ("", "") => return Err("set claim or matcher".into()),
            (claim, "") => Condition::Holds(claim.to_owned()),
            ("", matcher) => {
                let compiled = Matcher::compile(matcher).map_err(|error| format!("matcher: {error}"))?;
                Condition::Matches(compiled)
            }
            _ => return Err("set claim or matcher, and not both".into()),
        };
        Ok(Self { condition, role: mapping.role_arn.clone() })
    }
}

fn check(role: &str) -> Result<(), String> {
    let parts: Vec<_> = role.splitn(6, ':').collect();
    let known = match parts[..] {
        ["arn", partition, "iam", "", account, name] => {
            partition.starts_with("aws") && account.len() == 12 && name.len() > 5 && name.starts_with("role/")
        }
        _ => false,
    };
    if known {
        Ok(())
    } else {
        Err(format!("{role:?} is no role: write it as arn:aws:iam::123456789012:role/name"))
    }
}

fn holds(claim: Option<&Value>, value: &str) -> bool {
    match claim {
        Some(Value::Array(items)) => items.iter().any(|item| item.as_str() == Some(value)),
        Some(Value::String(text)) => text == value,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arn(name: &str) -> String {
        format!("arn:aws:iam::123456789012:role/{name}")
    }

    fn roles(config: Value) -> Result<Roles, String> {
        Roles::new(&serde_json::from_value(config).unwrap())
    }

    #[test]
    fn mappings_apply_by_priority_then_by_position_and_the_fallback_last() {
        let roles = roles(json!({"fallback_role_arn": arn("fallback"), "role_mappings": [
            {"claim": "staff", "role_arn": arn("staff")},
            {"claim": "dev", "role_arn": arn("dev"), "priority": 5},
            {"matcher": "claims.email.endsWith('@ops.example')", "role_arn": arn("ops"), "priority": 1},
            {"claim": "dev", "role_arn": arn("dev-too"), "priority": 5},
        ]}))
        .unwrap();
        for (claims, expected) in [
            (json!({"groups": ["staff", "dev"], "email": "a@ops.example"}), "ops"),
            (json!({"groups": ["staff", "dev"]}), "dev"),
            (json!({"groups": "staff"}), "staff"),
            (json!({"groups": ["staffer"], "email": 7}), "fallback"),
            (json!({}), "fallback"),
        ] {
            assert_eq!(roles.of(claims.as_object().unwrap()), Some(&*arn(expected)), "{claims}");
        }
    }

    #[test]
    fn without_a_fallback_a_caller_may_have_no_role() {
        let mapping = json!([{"claim": "admin", "role_arn": arn("admin")}]);
        let roles = roles(json!({"role_claim": "roles", "role_mappings": mapping})).unwrap();
        assert_eq!(roles.of(json!({"groups": ["admin"]}).as_object().unwrap()), None);
        assert_eq!(roles.of(json!({"roles": ["admin"]}).as_object().unwrap()), Some(&*arn("admin")));
    }

    #[test]
    fn an_invalid_mapping_is_an_error_that_names_its_position() {
        let mapped = |mapping: Value| json!({"role_mappings": [mapping]});
        for (config, message) in [
            (json!({}), "set fallback_role_arn or role_mappings"),
            (json!({"fallback_role_arn": "admin"}), "fallback_role_arn: \"admin\" is no role"),
            (mapped(json!({"claim": "a"})), "role_mappings[0]: role_arn: \"\" is no role"),
            (mapped(json!({"role_arn": arn("a")})), "role_mappings[0]: set claim or matcher"),
            (
                mapped(json!({"role_arn": arn("a"), "claim": "a", "matcher": "true"})),
                "role_mappings[0]: set claim or matcher, and not both",
            ),
            (mapped(json!({"role_arn": arn("a"), "matcher": "claims."})), "role_mappings[0]: matcher: "),
        ] {
            let error = roles(config).err().unwrap();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
