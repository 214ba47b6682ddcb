//! A minimal identity provider: discovery, keys that rotate, signed tokens, introspection of opaque tokens, and token exchange. It
//! records its requests.

mod keys;
mod pages;

use std::{
    collections::HashMap,
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, rt, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::oneshot};
use tokio_rustls::TlsAcceptor;

use crate::{pki::Authority, scratch::Scratch};
pub use keys::Signing;

/// An identity provider on loopback. It ends when it is dropped.
pub struct IdentityProvider {
    /// Its name, which is also its address.
    pub issuer: String,
    /// The file with its certificate authority, if it has one.
    pub authority: Option<PathBuf>,
    shared: Arc<Shared>,
    _scratch: Option<Scratch>,
    _stop: oneshot::Sender<()>,
}

/// One request.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    /// The path.
    pub path: String,
    /// The head.
    pub headers: HeaderMap,
    /// The form that was sent.
    pub form: HashMap<String, String>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    issuer: String,
    keys: Vec<Signing>,
    made: usize,
    down: bool,
    delay: Duration,
    overrides: HashMap<String, Value>,
    tokens: HashMap<String, Value>,
    requests: Vec<ReceivedRequest>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl IdentityProvider {
    /// Starts one without TLS.
    pub async fn start() -> Self {
        Self::serving("http", None).await
    }

    /// Starts one with TLS, with its own certificate authority.
    pub async fn start_with_tls() -> Self {
        let scratch = Scratch::new().expect("a folder");
        let authority = Authority::create(scratch.path()).expect("an authority");
        let identity = authority.server().expect("a certificate");
        let certificate =
            CertificateDer::from_pem_slice(identity.certificate.as_bytes()).expect("a certificate");
        let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).expect("a key");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|config| config.with_no_client_auth().with_single_cert(vec![certificate], key))
            .expect("TLS");
        let tls = TlsAcceptor::from(Arc::new(config));
        Self::serving("https", Some((tls, scratch))).await
    }

    async fn serving(scheme: &str, secured: Option<(TlsAcceptor, Scratch)>) -> Self {
        let (tls, scratch) = secured.unzip();
        let authority = scratch.as_ref().map(|scratch| scratch.path().join("ca.crt"));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address: SocketAddr = listener.local_addr().expect("its address");
        let issuer = format!("{scheme}://{address}");
        let shared = Arc::<Shared>::default();
        shared.state().issuer.clone_from(&issuer);
        let (stop, mut stopped) = oneshot::channel();
        let provider = Self { issuer, authority, shared: shared.clone(), _scratch: scratch, _stop: stop };
        provider.rotate();
        tokio::spawn(async move {
            loop {
                let stream = tokio::select! {
                    accepted = listener.accept() => accepted.expect("a connection").0,
                    _ = &mut stopped => return,
                };
                let (shared, tls) = (shared.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => connection(TokioIo::new(stream), shared).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                connection(TokioIo::new(stream), shared).await;
                            }
                        }
                    }
                });
            }
        });
        provider
    }

    /// The `oidc_config` of a proxy that trusts it, for callers of `crm`. Entries of `changes` override it.
    pub fn oidc(&self, changes: Value) -> Value {
        let mut oidc = json!({
            "Issuer": self.issuer, "Audience": "crm", "ResourceURL": "https://crm.example/mcp",
            "AllowPrivateIP": true, "InsecureAllowHTTP": self.authority.is_none(),
            "CACertPath": self.authority.as_deref().map(|path| path.display().to_string()).unwrap_or_default(),
        });
        overlay(&mut oidc, changes);
        oidc
    }

    /// Rotates to a new key, and returns its id. Earlier keys stay published.
    pub fn rotate(&self) -> String {
        let mut state = self.shared.state();
        state.made += 1;
        let id = format!("key-{}", state.made);
        state.keys.push(Signing::ecdsa(id.clone()));
        id
    }

    /// Removes all keys but the one that it signs with.
    pub fn retire(&self) {
        let mut state = self.shared.state();
        let old = state.keys.len() - 1;
        state.keys.drain(..old);
    }

    /// Signs with this key from now on.
    pub fn adopt(&self, key: Signing) {
        self.shared.state().keys.push(key);
    }

    /// The public half of the key that it signs with.
    pub fn public(&self) -> Value {
        self.shared.state().keys.last().expect("a key").public()
    }

    /// A token for a caller of `crm` that is valid for an hour. Entries of `changes` override its claims; null removes one.
    pub fn token(&self, changes: Value) -> String {
        self.token_with(json!({}), changes)
    }

    /// The same, with another head.
    pub fn token_with(&self, header: Value, changes: Value) -> String {
        let claims = self.claims(changes);
        let state = self.shared.state();
        let key = state.keys.last().expect("a key");
        let mut head = key.header();
        overlay(&mut head, header);
        key.token(&head, &claims)
    }

    /// The claims of such a token.
    pub fn claims(&self, changes: Value) -> Value {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970").as_secs();
        let mut claims = json!({"iss": self.issuer, "aud": "crm", "sub": "alice", "iat": now, "nbf": now, "exp": now + 3600});
        overlay(&mut claims, changes);
        claims
    }

    /// Makes an opaque token mean these claims.
    pub fn issue(&self, token: &str, claims: Value) {
        self.shared.state().tokens.insert(token.to_owned(), claims);
    }

    /// Makes an opaque token mean nothing.
    pub fn revoke(&self, token: &str) {
        self.shared.state().tokens.remove(token);
    }

    /// Overrides the response at a path. `{"status": 500}` is a status, with the JSON of `body`; null removes the override.
    pub fn answer(&self, path: &str, answer: Value) {
        self.shared.state().overrides.insert(path.to_owned(), answer);
    }

    /// Aborts every request from now on.
    pub fn down(&self) {
        self.shared.state().down = true;
    }

    /// Responds again.
    pub fn up(&self) {
        self.shared.state().down = false;
    }

    /// Delays every response.
    pub fn slow(&self, delay: Duration) {
        self.shared.state().delay = delay;
    }

    /// The requests to a path.
    pub fn requests(&self, path: &str) -> Vec<ReceivedRequest> {
        self.shared.state().requests.iter().filter(|request| request.path == path).cloned().collect()
    }
}

/// Entries override those of the same name; null removes one.
fn overlay(base: &mut Value, changes: Value) {
    let (Value::Object(base), Value::Object(changes)) = (base, changes) else { return };
    for (key, value) in changes {
        if value.is_null() {
            base.remove(&key);
        } else {
            base.insert(key, value);
        }
    }
}

async fn connection<I>(io: I, shared: Arc<Shared>)
where
    I: rt::Read + rt::Write + Unpin + Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let shared = shared.clone();
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
            let form = form_urlencoded::parse(&body).into_owned().collect();
            let request = ReceivedRequest { path: parts.uri.path().to_owned(), headers: parts.headers, form };
            let (page, delay) = {
                let mut state = shared.state();
                state.requests.push(request.clone());
                (if state.down { None } else { Some(pages::page(&state, &request)) }, state.delay)
            };
            tokio::time::sleep(delay).await;
            // An error here closes the connection without a response.
            page.map(|page| page.map(|body| Full::new(Bytes::from(body)))).ok_or("it is down")
        }
    });
    http1::Builder::new().serve_connection(io, service).await.ok();
}
