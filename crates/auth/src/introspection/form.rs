//! Requests and responses of introspection endpoints.

use bytes::Bytes;
use http::{Request, StatusCode, Uri};
use serde_json::{Value, json};

use crate::{
    claims::{Claims, now},
    fetch::FetchError,
    form::{Credentials, post, request_with_body},
    limits,
};

const GOOGLE: &str = "https://oauth2.googleapis.com/tokeninfo";
const GOOGLE_ISSUER: &str = "https://accounts.google.com";
const GITHUB: &str = "https://api.github.com/applications/";
const GITHUB_ISSUER: &str = "https://github.com";
/// The claims of a standard response that an identity has. The others are between the two servers.
const KEPT: [&str; 5] = ["exp", "sub", "aud", "scope", "iss"];

/// The protocol of an introspection endpoint.
pub(super) enum Form {
    /// RFC 7662.
    Standard(Uri, Option<Credentials>),
    /// Google's, with the token in the query.
    Google(Uri),
    /// GitHub's check of an application's token.
    GitHub(Uri, Option<Credentials>),
}

impl Form {
    pub(super) fn new(url: &str, uri: Uri, client: &str, secret: &str) -> Self {
        if url == GOOGLE {
            Self::Google(uri)
        } else if url.starts_with(GITHUB) && url.ends_with("/token") {
            Self::GitHub(uri, Credentials::plain(client, secret))
        } else {
            Self::Standard(uri, Credentials::new(client, secret))
        }
    }

    pub(super) fn request(&self, token: &str) -> Request<Bytes> {
        let (mut request, credentials) = match self {
            Self::Standard(uri, credentials) => {
                let fields = [("token", token), ("token_type_hint", "access_token")];
                (post(uri, &fields), credentials.as_ref())
            }
            Self::GitHub(uri, credentials) => {
                let body = json!({"access_token": token}).to_string();
                (request_with_body(uri, "application/json", body), credentials.as_ref())
            }
            Self::Google(uri) => {
                let mut query = form_urlencoded::Serializer::new(String::new());
                let query = query.append_pair("access_token", token).finish();
                let mut request = Request::new(Bytes::new());
                *request.uri_mut() = format!("{uri}?{query}").parse().unwrap_or_else(|_| uri.clone());
                (request, None)
            }
        };
        if let Some(credentials) = credentials {
            credentials.sign(&mut request);
        }
        request
    }

    /// The claims in a response. `None` if the token is unknown or has expired.
    pub(super) fn claims(
        &self,
        uri: &Uri,
        status: StatusCode,
        answer: Option<Claims>,
    ) -> Result<Option<Claims>, FetchError> {
        match (self, status.as_u16()) {
            (Self::Google(_), 400 | 401) | (Self::GitHub(..), 404 | 422) => return Ok(None),
            (_, 200) => {}
            // Also if our own credentials are rejected: that is not the caller's fault.
            _ => return Err(FetchError::status(uri, status)),
        }
        let answer = answer.ok_or_else(|| FetchError::answer(uri, "it is not a JSON object"))?;
        Ok(match self {
            Self::Standard(..) => (answer.get("active") == Some(&Value::Bool(true))).then_some(answer),
            Self::Google(_) => Some(google(answer)),
            Self::GitHub(..) => Some(github(&answer)),
        })
    }

    /// The claims that the identity has.
    pub(super) fn kept(&self, mut claims: Claims) -> Claims {
        if matches!(self, Self::Standard(..)) {
            claims.retain(|key, _| KEPT.contains(&key.as_str()));
        }
        claims
    }
}

/// Google writes times as strings, and does not name the issuer.
fn google(mut answer: Claims) -> Claims {
    for key in ["exp", "iat"] {
        let number = answer.get(key).and_then(Value::as_str).and_then(|text| text.parse::<u64>().ok());
        if let Some(number) = number {
            answer.insert(key.into(), number.into());
        }
    }
    answer.entry("iss").or_insert_with(|| GOOGLE_ISSUER.into());
    answer
}

