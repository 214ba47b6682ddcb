//! A whole flow, step by step: each may be taken at another server.

use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode};
use rcgen::KeyPair;
use serde_json::{Value, json};
use skep_testkit::IdentityProvider;

use super::{
    redis_places::Folder,
    world::{Visitor, World, authorize_path, config, location, parameter},
};
use crate::{AuthServer, store::Store};

/// The names of the steps, in their order.
pub(super) const STEPS: [&str; 8] =
    ["register", "page", "decision", "first provider", "second provider", "code", "refresh", "use"];

/// Servers with the same keys and the same two providers.
pub(super) struct Servers {
    config: skep_config::AuthServer,
    issuer: String,
    _folder: Folder,
}

impl Servers {
    /// The servers, and their provider, which is both of them.
    pub(super) async fn new() -> (Self, IdentityProvider) {
        let (provider, folder) = (IdentityProvider::start().await, Folder::new());
        folder.write("sign.pem", &KeyPair::generate().unwrap().serialize_pem());
        let secret = folder.write("hmac", &"h".repeat(32));
        let upstream = |name: &str| {
            json!({"name": name, "type": "oauth2", "oauth2_config": {
                "authorization_endpoint": format!("{}/authorize", provider.issuer),
                "token_endpoint": format!("{}/token", provider.issuer),
                "client_id": "us", "redirect_uri": "http://127.0.0.1:1/oauth/callback",
                "identity_from_token": {"subject_path": "who", "name_path": "who"},
            }})
        };
        let changes = json!({
            "upstreams": [upstream("one"), upstream("two")], "hmac_secret_files": [secret],
            "signing_key_config": {"key_dir": folder.0, "signing_key_file": "sign.pem"},
        });
        (
            Self { config: config(&provider, &changes), issuer: provider.issuer.clone(), _folder: folder },
            provider,
        )
    }

    /// A server of its own process, with this store.
    pub(super) async fn start(&self, store: Arc<dyn Store>) -> AuthServer {
        let server = AuthServer::with_store(&self.config, store);
        server.check().await.unwrap();
        server
    }

    /// Whether a browser that is sent to this address is at the provider.
    fn is_provider(&self, url: &str) -> bool {
        url.starts_with(&self.issuer)
    }
}

/// What a user or a client gets in place of a step.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) status: StatusCode,
    pub(super) body: String,
}

/// A user, the browser and the client.
pub(super) struct Flow {
    pub(super) user: &'static str,
    visitor: Visitor,
    pub(super) client: String,
    page: Response<Bytes>,
    /// Where the browser is.
    pub(super) url: String,
    pub(super) code: String,
    pub(super) tokens: Value,
    /// The refresh token that came with the code.
    first_refresh: String,
}

impl Flow {
    pub(super) fn new(user: &'static str) -> Self {
        Self {
            user,
            visitor: Visitor::default(),
            client: String::new(),
            page: Response::default(),
            url: String::new(),
            code: String::new(),
            tokens: Value::Null,
            first_refresh: String::new(),
        }
    }

    /// Takes a step at a server.
    pub(super) async fn step(&mut self, servers: &Servers, world: &World, step: &str) -> Result<(), Failure> {
        match step {
            "register" => self.client = world.client().await,
            "page" => {
                self.visitor = Visitor::default();
                let path = authorize_path(&self.client, &[]);
                self.page = shown(world.open(&mut self.visitor, &path).await)?;
            }
            "decision" => {
                let sent = world.decide(&mut self.visitor, &self.page, "allow").await;
                self.url = sent_on(&sent)?;
                assert!(servers.is_provider(&self.url), "{}", self.url);
            }
            "first provider" | "second provider" => {
                let path = self.back(world, step);
                self.url = sent_on(&world.open(&mut self.visitor, &path).await)?;
                self.code = parameter(&self.url, "code");
                assert_eq!(servers.is_provider(&self.url), step == "first provider", "{}", self.url);
            }
            "code" => {
                self.tokens = granted(world.redeem(&self.client, &self.code, &[]).await)?;
                self.first_refresh = self.refresh_token();
            }
            "refresh" => {
                let token = self.refresh_token();
                self.tokens = granted(world.refresh(&self.client, &token, &[]).await)?;
            }
            _ => {
                let access = self.tokens["access_token"].as_str().unwrap();
                let claims = world.server.claims(access).await.unwrap().expect("its session goes on");
                assert_eq!(claims["name"], self.user);
                for provider in ["one", "two"] {
                    let session = claims["tsid"].as_str().unwrap();
                    let token = world.server.upstream_tokens().access_token(session, provider).await;
                    let expected = format!("token-of-{}-{provider}", self.user);
                    assert_eq!(token.as_deref(), Ok(&*expected), "{}", self.user);
                }
            }
        }
        Ok(())
    }

