//! The endpoints of an upstream.

use bytes::Bytes;
use http::{Request, StatusCode};
use serde_json::{Map, Value};
use skep_auth::Fetcher;

use crate::{
    config::{Credentials, Kind, UpstreamSettings},
    limits,
    rules::Uri,
    store::Method,
};

/// Where an upstream is.
pub(super) struct Endpoints {
    pub(super) authorize: String,
    pub(super) token: String,
    pub(super) issuer: Option<String>,
    /// The address of its keys.
    pub(super) keys: Option<String>,
    /// Whether every response names the issuer (RFC 9207, section 3).
    pub(super) names_issuer: bool,
    pub(super) registration: Option<String>,
    /// Where tokens are revoked (RFC 7009).
    pub(super) revocation: Option<String>,
    /// How clients may authenticate. Empty: it does not say.
    pub(super) methods: Vec<String>,
    pub(super) has_s256: bool,
}

impl Endpoints {
    /// How a client sends its secret: in the form, unless the upstream accepts it in the header only.
    pub(super) fn secret_method(&self) -> Method {
        let accepts = |name: &str| self.methods.iter().any(|method| method == name);
        match accepts("client_secret_basic") && !accepts("client_secret_post") {
            true => Method::ClientSecretBasic,
            false => Method::ClientSecretPost,
        }
    }
}

/// The endpoints, from the configuration or from the metadata of the upstream.
pub(super) async fn endpoints(settings: &UpstreamSettings, fetcher: &Fetcher) -> Result<Endpoints, String> {
    match &settings.kind {
        Kind::Oidc { issuer, .. } => {
            let issuer = issuer.trim_end_matches('/');
            let document = document(fetcher, &format!("{issuer}/.well-known/openid-configuration")).await?;
            let endpoints = described(&document);
            // Otherwise one issuer could impersonate another (OpenID Connect Discovery 1.0, section 4.3).
            if endpoints.issuer.as_deref().map(|named| named.trim_end_matches('/')) != Some(issuer) {
                return Err(format!("the metadata of {issuer} describes another issuer"));
            }
            complete(endpoints, true)
        }
        Kind::Oauth2 { authorize, token, .. } => {
            let configured =
                |text: &String, found: String| if text.is_empty() { found } else { text.clone() };
            let found = match &settings.credentials {
                Credentials::Registered { registration, .. } if !registration.discovery_url.is_empty() => {
                    described(&document(fetcher, &registration.discovery_url).await?)
                }
                Credentials::Registered { registration, .. } => Endpoints {
                    registration: Some(registration.registration_endpoint.clone()),
                    ..described(&Map::new())
                },
                Credentials::Known { .. } => described(&Map::new()),
            };
            let endpoints = Endpoints {
                authorize: configured(authorize, found.authorize),
                token: configured(token, found.token),
                ..found
            };
            complete(endpoints, false)
        }
    }
}

fn complete(endpoints: Endpoints, needs_keys: bool) -> Result<Endpoints, String> {
    let missing = |name: &str| Err(format!("its metadata has no {name}"));
    match () {
        () if endpoints.authorize.is_empty() => missing("authorization_endpoint"),
        () if endpoints.token.is_empty() => missing("token_endpoint"),
        // Browsers are sent there.
        () if !is_web_address(&endpoints.authorize) => {
            Err("its authorization_endpoint is not an address of http or https".into())
        }
        () if needs_keys && endpoints.keys.is_none() => missing("jwks_uri"),
        () => Ok(endpoints),
    }
}

fn is_web_address(address: &str) -> bool {
    Uri::parse(address).is_some_and(|uri| (uri.is("https") || uri.is("http")) && uri.has_host())
}

fn described(document: &Map<String, Value>) -> Endpoints {
    let text = |name: &str| document.get(name).and_then(Value::as_str).map(str::to_owned);
    let list = |name: &str| -> Vec<String> {
        let values = document.get(name).and_then(Value::as_array).into_iter().flatten();
        values.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let issuer = text("issuer");
    Endpoints {
        authorize: text("authorization_endpoint").unwrap_or_default(),
        token: text("token_endpoint").unwrap_or_default(),
        keys: text("jwks_uri"),
        names_issuer: document.get("authorization_response_iss_parameter_supported")
            == Some(&Value::Bool(true)),
        // Some providers have one that they do not name.
        registration: text("registration_endpoint")
            .or_else(|| issuer.as_ref().map(|issuer| format!("{issuer}/register"))),
        revocation: text("revocation_endpoint"),
        methods: list("token_endpoint_auth_methods_supported"),
        has_s256: list("code_challenge_methods_supported").iter().any(|method| method == "S256"),
        issuer,
    }
}

async fn document(fetcher: &Fetcher, address: &str) -> Result<Map<String, Value>, String> {
    let request = Request::get(address).body(Bytes::new()).map_err(|_| format!("{address} is not a URL"))?;
    let sent = fetcher.send(request, limits::UPSTREAM_RESPONSE, limits::UPSTREAM_TIME).await;
    match sent.map_err(|error| error.to_string())? {
        (StatusCode::OK, Some(document)) => Ok(document),
        (StatusCode::OK, None) => Err(format!("{address} is not a JSON object")),
        (status, _) => Err(format!("{address} responds with status {status}")),
    }
}
