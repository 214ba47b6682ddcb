//! Assertions that are exchanged for tokens without a client (RFC 7523, section 3).

use serde_json::Value;

use super::is_id_token;
use crate::keys::Claims;

/// What an assertion must have.
pub(crate) struct AssertionRules<'a> {
    /// Any of these (RFC 7523, section 3, item 3).
    pub(crate) audiences: &'a [&'a str],
    /// How long it may be valid, in seconds.
    pub(crate) longest: u64,
    pub(crate) now: u64,
}

/// An assertion that is accepted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Assertion {
    pub(crate) subject: String,
    /// When it expires, in seconds since 1970.
    pub(crate) expires: u64,
    /// Its id, if it has one.
    pub(crate) id: Option<String>,
}

/// What an assertion asserts, if its claims are right. Its signature is verified already.
pub(crate) fn assertion(
    header: &Claims,
    claims: &Claims,
    rules: &AssertionRules<'_>,
) -> Result<Assertion, &'static str> {
    let type_ = header.get("typ").and_then(Value::as_str).unwrap_or("JWT");
    if !type_.eq_ignore_ascii_case("jwt") {
        return Err("the assertion has a type (typ) that is not supported");
    }
    if is_id_token(claims) {
        return Err("the assertion is an ID token");
    }
    let is_expected = |audience: &str| rules.audiences.contains(&audience);
    let is_for_us = match claims.get("aud") {
        Some(Value::String(one)) => is_expected(one),
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).any(is_expected),
        _ => false,
    };
    if !is_for_us {
        return Err("the assertion is for another audience");
    }
    let time = |name: &str| claims.get(name).and_then(Value::as_f64).filter(|time| *time >= 0.0);
    let (Some(issued), Some(expires)) = (time("iat"), time("exp")) else {
        return Err("the assertion must have the times iat and exp");
    };
    let now = rules.now as f64;
    if expires <= now
        || issued > now + crate::limits::SKEW as f64
        || time("nbf").is_some_and(|begin| begin > now)
    {
        return Err("the assertion is not valid at this time");
    }
    if expires - issued > rules.longest as f64 || now - issued > rules.longest as f64 {
        return Err("the assertion is valid for longer than is configured");
    }
    let text = |name: &str| {
        claims.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let subject = text("sub").ok_or("the assertion has no subject")?;
    Ok(Assertion { subject, expires: expires as u64, id: text("jti") })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_assertion_is_short_lived_and_for_this_server() {
        let good = json!({"aud": "as", "iat": 1000, "exp": 1240, "sub": "svc", "jti": "1"});
        let check = |header: Value, changes: Value| {
            let mut claims = good.as_object().unwrap().clone();
            claims.extend(changes.as_object().unwrap().clone());
            let rules = AssertionRules { audiences: &["as", "as/token"], longest: 300, now: 1000 };
            assertion(header.as_object().unwrap(), &claims, &rules)
        };
        let expected = Assertion { subject: "svc".into(), expires: 1240, id: Some("1".into()) };
        assert_eq!(check(json!({"typ": "JWT"}), json!({"aud": ["x", "as/token"]})), Ok(expected));
        for wrong in [
            json!({"aud": "x"}),
            json!({"exp": 1000}),
            json!({"exp": 1301}),
            json!({"iat": null}),
            json!({"iat": 600}),
            json!({"nonce": "n"}),
            json!({"at_hash": "h"}),
            json!({"nbf": 1001}),
            json!({"sub": null}),
        ] {
            assert!(check(json!({}), wrong.clone()).is_err(), "{wrong}");
        }
        assert!(check(json!({"typ": "at+jwt"}), json!({})).is_err());
    }
}
