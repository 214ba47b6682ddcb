//! The upstream identity providers.

use std::collections::BTreeMap;

use skep_auth::Reach;
use skep_config::{
    AuthServer, FieldError, FieldPath,
    auth_server::{
        DynamicRegistration, IdentityFromToken, Oauth2Upstream, OidcUpstream, TokenResponseMapping, Upstream,
        UpstreamType, UserInfo,
    },
};

use super::secrets;
use crate::rules::Uri;

/// Parameters that the server itself sets.
const RESERVED: [&str; 11] = [
    "response_type",
    "client_id",
    "redirect_uri",
    "scope",
    "state",
    "nonce",
    "code_challenge",
    "code_challenge_method",
    "response_mode",
    "request",
    "request_uri",
];
/// The name of the only upstream, unless it has one.
const DEFAULT_NAME: &str = "default";

/// An upstream.
pub(crate) struct UpstreamSettings {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) credentials: Credentials,
    pub(crate) redirect_uri: String,
    pub(crate) scopes: Vec<String>,
    pub(crate) parameters: BTreeMap<String, String>,
    pub(crate) reach: Reach,
}

/// The protocol of an upstream.
pub(crate) enum Kind {
    /// OpenID Connect.
    Oidc { issuer: String, subject_claim: String },
    /// OAuth 2.0 alone.
    Oauth2 {
        authorize: String,
        token: String,
        mapping: Option<Box<TokenResponseMapping>>,
        identity: Box<Identity>,
    },
}

/// Where the identity of a user is, at a provider without OpenID Connect.
pub(crate) enum Identity {
    UserInfo(UserInfo),
    Token(IdentityFromToken),
    /// Nowhere: each login is another user.
    Nowhere,
}

/// This server as a client of an upstream.
pub(crate) enum Credentials {
    Known { id: String, secret: Option<String> },
    Registered { registration: Box<DynamicRegistration>, token: Option<String> },
}

pub(super) fn upstreams(config: &AuthServer, errors: &mut Vec<FieldError>) -> Vec<UpstreamSettings> {
    if config.upstreams.is_empty() {
        errors.push(FieldError::new("upstreams", "must have at least one upstream"));
    }
    let mut upstreams: Vec<UpstreamSettings> = Vec::new();
    for (index, upstream) in config.upstreams.iter().enumerate() {
        let at = FieldPath::from("upstreams").index(index);
        let is_duplicate = upstreams.iter().any(|known| known.name == upstream.name);
        if is_duplicate {
            errors.push(
                FieldError::new("name", format!("{:?} is not unique", upstream.name)).within(at.clone()),
            );
        }
        match one(upstream, config) {
            Ok(settings) => upstreams.push(settings),
            Err(error) => errors.push(error.within(at)),
        }
    }
    upstreams
}

fn one(upstream: &Upstream, config: &AuthServer) -> Result<UpstreamSettings, FieldError> {
    let name = name(&upstream.name, config.upstreams.len() > 1)?;
    let missing = |field| FieldError::new(field, "must be set for this type");
    match upstream.type_ {
        UpstreamType::Oidc => {
            let oidc = upstream.oidc_config.as_ref().ok_or_else(|| missing("oidc_config"))?;
            self::oidc(name, oidc).map_err(|error| error.within("oidc_config"))
        }
        UpstreamType::Oauth2 => {
            let oauth2 = upstream.oauth2_config.as_ref().ok_or_else(|| missing("oauth2_config"))?;
            self::oauth2(name, oauth2, config).map_err(|error| error.within("oauth2_config"))
        }
    }
}

fn name(name: &str, is_one_of_several: bool) -> Result<String, FieldError> {
    let wrong = |message: &str| Err(FieldError::new("name", message.to_owned()));
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    match name {
        "" if !is_one_of_several => Ok(DEFAULT_NAME.into()),
        "" => wrong("is required where there are several upstreams"),
        DEFAULT_NAME if is_one_of_several => wrong("default is the name of an upstream that has none"),
        name if name.len() <= 63
            && name.bytes().all(fits)
            && !name.starts_with('-')
            && !name.ends_with('-') =>
        {
            Ok(name.to_owned())
        }
        _ => wrong("must have lower-case letters, digits and hyphens only"),
    }
}

/// The address of an endpoint. An unencrypted one must be allowed, or be on this machine.
fn endpoint(field: &'static str, text: &str, may_be_plain: bool) -> Result<String, FieldError> {
    let Some(uri) = Uri::parse(text).filter(|uri| uri.has_host() && !uri.has_fragment) else {
        return Err(FieldError::new(field, "must be a URL: https://host/path"));
    };
    if !(uri.is("https") || (uri.is("http") && (may_be_plain || uri.is_loopback()))) {
        return Err(FieldError::new(field, "must use https, or set insecure_allow_http"));
    }
    Ok(text.to_owned())
}

/// What may be connected to: what is configured, and this machine if an endpoint is there.
fn reach(private: bool, plain: bool, endpoint: &str) -> Reach {
    let is_local = Uri::parse(endpoint).is_some_and(|uri| uri.is_loopback());
    Reach { private: private || is_local, plain: plain || is_local }
}

