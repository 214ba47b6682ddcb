//! Validation of a token's claims, from a JWT or from introspection.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};
use skep_config::run_config::bare_issuer;

use crate::{AuthenticationError, limits};

/// The claims of a token.
pub(crate) type Claims = Map<String, Value>;

/// The issuer and audience that a token must have. Empty means any.
pub(crate) struct Expected {
    issuer: String,
    audience: String,
}

impl Expected {
    pub(crate) fn new(issuer: &str, audience: &str) -> Self {
        Self { issuer: bare_issuer(issuer).to_owned(), audience: audience.trim().to_owned() }
    }

    /// Validates the claims at the current time.
    pub(crate) fn check(&self, claims: &Claims) -> Result<(), AuthenticationError> {
        self.check_at(claims, now())
    }

    fn check_at(&self, claims: &Claims, now: Duration) -> Result<(), AuthenticationError> {
        let issuer = claims.get("iss").and_then(Value::as_str).unwrap_or_default();
        if !self.issuer.is_empty() && bare_issuer(issuer) != self.issuer {
            return Err(AuthenticationError::Token("the token is of another issuer"));
        }
        if !self.audience.is_empty() && !is_for(claims, &self.audience) {
            return Err(AuthenticationError::Token("the token is for another audience"));
        }
        match claims.get("exp").map(Value::as_f64) {
            Some(Some(end)) if end > now.as_secs_f64() => {}
            Some(Some(_)) => return Err(AuthenticationError::Token("the token has expired")),
            Some(None) => {
                return Err(AuthenticationError::Token(
                    "the expiration time of the token (exp) is not a number",
                ));
            }
            None => return Err(AuthenticationError::Token("the token has no expiration time (exp)")),
        }
        match claims.get("nbf").map(Value::as_f64) {
            None => {}
            Some(Some(begin)) if begin <= (now + limits::EARLY).as_secs_f64() => {}
            Some(_) => return Err(AuthenticationError::Token("the token is not valid yet")),
        }
        match claims.get("sub").and_then(Value::as_str) {
            Some(subject) if !subject.is_empty() => Ok(()),
            _ => Err(AuthenticationError::Token("the token has no subject (sub)")),
        }
    }
}

/// The time until the claims expire.
pub(crate) fn rest(claims: &Claims) -> Duration {
    let end = claims.get("exp").and_then(Value::as_f64).unwrap_or_default();
    Duration::try_from_secs_f64(end).unwrap_or(Duration::MAX).saturating_sub(now())
}

/// The time since 1970.
pub(crate) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn is_for(claims: &Claims, audience: &str) -> bool {
    match claims.get("aud") {
        Some(Value::String(one)) => one == audience,
        Some(Value::Array(several)) => several.iter().any(|one| one == audience),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn issuer_audience_expiry_and_subject_are_validated() {
        let expected = Expected::new("https://issuer.example/", "crm");
        let now = Duration::from_secs(1000);
        let good = json!({"iss": "https://issuer.example", "aud": ["other", "crm"], "exp": 1000.5, "nbf": 1005, "sub": "a"});
        let check = |changed: Value| {
            let mut claims = good.as_object().unwrap().clone();
            for (key, value) in changed.as_object().unwrap() {
                if value.is_null() {
                    claims.remove(key)
                } else {
                    claims.insert(key.clone(), value.clone())
                };
            }
            expected.check_at(&claims, now)
        };
        for fine in [
            json!({}),
            json!({"iss": "https://issuer.example/"}),
            json!({"aud": "crm"}),
            json!({"nbf": null}),
        ] {
            assert_eq!(check(fine.clone()), Ok(()), "{fine}");
        }
        for wrong in [
            json!({"iss": "https://issuer.example.evil.example"}),
            json!({"iss": ["https://issuer.example"]}),
            json!({"iss": null}),
            json!({"aud": "CRM"}),
            json!({"aud": null}),
            json!({"aud": [["crm"]]}),
            json!({"exp": null}),
            json!({"exp": 1000}),
            json!({"exp": "9999"}),
            json!({"nbf": 1006}),
            json!({"nbf": "0"}),
            json!({"sub": null}),
            json!({"sub": ""}),
            json!({"sub": 7}),
        ] {
            assert!(matches!(check(wrong.clone()), Err(AuthenticationError::Token(_))), "{wrong}");
        }
    }
}
