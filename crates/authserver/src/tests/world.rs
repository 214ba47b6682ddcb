//! A server with its identity provider, a browser and a client.

use std::{collections::BTreeMap, net::IpAddr};

use bytes::Bytes;
use form_urlencoded::Serializer;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use serde_json::{Value, json};
use skep_testkit::IdentityProvider;

use crate::{AuthServer, rules::challenge_of};

pub(super) const REDIRECT: &str = "http://127.0.0.1:7777/cb";
pub(super) const RESOURCE: &str = "https://mcp.example/mcp";
pub(super) const VERIFIER: &str = "verifier-0123456789-0123456789-0123456789-0123456789";

/// What browsers accept.
const ACCEPT: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

/// A server and its identity provider.
pub(super) struct World {
    pub(super) server: AuthServer,
    pub(super) provider: IdentityProvider,
}

/// A browser with its cookies.
#[derive(Default)]
pub(super) struct Visitor(BTreeMap<String, String>);

/// The parameters of a query or form. An empty value removes one.
pub(super) type Changes<'a> = &'a [(&'a str, &'a str)];

/// The configuration of a server with this provider.
pub(super) fn config(provider: &IdentityProvider, changes: &Value) -> skep_config::AuthServer {
    let mut config = json!({
        "issuer": "http://127.0.0.1:1",
        "upstreams": [{"name": "corp", "type": "oidc", "oidc_config": {
            "issuer_url": provider.issuer, "client_id": "us", "redirect_uri": "http://127.0.0.1:1/oauth/callback",
        }}],
        "allowed_audiences": [RESOURCE],
    });
    for (name, value) in changes.as_object().into_iter().flatten() {
        config[name] = value.clone();
    }
    serde_json::from_value(config).unwrap()
}

/// The metadata of a provider.
pub(super) fn metadata_of(provider: &IdentityProvider) -> Value {
    let at = |path: &str| format!("{}/{path}", provider.issuer);
    json!({
        "issuer": provider.issuer, "authorization_endpoint": at("authorize"), "token_endpoint": at("token"),
        "jwks_uri": at("keys"), "revocation_endpoint": at("revoke"),
    })
}

impl World {
    pub(super) async fn new() -> Self {
        Self::with(json!({})).await
    }

    /// A world whose configuration has these members.
    pub(super) async fn with(changes: Value) -> Self {
        let provider = IdentityProvider::start().await;
        provider.answer("/.well-known/openid-configuration", metadata_of(&provider));
        let server =
            AuthServer::new(&config(&provider, &changes)).map_err(|errors| format!("{errors:?}")).unwrap();
        assert!(server.check().await.unwrap().is_empty());
        Self { server, provider }
    }

    pub(super) async fn send(&self, request: Request<Full<Bytes>>) -> Response<Bytes> {
        self.server.respond(request, IpAddr::from([203, 0, 113, 9])).await
    }

    /// Opens a page in a browser.
    pub(super) async fn open(&self, visitor: &mut Visitor, path: &str) -> Response<Bytes> {
        let request =
            Request::get(path).header(header::COOKIE, visitor.cookies()).header(header::ACCEPT, ACCEPT);
        let response = self.send(request.body(Full::default()).unwrap()).await;
        visitor.keep(&response);
        response
    }

    /// Presses a button of the consent page.
    pub(super) async fn decide(
        &self,
        visitor: &mut Visitor,
        page: &Response<Bytes>,
        decision: &str,
    ) -> Response<Bytes> {
        let mut form = hidden_fields(page);
        form.push(("decision".into(), decision.into()));
        let body = Serializer::new(String::new()).extend_pairs(form).finish();
        let request = Request::post("/oauth/consent")
            .header(header::COOKIE, visitor.cookies())
            .header(header::ACCEPT, ACCEPT)
            .header(header::ORIGIN, "http://127.0.0.1:1")
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        let response = self.send(request.body(Full::from(body)).unwrap()).await;
        visitor.keep(&response);
        response
    }

    pub(super) async fn register(&self, metadata: Value) -> (StatusCode, Value) {
        let request = Request::post("/oauth/register").header(header::CONTENT_TYPE, "application/json");
        let response = self.send(request.body(Full::from(metadata.to_string())).unwrap()).await;
        (response.status(), serde_json::from_slice(response.body()).unwrap_or_default())
    }

    /// Registers a client, and returns its id.
    pub(super) async fn client(&self) -> String {
        let (status, body) =
            self.register(json!({"client_name": "Notes", "redirect_uris": [REDIRECT]})).await;
        assert_eq!(status, StatusCode::CREATED, "{body}");
        body["client_id"].as_str().unwrap().to_owned()
    }

    pub(super) async fn post(&self, path: &str, form: Changes<'_>) -> (StatusCode, Value) {
        let body = Serializer::new(String::new())
            .extend_pairs(form.iter().filter(|(_, value)| !value.is_empty()))
            .finish();
        let request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        let response = self.send(request.body(Full::from(body)).unwrap()).await;
        (response.status(), serde_json::from_slice(response.body()).unwrap_or_default())
    }

