//! Authentication of clients at the token endpoint (RFC 6749, section 2.3).

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, header};

use crate::{
    AuthServer,
    error::OAuthError,
    random::{hash, is_same},
    rates::Purpose,
    rules::Parameters,
    store::{Client, Method},
};

/// What a request says about its client.
struct Presented {
    id: String,
    secret: Option<String>,
    method: Method,
}

impl AuthServer {
    /// The client of a request, authenticated.
    pub(crate) async fn authenticated(
        &self,
        headers: &HeaderMap,
        form: &Parameters,
    ) -> Result<Client, OAuthError> {
        let presented = presented(headers, form)?;
        let is_basic = headers.contains_key(header::AUTHORIZATION);
        let refused = || OAuthError { is_challenged: is_basic, ..OAuthError::client() };
        let client = self.client(&presented.id).await?.ok_or_else(refused)?;
        if !self.rates.admits_client(Purpose::Token, &client.id, &self.clock) {
            return Err(OAuthError::unavailable());
        }
        if is_authentic(&client, &presented) { Ok(client) } else { Err(refused()) }
    }
}

fn is_authentic(client: &Client, presented: &Presented) -> bool {
    match (&presented.secret, client.token_endpoint_auth_method) {
        (None, Method::None) => true,
        (None, _) | (Some(_), Method::None) => false,
        (Some(secret), method) => {
            (method == presented.method || client.any_secret_method)
                && is_same(&hash(secret), &client.secret_hash)
        }
    }
}

/// The credentials of a request. It must use one way only (RFC 6749, section 2.3).
fn presented(headers: &HeaderMap, form: &Parameters) -> Result<Presented, OAuthError> {
    let id = form.get("client_id").map(str::to_owned);
    let secret = form.get("client_secret").map(str::to_owned);
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        let id = id.ok_or_else(|| OAuthError::request("the request names no client"))?;
        return Ok(Presented { id, secret, method: Method::ClientSecretPost });
    };
    let malformed = || OAuthError { is_challenged: true, ..OAuthError::client() };
    if values.next().is_some() || secret.is_some() {
        return Err(OAuthError::request("the client must authenticate in one way"));
    }
    let (basic_id, secret) = value.to_str().ok().and_then(basic).ok_or_else(malformed)?;
    if id.is_some_and(|id| id != basic_id) {
        return Err(OAuthError::request("the request names two clients"));
    }
    // A public client may send its id so, without a secret.
    let secret = Some(secret).filter(|secret| !secret.is_empty());
    Ok(Presented { id: basic_id, secret, method: Method::ClientSecretBasic })
}

/// Id and secret, both encoded as in a form (RFC 6749, section 2.3.1).
fn basic(value: &str) -> Option<(String, String)> {
    let (scheme, encoded) = value.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let pair = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (id, secret) = pair.split_once(':')?;
    let decoded = |text: &str| {
        let pair = format!("x={text}");
        form_urlencoded::parse(pair.as_bytes()).next().map(|(_, value)| value.into_owned())
    };
    Some((decoded(id)?, decoded(secret)?))
}
