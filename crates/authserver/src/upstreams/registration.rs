//! Registration of this server at an upstream (RFC 7591).

use bytes::Bytes;
use http::{HeaderValue, Method as Verb, Request, header};
use serde_json::{Map, Value, json};
use skep_auth::Fetcher;
use skep_config::auth_server::DynamicRegistration;

use super::{ConnectError, client::UpstreamClient, discovery::Endpoints, is_transient};
use crate::{
    config::{Credentials, UpstreamSettings},
    limits,
    random::hex_hash,
    store::{Lock, Method, Registration, Store, StoreError},
};

/// What registers this server at an upstream.
pub(super) struct Registrar<'a> {
    pub(super) settings: &'a UpstreamSettings,
    pub(super) endpoints: &'a Endpoints,
    pub(super) fetcher: &'a Fetcher,
}

impl Registrar<'_> {
    /// This server as a client of the upstream: the configured one, the one that is registered already, or a new one.
    pub(super) async fn client(
        &self,
        store: &dyn Store,
        issuer: &str,
        now: u64,
    ) -> Result<UpstreamClient, ConnectError> {
        let settings = self.settings;
        let (registration, token) = match &settings.credentials {
            Credentials::Known { id, secret } => {
                let (id, secret) = (id.clone(), secret.clone());
                return Ok(UpstreamClient { id, secret, method: self.endpoints.secret_method(), expires: 0 });
            }
            Credentials::Registered { registration, token } => (registration, token.as_deref()),
        };
        let upstream = self.endpoints.issuer.as_deref().unwrap_or(&settings.name);
        let parts = [issuer, upstream, &settings.redirect_uri].map(|part| format!("{}:{part}", part.len()));
        let key = format!("{}:{}", parts.join(":"), hex_hash(&settings.scopes.join(" ")));
        let registered = match known(store, &key, now).await? {
            Some(known) => known,
            None => {
                // Replicas are one client: otherwise a login that began at one could not end at another.
                let lock = Lock::take(store, &key).await.map_err(unavailable)?;
                let registering = async {
                    match known(store, &key, now).await? {
                        None => self.register_and_store(registration, token, (store, &key)).await,
                        Some(known) => Ok(known),
                    }
                };
                lock.hold_during(registering).await?
            }
        };
        Ok(UpstreamClient {
            id: registered.client_id,
            secret: Some(registered.client_secret).filter(|secret| !secret.is_empty()),
            method: registered.token_endpoint_auth_method,
            expires: registered.client_secret_expires_at,
        })
    }

    async fn register_and_store(
        &self,
        registration: &DynamicRegistration,
        token: Option<&str>,
        (store, key): (&dyn Store, &str),
    ) -> Result<Registration, ConnectError> {
        let registered = register(self, registration, token).await?;
        store.put_registration(key, &registered).await.map_err(unavailable)?;
        Ok(registered)
    }
}

/// The registration in the store, if its secret has not expired.
async fn known(store: &dyn Store, key: &str, now: u64) -> Result<Option<Registration>, ConnectError> {
    let known = store.registration(key).await.map_err(unavailable)?;
    Ok(known.filter(|known| !known.is_over(now)))
}

fn unavailable(error: StoreError) -> ConnectError {
    ConnectError::Unavailable(error.to_string())
}

/// The way to authenticate: the first that both sides support. Without a secret, only a proof key protects the code.
fn method(endpoints: &Endpoints) -> Result<Method, &'static str> {
    let supports = |name: &str| endpoints.methods.iter().any(|method| method == name);
    match () {
        () if endpoints.methods.is_empty() || supports("client_secret_basic") => {
            Ok(Method::ClientSecretBasic)
        }
        () if supports("client_secret_post") => Ok(Method::ClientSecretPost),
        () if supports("none") && endpoints.has_s256 => Ok(Method::None),
        () => Err("it supports no way for clients to authenticate that this server has"),
    }
}

async fn register(
    registrar: &Registrar<'_>,
    registration: &DynamicRegistration,
    token: Option<&str>,
) -> Result<Registration, ConnectError> {
    let Registrar { settings, endpoints, fetcher } = registrar;
    let refused = |why: &str| ConnectError::Refused(why.to_owned());
    let method = method(endpoints).map_err(refused)?;
    let mut metadata = json!({
        "redirect_uris": [settings.redirect_uri],
        "client_name": "skep",
        "token_endpoint_auth_method": method,
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "scope": settings.scopes.join(" "),
    });
    for (name, value) in
        [("software_id", &registration.software_id), ("software_statement", &registration.software_statement)]
    {
        if !value.is_empty() {
            metadata[name] = value.as_str().into();
        }
    }
    let endpoint = endpoints.registration.as_deref().unwrap_or_default();
    let mut request = Request::new(Bytes::from(metadata.to_string()));
    *request.method_mut() = Verb::POST;
    *request.uri_mut() = endpoint.parse().map_err(|_| refused("the registration endpoint is not a URL"))?;
    request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(token) = token {
        let mut value = HeaderValue::try_from(format!("Bearer {token}"))
            .map_err(|_| refused("the initial access token is malformed"))?;
        value.set_sensitive(true);
        request.headers_mut().insert(header::AUTHORIZATION, value);
    }
    let sent = fetcher.send(request, limits::UPSTREAM_RESPONSE, limits::UPSTREAM_TIME).await;
    let (status, body) =
        sent.map_err(|error| ConnectError::Unavailable(format!("registration failed: {error}")))?;
    let responds = || format!("the registration endpoint responds with status {status}");
    match body {
        Some(body) if status.is_success() => registered(&body, method).map_err(refused),
        _ if is_transient(status) => {
            Err(ConnectError::Unavailable(format!("registration failed: {}", responds())))
        }
        _ => Err(ConnectError::Refused(responds())),
    }
}

/// What the upstream registered, which may differ from what was requested (RFC 7591, section 3.2.1).
fn registered(body: &Map<String, Value>, requested: Method) -> Result<Registration, &'static str> {
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let method = match body.get("token_endpoint_auth_method") {
        None => requested,
        Some(value) => {
            serde_json::from_value(value.clone()).map_err(|_| "it wants another authentication")?
        }
    };
    if method == Method::PrivateKeyJwt {
        return Err("it wants another authentication");
    }
    let client_id = text("client_id");
    if client_id.is_empty() {
        return Err("its response has no client_id");
    }
    let client_secret = text("client_secret");
    if client_secret.is_empty() && method != Method::None {
        return Err("its response has no client_secret");
    }
    let expires = body.get("client_secret_expires_at").and_then(Value::as_u64).unwrap_or_default();
    Ok(Registration {
        client_id,
        client_secret,
        token_endpoint_auth_method: method,
        client_secret_expires_at: expires,
    })
}