fn parameters(parameters: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>, FieldError> {
    match parameters.keys().find(|name| RESERVED.contains(&&***name)) {
        Some(name) => {
            Err(FieldError::new("additional_authorization_params", format!("{name} is set by the server")))
        }
        None => Ok(parameters.clone()),
    }
}

fn redirect_uri(text: &str) -> Result<String, FieldError> {
    match Uri::parse(text) {
        Some(uri) if uri.has_host() => Ok(text.to_owned()),
        _ => Err(FieldError::new("redirect_uri", "must be the URL of /oauth/callback of this server")),
    }
}

fn oidc(name: String, oidc: &OidcUpstream) -> Result<UpstreamSettings, FieldError> {
    let issuer = endpoint("issuer_url", &oidc.issuer_url, oidc.insecure_allow_http)?;
    if oidc.client_id.is_empty() {
        return Err(FieldError::new("client_id", "must not be empty"));
    }
    let default = || ["openid", "offline_access"].map(str::to_owned).to_vec();
    let scopes = if oidc.scopes.is_empty() { default() } else { oidc.scopes.clone() };
    if !scopes.iter().any(|scope| scope == "openid") {
        return Err(FieldError::new("scopes", "must have openid"));
    }
    if oidc.userinfo_override.is_some() {
        tracing::warn!(upstream = name, "userinfo_override has no effect");
    }
    let file = ("client_secret_file", &*oidc.client_secret_file);
    let secret = secrets::secret(file, ("client_secret_env_var", &oidc.client_secret_env_var))?;
    let claim = if oidc.subject_claim.is_empty() { "sub" } else { &oidc.subject_claim };
    Ok(UpstreamSettings {
        name,
        reach: reach(oidc.allow_private_ips, oidc.insecure_allow_http, &issuer),
        kind: Kind::Oidc { issuer, subject_claim: claim.to_owned() },
        credentials: Credentials::Known { id: oidc.client_id.clone(), secret },
        redirect_uri: redirect_uri(&oidc.redirect_uri)?,
        scopes,
        parameters: parameters(&oidc.additional_authorization_params)?,
    })
}

fn oauth2(
    name: String,
    oauth2: &Oauth2Upstream,
    config: &AuthServer,
) -> Result<UpstreamSettings, FieldError> {
    let credentials = self::credentials(oauth2)?;
    let plain = oauth2.insecure_allow_http;
    // An upstream that the server registers at may be discovered.
    let is_discovered = matches!(&credentials, Credentials::Registered { registration, .. } if !registration.discovery_url.is_empty());
    let may_discover = |field: &'static str, text: &str| match text {
        "" if is_discovered => Ok(String::new()),
        text => endpoint(field, text, plain),
    };
    let authorize = may_discover("authorization_endpoint", &oauth2.authorization_endpoint)?;
    let token = may_discover("token_endpoint", &oauth2.token_endpoint)?;
    let redirect = match (&*oauth2.redirect_uri, &credentials) {
        ("", Credentials::Registered { .. }) => format!("{}/oauth/callback", config.issuer),
        (text, _) => redirect_uri(text)?,
    };
    let mapping = oauth2.token_response_mapping.clone();
    if mapping.as_ref().is_some_and(|mapping| mapping.access_token_path.is_empty()) {
        return Err(FieldError::new("token_response_mapping.access_token_path", "must not be empty"));
    }
    let first = match &credentials {
        Credentials::Registered { registration, .. } if is_discovered => registration.discovery_url.clone(),
        _ => token.clone(),
    };
    Ok(UpstreamSettings {
        name,
        reach: reach(oauth2.allow_private_ips, plain, &first),
        kind: Kind::Oauth2 {
            authorize,
            token,
            mapping: mapping.map(Box::new),
            identity: Box::new(identity(oauth2)?),
        },
        credentials,
        redirect_uri: redirect,
        scopes: oauth2.scopes.clone(),
        parameters: parameters(&oauth2.additional_authorization_params)?,
    })
}

fn credentials(oauth2: &Oauth2Upstream) -> Result<Credentials, FieldError> {
    let Some(registration) = &oauth2.dcr_config else {
        if oauth2.client_id.is_empty() {
            return Err(FieldError::new("client_id", "or dcr_config must be set"));
        }
        let file = ("client_secret_file", &*oauth2.client_secret_file);
        let secret = secrets::secret(file, ("client_secret_env_var", &oauth2.client_secret_env_var))?;
        return Ok(Credentials::Known { id: oauth2.client_id.clone(), secret });
    };
    if !oauth2.client_id.is_empty() {
        return Err(FieldError::new("dcr_config", "must not be set together with client_id"));
    }
    let plain = oauth2.insecure_allow_http;
    match (&*registration.discovery_url, &*registration.registration_endpoint) {
        ("", "") => Err(FieldError::new("discovery_url", "or registration_endpoint must be set")),
        (discovery, "") => endpoint("discovery_url", discovery, plain),
        ("", registration) => endpoint("registration_endpoint", registration, plain),
        _ => Err(FieldError::new("discovery_url", "must not be set together with registration_endpoint")),
    }
    .and_then(|_| {
        let file = ("initial_access_token_file", &*registration.initial_access_token_file);
        secrets::secret(file, ("initial_access_token_env_var", &registration.initial_access_token_env_var))
    })
    .map(|token| Credentials::Registered { registration: Box::new(registration.clone()), token })
    .map_err(|error| error.within("dcr_config"))
}

fn identity(oauth2: &Oauth2Upstream) -> Result<Identity, FieldError> {
    match (&oauth2.userinfo, &oauth2.identity_from_token) {
        (Some(userinfo), _) => {
            let within = |error: FieldError| error.within("userinfo");
            endpoint("endpoint_url", &userinfo.endpoint_url, oauth2.insecure_allow_http).map_err(within)?;
            if !matches!(&*userinfo.http_method, "" | "GET" | "POST") {
                return Err(within(FieldError::new("http_method", "must be GET or POST")));
            }
            Ok(Identity::UserInfo(userinfo.clone()))
        }
        (None, Some(paths)) if paths.subject_path.is_empty() => {
            Err(FieldError::new("identity_from_token.subject_path", "must not be empty"))
        }
        (None, Some(paths)) => Ok(Identity::Token(paths.clone())),
        (None, None) => Ok(Identity::Nowhere),
    }
}
