//! What a backend is made from: two of the same make the same backend.

use std::{
    collections::BTreeMap,
    fs,
    net::IpAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use http::{HeaderName, HeaderValue, Uri};
use skep_api::vmcp::{BackendAuthStrategy, BackendTransport};
use skep_config::field::joined;
use skep_gateway::{AuthorizationServer, body::Budget, outbound::Client};
use tokio::sync::watch;

use super::{Backend, Checks, Credentials, Settings, credentials::Server};
use crate::ConfigError;

/// What a backend is made from. It may have secrets, so it is never logged.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Blueprint {
    pub(crate) name: Arc<str>,
    pub(crate) url: String,
    pub(crate) transport: BackendTransport,
    pub(crate) strategy: Option<BackendAuthStrategy>,
    /// The MCPExternalAuthConfig that it comes from, if the backend's own object names one.
    pub(crate) auth_config: Option<String>,
    /// Headers that every request has.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) authorities: Authorities,
}

/// Whose certificates are trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Authorities {
    /// Those that the system trusts.
    #[default]
    System,
    /// Those in a file.
    File(String),
    /// Those in this text, in PEM.
    Pem(String),
}

/// Makes backends.
pub(crate) struct Factory {
    own: Arc<Client>,
    /// Made for the first backend that needs it: it reads all certificates that the system trusts.
    remote: OnceLock<Arc<Client>>,
    checks: Checks,
    timeout: Box<dyn Fn(&str) -> Duration + Send + Sync>,
    changed: Arc<watch::Sender<u64>>,
    authorization_server: Option<Arc<dyn AuthorizationServer>>,
    budget: Budget,
}

impl Factory {
    /// One whose backends are checked so, and have these timeouts.
    pub(crate) fn new(
        checks: Checks,
        timeout: impl Fn(&str) -> Duration + Send + Sync + 'static,
        changed: Arc<watch::Sender<u64>>,
        authorization_server: Option<Arc<dyn AuthorizationServer>>,
        budget: Budget,
    ) -> Result<Self, ConfigError> {
        Client::check_proxies()?;
        let (own, remote) = (Arc::new(Client::new(false)?), OnceLock::new());
        Ok(Self { own, remote, checks, timeout: Box::new(timeout), changed, authorization_server, budget })
    }

    /// The identity providers of the authorization server, if there is one.
    pub(crate) fn providers(&self) -> Option<Vec<String>> {
        let server = self.authorization_server.as_ref()?;
        Some(server.providers().into_iter().map(str::to_owned).collect())
    }

    /// Closes connections to backends that have been idle for long, for ever.
    pub(crate) async fn close_idle_connections(&self) {
        self.own.expire().await;
    }

    fn remote(&self) -> Result<Arc<Client>, String> {
        if let Some(client) = self.remote.get() {
            return Ok(client.clone());
        }
        let client = Client::new(true).map_err(|error| error.to_string())?;
        Ok(self.remote.get_or_init(|| Arc::new(client)).clone())
    }

    /// The backend, or why there cannot be one.
    pub(crate) fn backend(&self, blueprint: &Blueprint) -> Result<Backend, String> {
        let Blueprint { name, url, transport, strategy, auth_config: _, headers, authorities } = blueprint;
        let uri: Uri = url.parse().map_err(|_| format!("url: {url:?} is not a URL"))?;
        let server = Server { embedded: self.authorization_server.as_ref(), backend: name };
        let credentials = Credentials::new(strategy.as_ref(), server).map_err(|errors| joined(&errors))?;
        let client = match authorities {
            Authorities::System if is_remote(&uri) => self.remote()?,
            Authorities::System => self.own.clone(),
            Authorities::File(path) => {
                let pem = fs::read(path).map_err(|error| format!("caBundlePath: {path}: {error}"))?;
                trusting(&pem)?
            }
            Authorities::Pem(pem) => trusting(pem.as_bytes())?,
        };
        let has_credentials = !matches!(credentials, Credentials::Unauthenticated);
        let thresholds = self.checks.thresholds.clone().with_credentials(has_credentials);
        let settings = Settings {
            blueprint: blueprint.clone(),
            uri,
            transport: *transport,
            credentials,
            headers: headers.iter().map(header).collect::<Result<_, _>>()?,
            timeout: (self.timeout)(name),
            checks: Checks { thresholds, ..self.checks.clone() },
            budget: self.budget.clone(),
        };
        Ok(Backend::new(settings, client, self.changed.clone()))
    }
}

/// Whether requests to a backend are encrypted, or may have to go through an egress proxy: not those of a Service of the cluster, or
/// of this machine, whose names no other host has.
fn is_remote(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_end_matches('.');
    let is_service = host.ends_with(".svc") || host.contains(".svc.");
    let is_loopback =
        host.trim_matches(['[', ']']).parse().is_ok_and(|address: IpAddr| address.is_loopback());
    let is_near = is_service || is_loopback || !host.contains(['.', ':']);
    uri.scheme_str() == Some("https") || (!is_near && Client::is_proxied(uri))
}

fn trusting(pem: &[u8]) -> Result<Arc<Client>, String> {
    Client::trusting(pem).map(Arc::new).map_err(|error| format!("certificates: {error}"))
}

fn header((name, value): (&String, &String)) -> Result<(HeaderName, HeaderValue), String> {
    let invalid = || format!("{name:?} is not a valid header");
    let parsed = HeaderName::try_from(name.as_str()).map_err(|_| invalid())?;
    let mut value = HeaderValue::try_from(value.as_str()).map_err(|_| invalid())?;
    value.set_sensitive(true);
    Ok((parsed, value))
}
