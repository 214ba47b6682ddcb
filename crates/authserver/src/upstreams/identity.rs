//! Who logged in at an upstream.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, StatusCode, header};
use serde_json::Value;
use skep_auth::Fetcher;
use skep_config::auth_server::UserInfo;

use super::{UpstreamError, path::text_at, response::TokenResponse};
use crate::{config::Identity, keys::Claims, limits, random::hex_hash, store::User};

/// The subject of a user.
pub(crate) enum Subject {
    /// The provider's own.
    Known(String),
    /// The provider has none: it is the user's id, for this login only.
    Synthetic(String),
}

/// A login at an upstream.
pub(crate) struct Login {
    pub(crate) subject: Subject,
    pub(crate) name: Option<String>,
    pub(crate) email: Option<String>,
    /// All that the provider says about the user.
    pub(crate) claims: Value,
    pub(crate) tokens: TokenResponse,
}

impl Login {
    /// The login with the claims of an ID token.
    pub(super) fn of_claims(tokens: TokenResponse, subject: String, claims: &Claims) -> Self {
        let text = |name: &str| claims.get(name).and_then(Value::as_str).map(str::to_owned);
        let (name, email) = (text("name"), text("email"));
        Self { subject: Subject::Known(subject), name, email, claims: Value::Object(claims.clone()), tokens }
    }
}

/// The login at a provider without OpenID Connect.
pub(super) async fn login(
    fetcher: &Fetcher,
    tokens: TokenResponse,
    identity: &Identity,
) -> Result<Login, UpstreamError> {
    let no_subject = UpstreamError::Response("it does not name the user");
    match identity {
        Identity::Nowhere => {
            let id = User::unnamed_id(&hex_hash(&tokens.access_token));
            let subject = Subject::Synthetic(id);
            Ok(Login { subject, name: None, email: None, claims: Value::Null, tokens })
        }
        Identity::Token(paths) => {
            let subject = text_at(&tokens.body, &paths.subject_path).ok_or(no_subject)?;
            let (name, email) =
                (text_at(&tokens.body, &paths.name_path), text_at(&tokens.body, &paths.email_path));
            let claims = tokens.body.clone();
            Ok(Login { subject: Subject::Known(subject), name, email, claims, tokens })
        }
        Identity::UserInfo(userinfo) => {
            let fields = userinfo.field_mapping.clone().unwrap_or_default();
            let described = described(fetcher, userinfo, &tokens.access_token).await?;
            let first = |fields: &[String], defaults: &[&str]| {
                let defaults = defaults.iter().filter(|_| fields.is_empty()).copied();
                fields.iter().map(String::as_str).chain(defaults).find_map(|field| text_at(&described, field))
            };
            let subject = first(&fields.subject_fields, &["sub", "id"]).ok_or(no_subject)?;
            let name = first(&fields.name_fields, &["name", "login"]);
            let email = first(&fields.email_fields, &["email"]);
            Ok(Login { subject: Subject::Known(subject), name, email, claims: described, tokens })
        }
    }
}

/// What the userinfo endpoint says.
async fn described(fetcher: &Fetcher, userinfo: &UserInfo, token: &str) -> Result<Value, UpstreamError> {
    let malformed = || UpstreamError::Response("its userinfo request is malformed");
    let mut request = Request::new(Bytes::new());
    *request.method_mut() = if userinfo.http_method == "POST" { Method::POST } else { Method::GET };
    *request.uri_mut() = userinfo.endpoint_url.parse().map_err(|_| malformed())?;
    for (name, value) in &userinfo.additional_headers {
        let name: HeaderName = name.parse().map_err(|_| malformed())?;
        request.headers_mut().insert(name, HeaderValue::from_str(value).map_err(|_| malformed())?);
    }
    let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| malformed())?;
    value.set_sensitive(true);
    request.headers_mut().insert(header::AUTHORIZATION, value);
    match fetcher.send(request, limits::UPSTREAM_RESPONSE, limits::UPSTREAM_TIME).await? {
        (StatusCode::OK, Some(described)) => Ok(Value::Object(described)),
        (StatusCode::OK, None) => Err(UpstreamError::Response("its userinfo is not a JSON object")),
        (status, _) => Err(UpstreamError::Refused(status)),
    }
}
