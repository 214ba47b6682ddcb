//! The authorization endpoint: what a client requests, and whether the user must approve it.

use std::net::IpAddr;

use bytes::Bytes;
use form_urlencoded::Serializer;
use http::{Response, StatusCode};
use uuid::Uuid;

use crate::{
    AuthServer,
    browser::{Approval, Browser, Question, page},
    error::OAuthError,
    limits, random,
    rates::Purpose,
    response::{self, Explanation},
    rules::{Parameters, Uri, is_challenge, is_redirect_allowed, is_within, resources, scopes},
    store::{Client, Pending},
    upstreams::Upstream,
};

/// An application does not register again by itself where it has an id.
const UNKNOWN_CLIENT: &str =
    "this server does not know your application any more: remove the server there, and add it again";

/// A request that was checked.
pub(super) struct Requested {
    pub(super) client: Client,
    pub(super) pending: Pending,
}

/// Why a request is not accepted.
pub(super) enum Refusal {
    /// The client is not known, or where to send the browser: the user sees the error (RFC 6749, section 4.1.2.1).
    Shown(OAuthError),
    /// The client gets the error.
    Sent { redirect_uri: String, state: String, error: OAuthError },
}

impl AuthServer {
    pub(super) async fn authorize(&self, query: &str, browser: &Browser) -> Response<Bytes> {
        let Requested { client, mut pending } = match self.requested(query, browser.address).await {
            Ok(requested) => requested,
            Err(refusal) => return self.refuse(seen_by_the_user(refusal)),
        };
        let mark = match self.store.approvals_mark(&client.id).await {
            Ok(mark) => mark,
            Err(error) => return self.refuse(Refusal::Shown(error.into())),
        };
        let approval = Approval::of(&pending, &mark);
        let is_exempt = self.settings.clients_without_consent.contains(&client.id);
        let is_remembered = browser.remembers(&self.settings.opaque, &approval);
        if !is_exempt && !is_remembered {
            let fields = vec![
                ("request", query.to_owned()),
                ("token", browser.form_token(&self.settings.opaque, query)),
            ];
            let upstreams = self.upstreams.iter().map(|upstream| &*upstream.name).collect();
            return page(&self.question(&client.name, &pending, upstreams, fields));
        }
        pending.is_approval_remembered = !is_exempt;
        self.begin(pending, browser).await
    }

    /// Sends the browser to the first upstream.
    pub(super) async fn begin(&self, pending: Pending, browser: &Browser) -> Response<Bytes> {
        let Some(first) = self.upstreams.first() else { return OAuthError::server().response() };
        let (redirect_uri, state) = (pending.redirect_uri.clone(), pending.state.clone());
        match self.send_to(first, pending, browser).await {
            Ok(response) => response,
            Err(error) => self.refuse(Refusal::Sent { redirect_uri, state, error }),
        }
    }

    /// Sends the browser to an upstream.
    pub(super) async fn send_to(
        &self,
        upstream: &Upstream,
        pending: Pending,
        browser: &Browser,
    ) -> Result<Response<Bytes>, OAuthError> {
        let state = browser.state(&self.settings.opaque)?;
        let pending = Pending {
            internal_state: state.clone(),
            upstream_provider_name: upstream.name.clone(),
            upstream_pkce_verifier: random::text()?,
            upstream_nonce: random::text()?,
            created_at: self.clock.now(),
            ..pending
        };
        let url = upstream.login_url(&state, &pending.upstream_nonce, &pending.upstream_pkce_verifier);
        let url = url.map_err(|_| OAuthError::unavailable())?;
        self.store.put_pending(&state, &pending, browser.address).await?;
        Ok(response::redirect(StatusCode::FOUND, &url))
    }

    /// Checks a request (RFC 6749, section 4.1.1, and OAuth 2.1, section 4.1.1).
    pub(super) async fn requested(&self, query: &str, peer: IpAddr) -> Result<Requested, Refusal> {
        let parameters = Parameters::parse(query.as_bytes());
        if let Some(name) = parameters.duplicate() {
            return Err(Refusal::Shown(OAuthError::request(format!(
                "the parameter {name:?} is there twice"
            ))));
        }
        let id = parameters.get("client_id").ok_or_else(|| Refusal::Shown(OAuthError::client()))?;
        let client = self.client(id, peer).await.map_err(Refusal::Shown)?;
        let client = client.ok_or_else(|| Refusal::Shown(OAuthError::client()))?;
        if !self.rates.admits_client(Purpose::Login, &client.id, peer, &self.clock) {
            return Err(Refusal::Shown(OAuthError::unavailable()));
        }
        let given = parameters.get("redirect_uri");
        let Some(redirect_uri) = client.redirect_uri(given).map(str::to_owned) else {
            let message = "the redirect_uri is not one that the client has registered";
            return Err(Refusal::Shown(OAuthError::request(message)));
        };
        // Also of a client that has registered before, or has a document.
        if !is_redirect_allowed(&self.settings.registration.redirect_hosts, &redirect_uri) {
            let message = "this server does not send users back to the host of this application";
            return Err(Refusal::Shown(OAuthError::request(message)));
        }
        if let Some(error) = unsupported(&parameters) {
            return Err(Refusal::Shown(error));
        }
        let state = parameters.get("state").unwrap_or_default().to_owned();
        match self.pending(&client, &parameters, &redirect_uri) {
            Ok(pending) => Ok(Requested { client, pending }),
            Err(error) => Err(Refusal::Sent { redirect_uri, state, error }),
        }
    }

