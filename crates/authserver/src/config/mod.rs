//! The settings of the server, checked. Every mistake of a configuration is reported, each with its field.

mod checks;
mod secrets;
mod storage;
mod trust;
mod upstreams;

use std::time::Duration;

use skep_config::{AuthServer, FieldError, auth_server::AllowedUsers};

use crate::{
    keys::{Keys, OpaqueTokens},
    rules::Uri,
};
pub(crate) use storage::{RedisSettings, StorageSettings, storage};
pub(crate) use trust::{Delegate, Trusted};
pub(crate) use upstreams::{Credentials, Identity, Kind, UpstreamSettings};

/// The settings.
pub(crate) struct Settings {
    pub(crate) issuer: String,
    /// The base address of the authorization endpoint.
    pub(crate) authorize_base: String,
    pub(crate) keys: Keys,
    pub(crate) opaque: OpaqueTokens,
    pub(crate) access_life: Duration,
    pub(crate) refresh_life: Duration,
    pub(crate) code_life: Duration,
    /// How long a session lasts after its login, if it ends at all.
    pub(crate) session_life: Option<Duration>,
    pub(crate) delegation_life: Duration,
    pub(crate) scopes: Vec<String>,
    pub(crate) baseline_scopes: Vec<String>,
    pub(crate) audiences: Vec<String>,
    pub(crate) documents: Option<DocumentSettings>,
    pub(crate) trusted: Vec<Trusted>,
    pub(crate) delegates: Vec<Delegate>,
    pub(crate) registration: RegistrationSettings,
    pub(crate) clients_without_consent: Vec<String>,
    /// Which users may log in. `None`: all.
    pub(crate) allowed_users: Option<AllowedUsers>,
    /// The paths where browsers come back from upstreams.
    pub(crate) callbacks: Vec<String>,
    /// Whether some come back at another host than the one that has their cookies.
    pub(crate) has_callback_elsewhere: bool,
}

/// How client documents are cached.
pub(crate) struct DocumentSettings {
    pub(crate) most: usize,
    /// How long one without cache headers is cached.
    pub(crate) life: Duration,
}

/// Which clients may register themselves.
pub(crate) struct RegistrationSettings {
    pub(crate) allows_secrets: bool,
    /// Redirect URIs whose clients always get a secret.
    pub(crate) forced: Vec<String>,
    /// Whether clients may register themselves at all.
    pub(crate) is_open: bool,
    /// The hash of the token that they must present, if they need one.
    pub(crate) token_hash: Option<String>,
    /// The hosts where all clients may have users sent back to. Empty: all.
    pub(crate) redirect_hosts: Vec<String>,
}

impl Settings {
    /// The settings of a configuration, and its upstreams.
    pub(crate) fn new(config: &AuthServer) -> Result<(Self, Vec<UpstreamSettings>), Vec<FieldError>> {
        let mut errors = Vec::new();
        checks::issuer(config, &mut errors);
        let lives = checks::lives(config, &mut errors);
        let scopes = checks::scopes(config, &mut errors);
        checks::audiences(config, &mut errors);
        checks::confidential(config, &mut errors);
        checks::forced(config, &mut errors);
        checks::allowed_users(config, &mut errors);
        let registration = checks::registration(config, &mut errors);
        let keys = secrets::keys(config, &mut errors);
        let opaque = secrets::opaque(config, &mut errors);
        let documents = checks::documents(config, &mut errors);
        let trusted = trust::trusted(config, &mut errors);
        let delegates = trust::delegates(config, &scopes, &mut errors);
        let upstreams = upstreams::upstreams(config, &mut errors);
        let (Some(keys), Some(opaque), true) = (keys, opaque, errors.is_empty()) else { return Err(errors) };
        let base = config.authorization_endpoint_base_url.trim_end_matches('/');
        let authorize_base = if base.is_empty() { config.issuer.clone() } else { base.to_owned() };
        let is_elsewhere =
            |upstream: &UpstreamSettings| origin(&upstream.redirect_uri) != origin(&authorize_base);
        let settings = Self {
            issuer: config.issuer.clone(),
            has_callback_elsewhere: upstreams.iter().any(is_elsewhere),
            authorize_base,
            keys,
            opaque,
            access_life: lives.access,
            refresh_life: lives.refresh,
            code_life: lives.code,
            session_life: lives.session,
            delegation_life: lives.delegation,
            scopes,
            baseline_scopes: config.baseline_client_scopes.clone(),
            audiences: config.allowed_audiences.clone(),
            documents,
            trusted,
            delegates,
            registration,
            allowed_users: config.allowed_users.clone(),
            clients_without_consent: config.clients_without_consent.clone(),
            callbacks: callbacks(&upstreams),
        };
        Ok((settings, upstreams))
    }

    /// Whether the server is on this machine and unencrypted, to develop with.
    pub(crate) fn is_local(&self) -> bool {
        Uri::parse(&self.issuer).is_some_and(|issuer| issuer.is("http") && issuer.is_loopback())
    }

    /// Whether browsers reach it encrypted.
    pub(crate) fn is_secure(&self) -> bool {
        self.authorize_base.starts_with("https:")
    }

    /// The address of the token endpoint.
    pub(crate) fn token_endpoint(&self) -> String {
        format!("{}/oauth/token", self.issuer)
    }

    /// Whether assertions are exchanged for tokens.
    pub(crate) fn has_jwt_bearer(&self) -> bool {
        self.trusted.iter().any(|trusted| trusted.jwt_bearer.is_some())
    }
}

/// Scheme, host and port: a browser has other cookies for another one.
fn origin(uri: &str) -> Option<(&str, &str, Option<&str>)> {
    Uri::parse(uri).map(|uri| (uri.scheme, uri.host, uri.port))
}

/// The paths of redirect URIs. Those that do not end like that of this server lead to something else behind an ingress.
fn callbacks(upstreams: &[UpstreamSettings]) -> Vec<String> {
    let paths =
        upstreams.iter().filter_map(|upstream| Uri::parse(&upstream.redirect_uri).map(|uri| uri.rest));
    paths.filter(|path| path.ends_with("/oauth/callback")).map(str::to_owned).collect()
}
