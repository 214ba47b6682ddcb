//! Token responses of upstreams (RFC 6749, section 5.1).

use serde_json::{Map, Value};
use skep_config::auth_server::TokenResponseMapping;

use super::{
    UpstreamError,
    path::{text_at, value_at},
};
use crate::{limits, rules::scopes};

/// The tokens in a response.
pub(crate) struct TokenResponse {
    pub(crate) access_token: String,
    pub(crate) refresh_token: String,
    pub(crate) id_token: String,
    /// How long the access token is valid, in seconds, if the upstream reports that. Zero: it has expired already.
    pub(crate) expires_in: Option<u64>,
    /// What was granted. Empty: what was requested (RFC 6749, section 5.1).
    pub(crate) scopes: Vec<String>,
    pub(super) body: Value,
}

impl TokenResponse {
    /// The tokens of a response, which may deviate from OAuth where the configuration says so.
    pub(super) fn parse(
        body: Map<String, Value>,
        mapping: Option<&TokenResponseMapping>,
    ) -> Result<Self, UpstreamError> {
        let body = Value::Object(body);
        // Some providers respond with an error and the status 200.
        if body.get("error").is_some_and(|error| !error.is_null()) {
            return Err(UpstreamError::Response("its response is an error"));
        }
        let of = |path: Option<&str>, default: &'static str| {
            path.filter(|path| !path.is_empty()).unwrap_or(default).to_owned()
        };
        let paths = [
            of(mapping.map(|mapping| &*mapping.access_token_path), "access_token"),
            of(mapping.map(|mapping| &*mapping.refresh_token_path), "refresh_token"),
            of(mapping.map(|mapping| &*mapping.expires_in_path), "expires_in"),
            of(mapping.map(|mapping| &*mapping.scope_path), "scope"),
        ];
        let [access, refresh, expires, scope] = &paths;
        let type_ = body.get("token_type").and_then(Value::as_str).unwrap_or_default();
        if mapping.is_none() && !type_.eq_ignore_ascii_case("bearer") {
            return Err(UpstreamError::Response("its token is not a bearer token"));
        }
        let access_token =
            text_at(&body, access).ok_or(UpstreamError::Response("its response has no access token"))?;
        let expires_in = value_at(&body, expires).and_then(|value| lifetime(&value));
        Ok(Self {
            access_token,
            refresh_token: text_at(&body, refresh).unwrap_or_default(),
            id_token: text_at(&body, "id_token").unwrap_or_default(),
            expires_in,
            scopes: scopes(&text_at(&body, scope).unwrap_or_default()),
            body,
        })
    }
}

/// A lifetime in seconds (RFC 6749, section 5.1). Zero is a lifetime as well: such a token is refreshed before each use.
fn lifetime(value: &Value) -> Option<u64> {
    let seconds = match value {
        Value::Number(number) => number.as_f64(),
        // Some providers write numbers as texts.
        Value::String(text) => text.trim().parse::<f64>().ok(),
        _ => None,
    };
    // A negative number becomes zero.
    seconds
        .filter(|seconds| !seconds.is_nan())
        .map(|seconds| (seconds as u64).min(limits::UPSTREAM_TOKEN_LIFE))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_lifetime_of_zero_is_one_and_a_missing_one_is_none() {
        let lifetime = |value: Value| {
            let mut body = json!({"access_token": "a", "token_type": "bearer"});
            if !value.is_null() {
                body["expires_in"] = value;
            }
            let Value::Object(body) = body else { unreachable!() };
            TokenResponse::parse(body, None).ok().unwrap().expires_in
        };
        for (value, expected) in [
            (Value::Null, None),
            (json!(3600), Some(3600)),
            (json!("3600"), Some(3600)),
            (json!(59.9), Some(59)),
            (json!(0), Some(0)),
            (json!("0"), Some(0)),
            (json!(-1), Some(0)),
            (json!("-1"), Some(0)),
            (json!(u64::MAX), Some(limits::UPSTREAM_TOKEN_LIFE)),
            (json!(1e300), Some(limits::UPSTREAM_TOKEN_LIFE)),
            (json!("NaN"), None),
            (json!("soon"), None),
            (json!({}), None),
        ] {
            assert_eq!(lifetime(value.clone()), expected, "{value}");
        }
    }
}
