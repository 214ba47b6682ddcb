//! Which users may log in.

use serde_json::Value;
use skep_config::auth_server::AllowedUsers;

/// Why a user may not log in. It names what is missing, and nothing of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotAllowed {
    /// The domain of the e-mail address is another one, or the provider has not verified the address.
    #[error("its e-mail address is not verified, or is of another organization")]
    Email,
    /// A claim has no value that is allowed.
    #[error("it is not in a group or role that may")]
    Claim,
}

/// Checks what the first identity provider says about a user. What it does not say is not allowed.
pub(crate) fn check_user(allowed: &AllowedUsers, claims: &Value) -> Result<(), NotAllowed> {
    let domains = &allowed.email_domains;
    if !domains.is_empty() {
        // Anyone can claim an address that nobody has verified.
        let is_verified = claims["email_verified"] == true || claims["email_verified"] == "true";
        let domain =
            claims["email"].as_str().and_then(|email| email.rsplit_once('@')).map(|(_, domain)| domain);
        let is_allowed = |domain: &str| domains.iter().any(|allowed| allowed.eq_ignore_ascii_case(domain));
        if !is_verified || !domain.is_some_and(is_allowed) {
            return Err(NotAllowed::Email);
        }
    }
    let has = |name: &str, values: &[String]| match &claims[name] {
        Value::Array(items) => items.iter().any(|item| is_one_of(item, values)),
        item => is_one_of(item, values),
    };
    match allowed.claims.iter().all(|claim| has(&claim.name, &claim.values)) {
        true => Ok(()),
        false => Err(NotAllowed::Claim),
    }
}

/// Numbers and booleans are compared as JSON writes them.
fn is_one_of(item: &Value, values: &[String]) -> bool {
    match item {
        Value::String(text) => values.contains(text),
        Value::Number(_) | Value::Bool(_) => values.contains(&item.to_string()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn allowed(rules: Value) -> AllowedUsers {
        serde_json::from_value(rules).unwrap()
    }

    #[test]
    fn an_email_address_counts_if_the_provider_has_verified_it_and_by_its_whole_domain() {
        let rules = allowed(json!({"email_domains": ["example.com"]}));
        let of = |email: &str, verified: Value| {
            check_user(&rules, &json!({"email": email, "email_verified": verified}))
        };
        assert_eq!(of("ann@example.com", json!(true)), Ok(()));
        assert_eq!(of("ann@EXAMPLE.com", json!("true")), Ok(()));
        for (email, verified) in [
            ("ann@example.com", json!(false)),
            ("ann@example.com", json!("false")),
            ("ann@example.com", Value::Null),
            ("ann@example.com", json!(1)),
            ("ann@evil.example.com", json!(true)),
            ("ann@notexample.com", json!(true)),
            ("ann@example.com@evil.test", json!(true)),
            ("ann@example.com.", json!(true)),
            ("ann@example.com ", json!(true)),
            ("example.com", json!(true)),
            ("", json!(true)),
        ] {
            assert_eq!(of(email, verified), Err(NotAllowed::Email), "{email}");
        }
        assert_eq!(check_user(&rules, &Value::Null), Err(NotAllowed::Email));
    }

    #[test]
    fn each_claim_must_have_one_of_its_values() {
        let rules = allowed(json!({"claims": [
            {"name": "groups", "values": ["staff", "admins"]}, {"name": "https://example.com/tenant", "values": ["7"]},
        ]}));
        let of = |groups: Value, tenant: Value| {
            check_user(&rules, &json!({"groups": groups, "https://example.com/tenant": tenant}))
        };
        assert_eq!(of(json!(["guests", "staff"]), json!("7")), Ok(()));
        assert_eq!(of(json!("admins"), json!(7)), Ok(()));
        for (groups, tenant) in [
            (json!(["staff"]), json!("8")),
            (json!(["staff"]), Value::Null),
            (json!(["staff2", "Staff"]), json!("7")),
            (json!("staff admins"), json!("7")),
            (json!({"staff": true}), json!("7")),
            (json!([["staff"]]), json!("7")),
            (json!([]), json!("7")),
        ] {
            assert_eq!(of(groups, tenant), Err(NotAllowed::Claim));
        }
        assert_eq!(check_user(&allowed(json!({})), &Value::Null), Ok(()), "without conditions, all may");
    }

    #[test]
    fn a_claim_without_values_lets_no_one_in() {
        let rules = allowed(json!({"claims": [{"name": "groups", "values": []}]}));
        assert_eq!(check_user(&rules, &json!({"groups": ["staff"]})), Err(NotAllowed::Claim));
    }
}
