//! The metadata that a client declares, by registration or in its document (RFC 7591, section 2).

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    config::Settings,
    limits,
    rules::{is_confidential_target, is_redirect_allowed, registration_error, scopes},
    store::Method,
};

/// What a client declares. Further members are ignored; one that is there twice is an error.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Metadata {
    pub(crate) client_id: Option<String>,
    pub(crate) client_name: Option<String>,
    pub(crate) redirect_uris: Vec<String>,
    pub(crate) grant_types: Vec<String>,
    pub(crate) response_types: Vec<String>,
    pub(crate) token_endpoint_auth_method: Option<String>,
    pub(crate) scope: Option<Scope>,
    pub(crate) software_id: Option<String>,
    pub(crate) jwks: Option<Map<String, Value>>,
    pub(crate) jwks_uri: Option<String>,
}

/// Scopes, as a text or, against the letter, as a list.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Scope {
    Text(String),
    List(Vec<String>),
}

/// Why metadata is not accepted (RFC 7591, section 3.2.2).
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MetadataError {
    RedirectUri(String),
    Metadata(String),
}

use MetadataError::{Metadata as Wrong, RedirectUri as WrongUri};

/// What a client gets that requests no scope. Others are for those that know them.
const STANDARD_SCOPES: [&str; 4] = ["openid", "profile", "email", "offline_access"];
const GRANTS: [&str; 2] = ["authorization_code", "refresh_token"];

impl Metadata {
    /// Checks the redirect URIs.
    pub(crate) fn check_redirect_uris(&self) -> Result<(), MetadataError> {
        if self.redirect_uris.is_empty() {
            return Err(WrongUri("redirect_uris is required".into()));
        }
        if self.redirect_uris.len() > limits::REDIRECT_URIS {
            return Err(WrongUri(format!("there may be {} redirect_uris at most", limits::REDIRECT_URIS)));
        }
        let size: usize = self.redirect_uris.iter().map(String::len).sum();
        match self.redirect_uris.iter().find_map(|uri| registration_error(uri)) {
            _ if size > limits::REDIRECT_URIS_SIZE => {
                let most = limits::REDIRECT_URIS_SIZE;
                Err(WrongUri(format!("the redirect_uris are too long (together at most {most} characters)")))
            }
            Some(error) => Err(WrongUri(error.into())),
            None => Ok(()),
        }
    }

    /// Checks that users may be sent back to all of them.
    pub(crate) fn check_redirect_hosts(&self, settings: &Settings) -> Result<(), MetadataError> {
        let hosts = &settings.registration.redirect_hosts;
        match self.redirect_uris.iter().all(|uri| is_redirect_allowed(hosts, uri)) {
            true => Ok(()),
            false => Err(WrongUri("this server sends users back to hosts of its own list only".into())),
        }
    }

    /// Checks the names.
    pub(crate) fn check_names(&self) -> Result<(), MetadataError> {
        let texts = [("client_name", &self.client_name), ("software_id", &self.software_id)];
        for (name, text) in texts {
            if text.as_ref().is_some_and(|text| text.chars().count() > limits::NAME) {
                return Err(Wrong(format!("{name} is too long (at most {} characters)", limits::NAME)));
            }
        }
        let is_printable = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
        match &self.software_id {
            Some(id) if !id.bytes().all(is_printable) => Err(Wrong("software_id must be in ASCII".into())),
            _ => Ok(()),
        }
    }

    /// The grant types. They must include the code, which is the only way to a login.
    pub(crate) fn grants(&self) -> Result<Vec<String>, MetadataError> {
        if self.grant_types.is_empty() {
            return Ok(GRANTS.map(str::to_owned).to_vec());
        }
        if let Some(other) = self.grant_types.iter().find(|grant| !GRANTS.contains(&grant.as_str())) {
            return Err(Wrong(format!("the grant type {other:?} is not supported")));
        }
        if !self.grant_types.iter().any(|grant| grant == GRANTS[0]) {
            return Err(Wrong("grant_types must have authorization_code".into()));
        }
        // Each once, however often it is there.
        let is_requested = |grant: &&str| self.grant_types.iter().any(|requested| requested == grant);
        Ok(GRANTS.into_iter().filter(is_requested).map(str::to_owned).collect())
    }

    pub(crate) fn check_response_types(&self) -> Result<(), MetadataError> {
        match self.response_types.iter().find(|type_| *type_ != "code") {
            Some(other) => Err(Wrong(format!("the response type {other:?} is not supported"))),
            None => Ok(()),
        }
    }

    /// The scopes, or those of OpenID Connect. Those that every client gets are added.
    pub(crate) fn scopes(&self, settings: &Settings) -> Result<Vec<String>, MetadataError> {
        match self.requested_scopes().iter().find(|scope| !settings.scopes.contains(scope)) {
            Some(other) => Err(Wrong(format!("the scope {other:?} is not supported"))),
            None => Ok(self.supported_scopes(settings)),
        }
    }

    /// The same without those that this server does not have: a document is for all servers.
    pub(crate) fn supported_scopes(&self, settings: &Settings) -> Vec<String> {
        let requested = self.requested_scopes();
        let is_requested = |scope: &str| match &*requested {
            [] => STANDARD_SCOPES.contains(&scope),
            requested => requested.iter().any(|requested| requested == scope),
        };
        let supported = settings.scopes.iter().filter(|scope| is_requested(scope));
        let mut scopes: Vec<String> = supported.cloned().collect();
        for scope in &settings.baseline_scopes {
            if !scopes.contains(scope) {
                scopes.push(scope.clone());
            }
        }
        scopes
    }

    fn requested_scopes(&self) -> Vec<String> {
        match &self.scope {
            None => Vec::new(),
            Some(Scope::Text(text)) => scopes(text),
            Some(Scope::List(list)) => scopes(&list.join(" ")),
        }
    }

    /// How the client authenticates, and whether it may choose.
    pub(crate) fn method(&self, settings: &Settings) -> Result<(Method, bool), MetadataError> {
        let forced = &settings.registration.forced;
        let is_forced = self.redirect_uris.iter().any(|uri| forced.contains(uri));
        let method = match self.token_endpoint_auth_method.as_deref() {
            _ if is_forced => Method::ClientSecretPost,
            None | Some("" | "none") => return Ok((Method::None, false)),
            Some("client_secret_basic") => Method::ClientSecretBasic,
            Some("client_secret_post") => Method::ClientSecretPost,
            Some(other) => return Err(Wrong(format!("the authentication {other:?} is not supported"))),
        };
        if !settings.registration.allows_secrets {
            return Err(Wrong("this server registers public clients only".into()));
        }
        match self.redirect_uris.iter().find(|uri| !is_confidential_target(uri)) {
            Some(_) => Err(WrongUri("a client with a secret must have redirect URIs of a web server".into())),
            None => Ok((method, is_forced)),
        }
    }
}