    /// Logs the user in at a provider, and returns the path with which the browser comes back.
    pub(super) fn back(&self, world: &World, step: &str) -> String {
        let name = if step == "first provider" { "one" } else { "two" };
        let token = format!("token-of-{}-{name}", self.user);
        world
            .provider
            .answer("/token", json!({"access_token": token, "token_type": "bearer", "who": self.user}));
        format!("/oauth/callback?code=x&state={}", parameter(&self.url, "state"))
    }

    pub(super) fn refresh_token(&self) -> String {
        self.tokens["refresh_token"].as_str().unwrap().to_owned()
    }

    /// Another user's browser, client and token requests get nothing of this flow.
    pub(super) async fn steal(&mut self, other: &Self, world: &World) {
        if !other.url.is_empty() && other.code.is_empty() {
            let path = format!("/oauth/callback?code=x&state={}", parameter(&other.url, "state"));
            let response = world.open(&mut self.visitor, &path).await;
            assert_eq!(response.status(), StatusCode::BAD_REQUEST);
        }
        if self.client.is_empty() {
            return;
        }
        if !other.code.is_empty() && other.tokens.is_null() {
            let (status, body) = world.redeem(&self.client, &other.code, &[]).await;
            assert_eq!(
                (status, &body["error"]),
                (StatusCode::BAD_REQUEST, &json!("invalid_grant")),
                "{body}"
            );
        }
        if !other.tokens.is_null() {
            let (status, body) = world.refresh(&self.client, &other.refresh_token(), &[]).await;
            assert_eq!(
                (status, &body["error"]),
                (StatusCode::BAD_REQUEST, &json!("invalid_grant")),
                "{body}"
            );
        }
    }

    /// What was spent stays so: the code and the first refresh token give nothing.
    pub(super) async fn reuse(&self, world: &World) {
        for (status, body) in [
            world.refresh(&self.client, &self.first_refresh, &[]).await,
            world.redeem(&self.client, &self.code, &[]).await,
        ] {
            assert_eq!(
                (status, &body["error"]),
                (StatusCode::BAD_REQUEST, &json!("invalid_grant")),
                "{body}"
            );
        }
    }

    /// Refreshes with the token that came with the code.
    pub(super) async fn refresh_first(&self, world: &World) -> (StatusCode, Value) {
        world.refresh(&self.client, &self.first_refresh, &[]).await
    }

    pub(super) async fn revoke(&self, world: &World) -> (StatusCode, Value) {
        world.post("/oauth/revoke", &[("client_id", &self.client), ("token", &self.refresh_token())]).await
    }

    pub(super) async fn redeem(&self, world: &World) -> (StatusCode, Value) {
        world.redeem(&self.client, &self.code, &[]).await
    }
}

fn failure(response: &Response<Bytes>) -> Failure {
    Failure { status: response.status(), body: String::from_utf8_lossy(response.body()).into_owned() }
}

fn shown(response: Response<Bytes>) -> Result<Response<Bytes>, Failure> {
    if response.status() == StatusCode::OK { Ok(response) } else { Err(failure(&response)) }
}

fn sent_on(response: &Response<Bytes>) -> Result<String, Failure> {
    if !response.status().is_redirection() {
        return Err(failure(response));
    }
    let url = location(response);
    match parameter(&url, "error").as_str() {
        "" => Ok(url),
        error => Err(Failure { status: response.status(), body: error.to_owned() }),
    }
}

fn granted((status, body): (StatusCode, Value)) -> Result<Value, Failure> {
    if status == StatusCode::OK { Ok(body) } else { Err(Failure { status, body: body.to_string() }) }
}
