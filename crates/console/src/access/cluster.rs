//! Access in a cluster, by the tokens of its users.
//!
//! A user signs in with their own Kubernetes token, once; then the page has a cookie. A proxy in front of the console that
//! authenticates users itself can send their token with each request instead. What they may see is up to the API server: the
//! console has no right to act as another user.

use std::sync::Arc;

use aws_lc_rs::rand;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::{Api, Client, Config, api::PostParams, config::AuthInfo};
use serde::Deserialize;
use skep_gateway::http::{Body, response};
use tokio::sync::Semaphore;
use tracing::debug;

use super::{
    Rejected, bearer,
    rights::Rights,
    text,
    users::{User, Users},
};
use crate::{limits, responses::error};

/// The prefix makes browsers refuse it from another host, and without encryption.
const COOKIE: &str = "__Host-skep-console";

/// Access by Kubernetes tokens.
pub struct ClusterAccess {
    /// How the API server is reached, without credentials.
    config: Config,
    users: Users,
    /// The places for sign-ins: each is a request to the API server that a stranger causes.
    sign_ins: Semaphore,
}

#[derive(Deserialize)]
struct SignIn {
    token: String,
}

impl ClusterAccess {
    /// Access by tokens of the cluster that this configuration is for. Its own credentials are not used.
    pub fn new(config: &Config) -> Self {
        let config = with_credentials(config, AuthInfo::default());
        Self { config, users: Users::default(), sign_ins: Semaphore::new(limits::SIGN_INS) }
    }

    /// The user that a request authenticates: by its token, or by its cookie.
    pub(super) async fn user(&self, headers: &HeaderMap) -> Result<Arc<User>, Rejected> {
        if let Some(token) = bearer(headers) {
            if let Some(user) = self.users.find(token) {
                return Ok(user);
            }
            let user = self.authenticate(token).await.ok_or(Rejected::Unauthenticated)?;
            self.users.add(token, user.clone());
            return Ok(user);
        }
        cookie(headers).and_then(|id| self.users.find(id)).ok_or(Rejected::Unauthenticated)
    }

    pub(super) async fn sign_in(&self, body: &[u8]) -> Response<Body> {
        let Ok(SignIn { token }) = serde_json::from_slice(body) else {
            return error(StatusCode::BAD_REQUEST, "the body must be {\"token\": \"...\"}");
        };
        let Some(user) = self.authenticate(token.trim()).await else {
            return error(StatusCode::UNAUTHORIZED, "the cluster does not accept this token");
        };
        let mut id = [0; 24];
        if rand::fill(&mut id).is_err() {
            return error(StatusCode::INTERNAL_SERVER_ERROR, "the system has no random numbers");
        }
        let id = URL_SAFE_NO_PAD.encode(id);
        self.users.add(&id, user);
        with_cookie(&id, limits::SESSION_TIME.as_secs())
    }

    pub(super) fn sign_out(&self, headers: &HeaderMap) -> Response<Body> {
        if let Some(id) = cookie(headers) {
            self.users.remove(id);
        }
        with_cookie("", 0)
    }

    /// The user of a token, by the API server.
    async fn authenticate(&self, token: &str) -> Option<Arc<User>> {
        if token.is_empty() || token.len() > limits::TOKEN {
            return None;
        }
        let _place = self.sign_ins.try_acquire().ok()?;
        let auth_info = AuthInfo { token: Some(token.to_owned().into()), ..AuthInfo::default() };
        let client = Client::try_from(with_credentials(&self.config, auth_info)).ok()?;
        let reviewing: Api<SelfSubjectReview> = Api::all(client.clone());
        let (params, review) = (PostParams::default(), SelfSubjectReview::default());
        let reviewed = reviewing.create(&params, &review);
        let review = match tokio::time::timeout(limits::REVIEW_TIME, reviewed).await {
            Ok(Ok(review)) => review,
            Ok(Err(error)) => {
                debug!(%error, "a token was not accepted");
                return None;
            }
            Err(_) => return None,
        };
        let name = review.status?.user_info?.username.filter(|name| name != "system:anonymous")?;
        Some(Arc::new(User::new(name, Rights::new(client))))
    }
}

/// The same configuration with these credentials.
fn with_credentials(config: &Config, auth_info: AuthInfo) -> Config {
    let mut config = config.clone();
    config.auth_info = auth_info;
    config
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    let cookies = text(headers, &header::COOKIE)?.split(';');
    cookies.map(str::trim).find_map(|pair| pair.strip_prefix(COOKIE)?.strip_prefix('='))
}

fn with_cookie(id: &str, seconds: u64) -> Response<Body> {
    let cookie = format!("{COOKIE}={id}; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age={seconds}");
    let mut response = response::empty(StatusCode::NO_CONTENT);
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}