    /// Begins a login, and stops at the upstream. Returns its address.
    pub(super) async fn begin(&self, visitor: &mut Visitor, client: &str, changes: Changes<'_>) -> String {
        let mut response = self.open(visitor, &authorize_path(client, changes)).await;
        if response.status() == StatusCode::OK {
            response = self.decide(visitor, &response, "allow").await;
        }
        assert_eq!(response.status(), StatusCode::FOUND, "{response:?}");
        location(&response)
    }

    /// Logs a user in at the upstream, and returns the path with which the browser comes back.
    pub(super) fn at_upstream(&self, url: &str, user: &str) -> String {
        let id_token = self.provider.token(json!({
            "sub": user, "aud": "us", "nonce": parameter(url, "nonce"), "name": "Ann", "email": "ann@example.test",
            // The server's clock may have been moved.
            "exp": self.server.clock.now() + 3600,
        }));
        self.provider.answer(
            "/token",
            json!({
                "access_token": format!("at-of-{user}"), "token_type": "Bearer", "expires_in": 3600,
                "refresh_token": format!("rt-of-{user}"), "id_token": id_token,
            }),
        );
        format!("/oauth/callback?code=x&state={}", parameter(url, "state"))
    }

    /// A whole login. Returns the code.
    pub(super) async fn log_in(&self, visitor: &mut Visitor, client: &str, changes: Changes<'_>) -> String {
        let url = self.begin(visitor, client, changes).await;
        let response = self.open(visitor, &self.at_upstream(&url, "ann")).await;
        assert_eq!(response.status(), StatusCode::SEE_OTHER, "{response:?}");
        parameter(&location(&response), "code")
    }

    pub(super) async fn redeem(&self, client: &str, code: &str, changes: Changes<'_>) -> (StatusCode, Value) {
        let form = changed(
            &[
                ("grant_type", "authorization_code"),
                ("client_id", client),
                ("code", code),
                ("redirect_uri", REDIRECT),
                ("code_verifier", VERIFIER),
                ("resource", RESOURCE),
            ],
            changes,
        );
        self.post("/oauth/token", &form).await
    }

    pub(super) async fn refresh(
        &self,
        client: &str,
        token: &str,
        changes: Changes<'_>,
    ) -> (StatusCode, Value) {
        let form = changed(
            &[("grant_type", "refresh_token"), ("client_id", client), ("refresh_token", token)],
            changes,
        );
        self.post("/oauth/token", &form).await
    }

    /// A login with the tokens of it.
    pub(super) async fn tokens(&self, client: &str) -> Value {
        let code = self.log_in(&mut Visitor::default(), client, &[]).await;
        let (status, body) = self.redeem(client, &code, &[]).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        body
    }
}

impl Visitor {
    pub(super) fn cookies(&self) -> String {
        self.0.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("; ")
    }

    fn keep(&mut self, response: &Response<Bytes>) {
        for value in response.headers().get_all(header::SET_COOKIE) {
            let pair = value.to_str().unwrap().split(';').next().unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            self.0.insert(name.to_owned(), value.to_owned());
        }
    }
}

/// The path of the authorization endpoint with the request of a client.
pub(super) fn authorize_path(client: &str, changes: Changes<'_>) -> String {
    let challenge = challenge_of(VERIFIER);
    let query = changed(
        &[
            ("response_type", "code"),
            ("client_id", client),
            ("redirect_uri", REDIRECT),
            ("state", "client-state"),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("scope", "openid offline_access"),
            ("resource", RESOURCE),
        ],
        changes,
    );
    let query = query.iter().filter(|(_, value)| !value.is_empty());
    format!("/oauth/authorize?{}", Serializer::new(String::new()).extend_pairs(query).finish())
}

fn changed<'a>(defaults: &[(&'a str, &'a str)], changes: Changes<'a>) -> Vec<(&'a str, &'a str)> {
    let is_kept = |name: &str| !changes.iter().any(|(changed, _)| *changed == name);
    defaults.iter().copied().filter(|(name, _)| is_kept(name)).chain(changes.iter().copied()).collect()
}

pub(super) fn location(response: &Response<Bytes>) -> String {
    response.headers()[header::LOCATION].to_str().unwrap().to_owned()
}

/// A parameter in the query of an address.
pub(super) fn parameter(url: &str, name: &str) -> String {
    let query = url.split_once('?').map(|(_, query)| query).unwrap_or_default();
    let value = form_urlencoded::parse(query.as_bytes()).find(|(known, _)| known == name);
    value.map(|(_, value)| value.into_owned()).unwrap_or_default()
}

pub(super) fn hidden_fields(page: &Response<Bytes>) -> Vec<(String, String)> {
    let text = String::from_utf8(page.body().to_vec()).unwrap();
    let inputs = text.split(r#"<input type="hidden" name=""#).skip(1);
    let fields = inputs.map(|input| {
        let (name, rest) = input.split_once('"').unwrap();
        let value = rest.split_once(r#"value=""#).unwrap().1.split_once('"').unwrap().0;
        (name.to_owned(), value.replace("&amp;", "&").replace("&#39;", "'").replace("&quot;", "\""))
    });
    fields.collect()
}
