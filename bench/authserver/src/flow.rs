//! A client with its users: registration, logins and refreshes.

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use form_urlencoded::Serializer;
use http::{Response, StatusCode, header};
use serde_json::{Value, json};

use crate::peer::{Peer, described, expect};

const REDIRECT: &str = "http://127.0.0.1:7777/cb";
/// The example of RFC 7636, appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
const FORM: &str = "application/x-www-form-urlencoded";

/// A client, at an address of its own.
pub(crate) struct Client {
    pub(crate) peer: Peer,
    id: String,
    refresh_token: String,
}

impl Client {
    /// Registers a client. `None`: the server has too many, or its limit is reached.
    pub(crate) async fn register(peer: &mut Peer) -> Result<Option<String>> {
        let metadata = json!({
            "client_name": "bench", "redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none",
        });
        let response = peer.post("/oauth/register", "", "application/json", metadata.to_string()).await?;
        match response.status() {
            StatusCode::CREATED => {
                let body: Value = serde_json::from_slice(response.body())?;
                Ok(Some(body["client_id"].as_str().context("no client_id")?.to_owned()))
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => Ok(None),
            status => bail!("a client cannot register: {status}"),
        }
    }

    pub(crate) fn new(peer: Peer, id: String) -> Self {
        Self { peer, id, refresh_token: String::new() }
    }

    /// Begins a login in a new browser, up to the identity provider. Returns its cookies and the state there.
    pub(crate) async fn begin(&mut self) -> Result<(String, String)> {
        let resource = format!("http://{}/mcp", self.peer.server);
        let query = Serializer::new(String::new())
            .extend_pairs([
                ("response_type", "code"),
                ("client_id", &self.id),
                ("redirect_uri", REDIRECT),
                ("state", "state-of-client"),
                ("code_challenge", CHALLENGE),
                ("code_challenge_method", "S256"),
                ("scope", "openid offline_access"),
                ("resource", &resource),
            ])
            .finish();
        let mut response = self.peer.get(&format!("/oauth/authorize?{query}"), "").await?;
        let cookies = cookies(&response);
        if response.status() == StatusCode::OK {
            // The user approves the client.
            let form = approval(&response)?;
            response = self.peer.post("/oauth/consent", &cookies, FORM, form).await?;
        }
        let state = parameter(&response, "state").with_context(|| described(&response))?;
        Ok((cookies, state))
    }

    /// A whole login of a user.
    pub(crate) async fn log_in(&mut self, user: &str) -> Result<()> {
        let (cookies, state) = self.begin().await?;
        let back = Serializer::new(String::new()).extend_pairs([("code", user), ("state", &*state)]).finish();
        let response = self.peer.get(&format!("/oauth/callback?{back}"), &cookies).await?;
        let code = parameter(&response, "code").with_context(|| described(&response))?;
        let resource = format!("http://{}/mcp", self.peer.server);
        self.request_tokens(&[
            ("grant_type", "authorization_code"),
            ("code", &code),
            ("redirect_uri", REDIRECT),
            ("code_verifier", VERIFIER),
            ("resource", &resource),
        ])
        .await
    }

    /// Logs a user in, unless one has.
    pub(crate) async fn log_in_once(&mut self, user: &str) -> Result<()> {
        if self.refresh_token.is_empty() { self.log_in(user).await } else { Ok(()) }
    }

    pub(crate) async fn refresh(&mut self) -> Result<()> {
        let token = self.refresh_token.clone();
        self.request_tokens(&[("grant_type", "refresh_token"), ("refresh_token", &token)]).await
    }

    async fn request_tokens(&mut self, form: &[(&str, &str)]) -> Result<()> {
        let form =
            Serializer::new(String::new()).extend_pairs(form).append_pair("client_id", &self.id).finish();
        let response = self.peer.post("/oauth/token", "", FORM, form).await?;
        expect(&response, StatusCode::OK)?;
        let tokens: Value = serde_json::from_slice(response.body())?;
        self.refresh_token = tokens["refresh_token"].as_str().context("no refresh token")?.to_owned();
        Ok(())
    }
}

/// The cookies that a response sets.
fn cookies(response: &Response<Bytes>) -> String {
    let set = response.headers().get_all(header::SET_COOKIE).iter().filter_map(|value| value.to_str().ok());
    set.filter_map(|value| value.split(';').next()).collect::<Vec<_>>().join("; ")
}

/// A parameter of the address that a response leads to.
fn parameter(response: &Response<Bytes>, name: &str) -> Result<String> {
    let location = response.headers().get(header::LOCATION).context("no redirect")?.to_str()?;
    let query = location.split_once('?').map(|(_, query)| query).unwrap_or_default();
    let found = form_urlencoded::parse(query.as_bytes()).find(|(known, _)| known == name);
    found.map(|(_, value)| value.into_owned()).with_context(|| format!("no {name} in {location}"))
}

/// The form of a page, with the decision to allow.
fn approval(page: &Response<Bytes>) -> Result<String> {
    let text = std::str::from_utf8(page.body())?;
    let mut form = Serializer::new(String::new());
    for input in text.split(r#"<input type="hidden" name=""#).skip(1) {
        let (name, rest) = input.split_once('"').context("a field without a name")?;
        let value = rest.split_once(r#"value=""#).and_then(|(_, rest)| rest.split_once('"'));
        let value = value.context("a field without a value")?.0;
        form.append_pair(name, &value.replace("&amp;", "&").replace("&#39;", "'").replace("&quot;", "\""));
    }
    Ok(form.append_pair("decision", "allow").finish())
}
