//! Authentication of clients at the token endpoint (RFC 6749, section 2.3).

use std::{net::IpAddr, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, header};
use skep_auth::{SignedToken, verified_by};

use crate::{
    AuthServer,
    error::OAuthError,
    keys::unverified,
    random::{hash, is_same},
    rates::Purpose,
    rules::{Parameters, client_assertion},
    store::{Client, Method},
};

/// What a request presents of its client.
struct Presented {
    id: String,
    /// A secret, or an assertion.
    secret: Option<String>,
    method: Method,
}

/// The type of an assertion (RFC 7523, section 2.2).
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// A client that has proved who it is.
pub(crate) struct Authenticated {
    pub(crate) client: Client,
    /// The key of the assertion that proved it, and for how long that could be used again.
    assertion: Option<(String, Duration)>,
}

impl AuthServer {
    /// The client of a request, authenticated.
    pub(crate) async fn authenticated(
        &self,
        headers: &HeaderMap,
        form: &Parameters,
        peer: IpAddr,
    ) -> Result<Authenticated, OAuthError> {
        let presented = presented(headers, form)?;
        let is_basic = headers.contains_key(header::AUTHORIZATION);
        let refused = || OAuthError { is_challenged: is_basic, ..OAuthError::client() };
        let client = self.client(&presented.id, peer).await?.ok_or_else(refused)?;
        if !self.rates.admits_client(Purpose::Token, &client.id, peer, &self.clock) {
            return Err(OAuthError::unavailable());
        }
        let assertion = match (&client.keys, presented.method) {
            (Some(keys), Method::PrivateKeyJwt) => {
                let text = presented.secret.as_deref().ok_or_else(refused)?;
                let signed = match verified_by(keys, text) {
                    Ok(signed) => signed,
                    Err(_) => {
                        let renewed = self.renewed(&client.id, peer).await?.ok_or_else(refused)?;
                        verified_by(renewed.keys.as_ref().ok_or_else(refused)?, text)
                            .map_err(|_| refused())?
                    }
                };
                Some(self.assertion(&client, &signed).ok_or_else(refused)?)
            }
            _ if is_authentic(&client, &presented) => None,
            _ => return Err(refused()),
        };
        Ok(Authenticated { client, assertion })
    }

    /// The assertion that the client signed, if it is for this server.
    fn assertion(&self, client: &Client, signed: &SignedToken) -> Option<(String, Duration)> {
        let endpoint = self.settings.token_endpoint();
        let (audiences, now) = ([&*self.settings.issuer, &endpoint], self.clock.now());
        let (id, life) = client_assertion(&signed.claims, &client.id, &audiences, now)?;
        Some((format!("jwt:{}", hash(format!("{}|{id}", client.id))), life))
    }

    /// The assertion of a client has been of use, once. Those of requests that get nothing are not remembered: anyone can be a
    /// client that signs, and send as many as it likes.
    pub(crate) async fn use_assertion(&self, authenticated: &Authenticated) -> Result<(), OAuthError> {
        match &authenticated.assertion {
            Some((key, life)) if !self.store.spend(key, *life).await? => Err(OAuthError::client()),
            _ => Ok(()),
        }
    }
}

fn is_authentic(client: &Client, presented: &Presented) -> bool {
    match (&presented.secret, client.token_endpoint_auth_method) {
        (None, Method::None) => true,
        (None, _) | (Some(_), Method::None | Method::PrivateKeyJwt) => false,
        (Some(_), _) if presented.method == Method::PrivateKeyJwt => false,
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
    if let Some(assertion) = form.get("client_assertion") {
        let is_alone = secret.is_none() && values.next().is_none();
        if !is_alone || form.get("client_assertion_type") != Some(ASSERTION_TYPE) {
            return Err(OAuthError::request("the client must authenticate in one way"));
        }
        // The assertion names the client, too (RFC 7521, section 4.2).
        let named = || unverified(assertion)?.get("sub")?.as_str().map(str::to_owned);
        let id = id.or_else(named).ok_or_else(OAuthError::client)?;
        return Ok(Presented { id, secret: Some(assertion.to_owned()), method: Method::PrivateKeyJwt });
    }
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
