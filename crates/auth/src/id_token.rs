//! ID tokens of providers where users log in (OpenID Connect Core 1.0, section 3.1.3.7).

use serde_json::{Map, Value};

use crate::limits;

/// Why an ID token is not accepted.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct IdTokenError(&'static str);

/// What an ID token must have.
pub struct ExpectedIdToken<'a> {
    /// Its issuer.
    pub issuer: &'a str,
    /// The client that it is for.
    pub client_id: &'a str,
    /// The nonce of the login. A token that comes with a refresh has none.
    pub nonce: Option<&'a str>,
    /// The claim with the subject.
    pub subject_claim: &'a str,
    /// The time, in seconds since 1970.
    pub now: u64,
}

/// The subject of an ID token whose signature was verified, if its claims are right.
pub fn id_token_subject(
    claims: &Map<String, Value>,
    expected: &ExpectedIdToken<'_>,
) -> Result<String, IdTokenError> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str).unwrap_or_default();
    let time = |name: &str| claims.get(name).and_then(Value::as_f64);
    let now = expected.now as f64;
    if text("iss").trim_end_matches('/') != expected.issuer.trim_end_matches('/') {
        return Err(IdTokenError("the ID token is of another issuer"));
    }
    let audiences: Vec<&str> = match claims.get("aud") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !audiences.contains(&expected.client_id) {
        return Err(IdTokenError("the ID token is for another client"));
    }
    if (audiences.len() > 1 || claims.contains_key("azp")) && text("azp") != expected.client_id {
        return Err(IdTokenError("the ID token was issued to another client (azp)"));
    }
    if time("exp").is_none_or(|end| end + limits::SKEW.as_secs_f64() <= now) {
        return Err(IdTokenError("the ID token has expired"));
    }
    if time("iat").is_some_and(|issued| issued > now + limits::SKEW.as_secs_f64()) {
        return Err(IdTokenError("the ID token is of the future"));
    }
    if expected.nonce.is_some_and(|nonce| text("nonce") != nonce) {
        return Err(IdTokenError("the ID token is of another login (nonce)"));
    }
    match text(expected.subject_claim) {
        "" => Err(IdTokenError("the ID token has no subject")),
        subject => Ok(subject.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_id_token_is_of_this_login_for_this_client() {
        let good = json!({"iss": "https://idp.example", "aud": "us", "exp": 2000, "iat": 1000, "nonce": "n", "sub": "ann"});
        let check = |changes: Value| {
            let mut claims = good.as_object().unwrap().clone();
            claims.extend(changes.as_object().unwrap().clone());
            let expected = ExpectedIdToken {
                issuer: "https://idp.example",
                client_id: "us",
                nonce: Some("n"),
                subject_claim: "sub",
                now: 1000,
            };
            id_token_subject(&claims, &expected)
        };
        assert_eq!(check(json!({})), Ok("ann".into()));
        assert_eq!(check(json!({"aud": ["us", "them"], "azp": "us"})), Ok("ann".into()));
        for wrong in [
            json!({"iss": "https://evil.example"}),
            json!({"aud": "them"}),
            json!({"aud": ["us", "them"]}),
            json!({"aud": ["us", "them"], "azp": "them"}),
            json!({"azp": "them"}),
            json!({"exp": 900}),
            json!({"exp": null}),
            json!({"iat": 9000}),
            json!({"nonce": "m"}),
            json!({"nonce": null}),
            json!({"sub": ""}),
        ] {
            assert!(check(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
