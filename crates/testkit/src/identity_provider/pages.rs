//! The responses of an identity provider.

use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::{ReceivedRequest, Signing, State};

/// The response at a path.
pub(super) fn page(state: &State, request: &ReceivedRequest) -> Response<String> {
    if let Some(answer) = state.overrides.get(&request.path).filter(|answer| !answer.is_null()) {
        return match answer.get("status").and_then(Value::as_u64) {
            Some(status) => plain(status, answer),
            None => json_page(answer),
        };
    }
    match request.path.as_str() {
        "/.well-known/openid-configuration" => json_page(&json!({
            "issuer": state.issuer, "jwks_uri": format!("{}/keys", state.issuer),
            "introspection_endpoint": format!("{}/introspect", state.issuer),
            "token_endpoint": format!("{}/token", state.issuer),
        })),
        "/keys" => json_page(&json!({"keys": state.keys.iter().map(Signing::public).collect::<Vec<_>>()})),
        "/introspect" => json_page(&introspected(state, request)),
        "/token" => json_page(&exchanged(state, request)),
        _ => plain(404, &Value::Null),
    }
}

fn introspected(state: &State, request: &ReceivedRequest) -> Value {
    match request.form.get("token").and_then(|token| state.tokens.get(token)) {
        None => json!({"active": false}),
        Some(claims) => {
            let mut answer = claims.clone();
            answer["active"] = json!(true);
            answer
        }
    }
}

/// Each exchange returns a different token.
fn exchanged(state: &State, request: &ReceivedRequest) -> Value {
    let number = state.requests.iter().filter(|request| request.path == "/token").count();
    json!({
        "access_token": format!("exchanged-{number}"), "token_type": "Bearer", "expires_in": 3600,
        "issued_token_type": request.form.get("requested_token_type"),
    })
}

fn json_page(body: &Value) -> Response<String> {
    let mut response = Response::new(body.to_string());
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
    response
}

/// A status, with a JSON body if there is one, and a location if it is a redirect.
fn plain(status: u64, answer: &Value) -> Response<String> {
    let mut response = answer.get("body").map_or_else(|| Response::new(String::new()), json_page);
    let status = u16::try_from(status).ok().and_then(|status| StatusCode::from_u16(status).ok());
    *response.status_mut() = status.expect("a status");
    if let Some(location) = answer.get("location").and_then(Value::as_str) {
        response.headers_mut().insert("location", location.parse().expect("an address"));
    }
    response
}
