//! Registration of this server at an upstream (RFC 7591).

use bytes::Bytes;
use http::{HeaderValue, Method as Verb, Request, header};
use serde_json::{Map, Value, json};
use skep_auth::Fetcher;
use skep_config::auth_server::DynamicRegistration;

use super::{client::UpstreamClient, discovery::Endpoints};
use crate::{
    config::{Credentials, UpstreamSettings},
    limits,
    random::hex_hash,
    store::{Method, Registration, Store},
};

/// This server as a client of the upstream: the configured one, the one that is registered already, or a new one.
pub(super) async fn client(
    settings: &UpstreamSettings,
    endpoints: &Endpoints,
    fetcher: &Fetcher,
    store: &dyn Store,
    issuer: &str,
) -> Result<UpstreamClient, String> {
    let (registration, token) = match &settings.credentials {
        Credentials::Known { id, secret } => {
            let (id, secret) = (id.clone(), secret.clone());
            return Ok(UpstreamClient { id, secret, method: Method::ClientSecretPost });
        }
        Credentials::Registered { registration, token } => (registration, token.as_deref()),
    };
    let upstream = endpoints.issuer.as_deref().unwrap_or(&settings.name);
    let parts = [issuer, upstream, &settings.redirect_uri].map(|part| format!("{}:{part}", part.len()));
    let key = format!("{}:{}", parts.join(":"), hex_hash(&settings.scopes.join(" ")));
    let unavailable = |error: crate::store::StoreError| error.to_string();
    let known = store.registration(&key).await.map_err(unavailable)?;
    let registered = match known {
        Some(known) => known,
        None => {
            let registered = register(settings, registration, token, endpoints, fetcher).await;
            let registered = registered.map_err(|error| format!("registration failed: {error}"))?;
            store.put_registration(&key, &registered).await.map_err(unavailable)?;
            registered
        }
    };
    let Registration { client_id: id, client_secret, token_endpoint_auth_method: method, .. } = registered;
    Ok(UpstreamClient { id, secret: Some(client_secret).filter(|secret| !secret.is_empty()), method })
}

/// The way to authenticate: the first that both sides support. Without a secret, only a proof key protects the code.
fn method(endpoints: &Endpoints) -> Result<Method, String> {
    let supports = |name: &str| endpoints.methods.iter().any(|method| method == name);
    match () {
        () if endpoints.methods.is_empty() || supports("client_secret_basic") => {
            Ok(Method::ClientSecretBasic)
        }
        () if supports("client_secret_post") => Ok(Method::ClientSecretPost),
        () if supports("none") && endpoints.has_s256 => Ok(Method::None),
        () => Err("it supports no way for clients to authenticate that this server has".into()),
    }
}

async fn register(
    settings: &UpstreamSettings,
    registration: &DynamicRegistration,
    token: Option<&str>,
    endpoints: &Endpoints,
    fetcher: &Fetcher,
) -> Result<Registration, String> {
    let method = method(endpoints)?;
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
    *request.uri_mut() = endpoint.parse().map_err(|_| "the registration endpoint is not a URL".to_owned())?;
    request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(token) = token {
        let mut value = HeaderValue::try_from(format!("Bearer {token}"))
            .map_err(|_| "the initial access token is malformed")?;
        value.set_sensitive(true);
        request.headers_mut().insert(header::AUTHORIZATION, value);
    }
    let sent = fetcher.send(request, limits::UPSTREAM_RESPONSE, limits::UPSTREAM_TIME).await;
    let (status, body) = sent.map_err(|error| error.to_string())?;
    match body {
        Some(body) if status.is_success() => registered(&body, method),
        _ => Err(format!("the registration endpoint responds with status {status}")),
    }
}

/// What the upstream registered, which may differ from what was requested (RFC 7591, section 3.2.1).
fn registered(body: &Map<String, Value>, requested: Method) -> Result<Registration, String> {
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let method = match body.get("token_endpoint_auth_method") {
        None => requested,
        Some(value) => {
            serde_json::from_value(value.clone()).map_err(|_| "it wants another authentication")?
        }
    };
    if method == Method::PrivateKeyJwt {
        return Err("it wants another authentication".into());
    }
    let client_id = text("client_id");
    if client_id.is_empty() {
        return Err("its response has no client_id".into());
    }
    let client_secret = text("client_secret");
    if client_secret.is_empty() && method != Method::None {
        return Err("its response has no client_secret".into());
    }
    let expires = body.get("client_secret_expires_at").and_then(Value::as_u64).unwrap_or_default();
    Ok(Registration {
        client_id,
        client_secret,
        token_endpoint_auth_method: method,
        client_secret_expires_at: expires,
    })
}