    fn pending(
        &self,
        client: &Client,
        parameters: &Parameters,
        redirect_uri: &str,
    ) -> Result<Pending, OAuthError> {
        match parameters.get("response_type") {
            None => return Err(OAuthError::request("response_type is missing")),
            Some("code") => {}
            Some(_) => {
                return Err(OAuthError::new("unsupported_response_type", "response_type must be code"));
            }
        }
        let requested = scopes(parameters.get("scope").unwrap_or_default());
        if !is_within(&requested, &client.scopes) {
            let other = requested.iter().find(|scope| !client.scopes.contains(scope));
            return Err(OAuthError::scope(other.map(String::as_str).unwrap_or_default()));
        }
        let challenge = parameters.get("code_challenge");
        // OAuth 2.1, section 4.1.1: every client needs a proof key.
        if !is_challenge(challenge, parameters.get("code_challenge_method")) {
            return Err(OAuthError::request("code_challenge with code_challenge_method S256 is required"));
        }
        let mut audiences = parameters.all("audience").filter(|audience| !audience.is_empty());
        if audiences.any(|audience| !self.settings.audiences.iter().any(|one| one == audience)) {
            return Err(OAuthError::request("the audience is not known: use the resource parameter"));
        }
        let mut granted = resources(parameters, &self.settings.audiences)?;
        if granted.is_empty() {
            granted = self.settings.audiences.clone();
        }
        // The server keeps no login of its own (OpenID Connect Core 1.0, section 3.1.2.6).
        if parameters.get("prompt") == Some("none") {
            return Err(OAuthError::new("login_required", "the user must log in"));
        }
        Ok(Pending {
            client_id: client.id.clone(),
            redirect_uri: redirect_uri.to_owned(),
            state: parameters.get("state").unwrap_or_default().to_owned(),
            scopes: requested,
            pkce_challenge: challenge.unwrap_or_default().to_owned(),
            pkce_method: "S256".into(),
            session_id: Uuid::new_v4().simple().to_string(),
            internal_state: String::new(),
            upstream_provider_name: String::new(),
            upstream_pkce_verifier: String::new(),
            upstream_nonce: String::new(),
            created_at: self.clock.now(),
            resources: granted,
            is_redirect_implied: parameters.get("redirect_uri").is_none(),
            is_approval_remembered: false,
            user: None,
        })
    }

    /// What the user decides about a login.
    pub(super) fn question<'a>(
        &self,
        client_name: &'a str,
        pending: &'a Pending,
        upstreams: Vec<&'a str>,
        fields: Vec<(&'static str, String)>,
    ) -> Question<'a> {
        Question {
            client_name,
            client_id: &pending.client_id,
            redirect_uri: &pending.redirect_uri,
            scopes: &pending.scopes,
            resources: &pending.resources,
            upstreams,
            action: format!("{}/oauth/consent", self.settings.authorize_base),
            fields,
        }
    }

    /// The response to a request that is not accepted.
    pub(super) fn refuse(&self, refusal: Refusal) -> Response<Bytes> {
        match refusal {
            Refusal::Shown(error) => {
                let mut response = error.response();
                if error.code == "invalid_client" {
                    response.extensions_mut().insert(Explanation(UNKNOWN_CLIENT.into()));
                }
                response
            }
            Refusal::Sent { redirect_uri, state, error } => {
                let parameters = [("error", error.code), ("error_description", &*error.description)];
                self.send_back(&redirect_uri, &state, &parameters)
            }
        }
    }

    /// Sends the browser back to the client, with the issuer, so that the client knows whose response it is (RFC 9207).
    pub(super) fn send_back(
        &self,
        redirect_uri: &str,
        state: &str,
        parameters: &[(&str, &str)],
    ) -> Response<Bytes> {
        let mut query = Serializer::new(String::new());
        query.extend_pairs(parameters);
        if !state.is_empty() {
            query.append_pair("state", state);
        }
        query.append_pair("iss", &self.settings.issuer);
        let separator = if redirect_uri.contains('?') { '&' } else { '?' };
        response::redirect(StatusCode::SEE_OTHER, &format!("{redirect_uri}{separator}{}", query.finish()))
    }
}

/// Parts of a request that this server does not have. The browser is not sent back with these errors: a request object could
/// mean another redirect URI.
fn unsupported(parameters: &Parameters) -> Option<OAuthError> {
    let too_long = |name: &str| parameters.get(name).is_some_and(|value| value.len() > limits::PARAMETER);
    match () {
        () if parameters.get("request").is_some() || parameters.get("request_uri").is_some() => {
            Some(OAuthError::request("request objects are not supported"))
        }
        () if !matches!(parameters.get("response_mode"), None | Some("query")) => {
            Some(OAuthError::new("unsupported_response_mode", "response_mode must be query"))
        }
        () if too_long("state") || too_long("scope") => Some(OAuthError::request("a parameter is too long")),
        () => None,
    }
}

/// A refusal before the user has decided anything. Anyone can register a client, so its address may be that of a stranger, to which a
/// link to this server must not lead (RFC 9700, section 4.11.2): the user sees the error, unless it goes to this machine.
fn seen_by_the_user(refusal: Refusal) -> Refusal {
    match refusal {
        Refusal::Sent { redirect_uri, error, .. }
            if !Uri::parse(&redirect_uri).is_some_and(|uri| uri.is("http") && uri.is_loopback()) =>
        {
            Refusal::Shown(error)
        }
        other => other,
    }
}