/// GitHub describes a user and a token that lasts until it is revoked: the claims expire with the cached response.
fn github(answer: &Claims) -> Claims {
    let user = &answer.get("user").cloned().unwrap_or_default();
    let end = (now() + limits::ANSWER_LIFE).as_secs() + 1;
    let mut claims = Claims::new();
    claims.insert("iss".into(), GITHUB_ISSUER.into());
    claims.insert("aud".into(), GITHUB_ISSUER.into());
    claims.insert("exp".into(), end.into());
    if let Some(id) = user["id"].as_u64().filter(|id| *id != 0) {
        claims.insert("sub".into(), id.to_string().into());
    }
    for (claim, key) in
        [("preferred_username", "login"), ("login", "login"), ("email", "email"), ("name", "name")]
    {
        if let Some(text) = user[key].as_str().filter(|text| !text.is_empty()) {
            claims.insert(claim.into(), text.into());
        }
    }
    if let Some(scopes) = answer.get("scopes").and_then(Value::as_array) {
        let joined = scopes.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ");
        claims.insert("scope".into(), joined.into());
        claims.insert("scopes".into(), scopes.clone().into());
    }
    claims
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(url: &str) -> Form {
        Form::new(url, url.parse().unwrap(), "client", "sec:ret")
    }

    fn object(value: Value) -> Option<Claims> {
        value.as_object().cloned()
    }

    #[test]
    fn google_has_its_own_protocol() {
        let google = form(GOOGLE);
        let request = google.request("a+b");
        assert_eq!(request.uri(), "https://oauth2.googleapis.com/tokeninfo?access_token=a%2Bb");
        assert_eq!(request.headers().get("authorization"), None);
        let uri = request.uri();
        let answer = object(json!({"aud": "me", "sub": "7", "exp": "1700000000", "email": "a@b"}));
        let expected = object(
            json!({"aud": "me", "sub": "7", "exp": 1_700_000_000, "email": "a@b", "iss": "https://accounts.google.com"}),
        );
        assert_eq!(google.claims(uri, StatusCode::OK, answer).unwrap(), expected);
        assert_eq!(google.claims(uri, StatusCode::BAD_REQUEST, None).unwrap(), None);
        assert!(google.claims(uri, StatusCode::BAD_GATEWAY, None).is_err());
    }

    #[test]
    fn github_has_its_own_protocol() {
        let github = form("https://api.github.com/applications/client/token");
        let request = github.request("gho_1");
        assert_eq!(request.body(), r#"{"access_token":"gho_1"}"#);
        assert_eq!(request.headers()["authorization"], "Basic Y2xpZW50OnNlYzpyZXQ=");
        let answer =
            json!({"id": 1, "user": {"id": 42, "login": "octo", "email": null}, "scopes": ["repo", "gist"]});
        let mut claims = github.claims(request.uri(), StatusCode::OK, object(answer)).unwrap().unwrap();
        assert!(claims.remove("exp").unwrap().as_u64().unwrap() > now().as_secs());
        let expected = json!({
            "iss": "https://github.com", "aud": "https://github.com", "sub": "42", "preferred_username": "octo",
            "login": "octo", "scope": "repo gist", "scopes": ["repo", "gist"],
        });
        assert_eq!(Some(claims), object(expected));
        assert_eq!(github.claims(request.uri(), StatusCode::NOT_FOUND, None).unwrap(), None);
    }

    #[test]
    fn an_address_that_only_resembles_theirs_gets_a_standard_request() {
        for url in ["https://oauth2.googleapis.com.evil.example/tokeninfo", "https://api.github.com/user"] {
            let request = form(url).request("t");
            assert_eq!(request.body(), "token=t&token_type_hint=access_token", "{url}");
            assert_eq!(request.headers()["authorization"], "Basic Y2xpZW50OnNlYyUzQXJldA==", "{url}");
        }
    }

    #[test]
    fn only_an_active_token_is_accepted() {
        let standard = form("https://issuer.example/introspect");
        let uri: Uri = "https://issuer.example/introspect".parse().unwrap();
        for (answer, active) in [
            (json!({"active": true, "sub": "a"}), true),
            (json!({"active": false, "sub": "a"}), false),
            (json!({"active": "true"}), false),
            (json!({}), false),
        ] {
            let claims = standard.claims(&uri, StatusCode::OK, object(answer.clone())).unwrap();
            assert_eq!(claims.is_some(), active, "{answer}");
        }
        assert!(standard.claims(&uri, StatusCode::UNAUTHORIZED, None).is_err());
        assert!(standard.claims(&uri, StatusCode::OK, None).is_err());
    }
}
