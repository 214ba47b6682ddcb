//! Assertions with which clients authenticate (RFC 7523, section 3).

use std::time::Duration;

use serde_json::Value;

use crate::{keys::Claims, limits};

/// The id of an assertion, and how long it must be remembered, if its claims are right: the client speaks of itself, to this
/// server, and for a short time. Its signature is verified already.
pub(crate) fn client_assertion(
    claims: &Claims,
    client: &str,
    audiences: &[&str],
    now: u64,
) -> Option<(String, Duration)> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let time = |name: &str| claims.get(name).and_then(Value::as_f64);
    if text("iss") != Some(client) || text("sub") != Some(client) {
        return None;
    }
    let is_for_us = match claims.get("aud") {
        Some(Value::String(one)) => audiences.contains(&&**one),
        Some(Value::Array(several)) => {
            several.iter().filter_map(Value::as_str).any(|one| audiences.contains(&one))
        }
        _ => false,
    };
    let (begin, end) = (time("nbf").unwrap_or_default(), time("exp")?);
    let left = end - now as f64;
    let is_now = left > 0.0 && begin <= (now + limits::SKEW) as f64;
    if !is_for_us || !is_now || left > (limits::CLIENT_ASSERTION_LIFE + limits::SKEW) as f64 {
        return None;
    }
    Some((text("jti")?.to_owned(), Duration::from_secs(left as u64 + 1)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_client_speaks_of_itself_to_this_server_for_a_short_time() {
        let good = json!({"iss": "c", "sub": "c", "aud": "as", "exp": 1060, "jti": "1"});
        let check = |changes: Value| {
            let mut claims = good.as_object().unwrap().clone();
            claims.extend(changes.as_object().unwrap().clone());
            client_assertion(&claims, "c", &["as", "as/token"], 1000)
        };
        assert_eq!(check(json!({"aud": ["x", "as/token"]})), Some(("1".into(), Duration::from_secs(61))));
        for wrong in [
            json!({"iss": "d"}),
            json!({"sub": "d"}),
            json!({"aud": "x"}),
            json!({"exp": 1000}),
            json!({"exp": 9000}),
            json!({"exp": null}),
            json!({"nbf": 2000}),
            json!({"jti": null}),
        ] {
            assert_eq!(check(wrong.clone()), None, "{wrong}");
        }
    }
}
