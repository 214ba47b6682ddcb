//! Access in a cluster, by the tokens of its users.
//!
//! A user signs in with their own Kubernetes token, or by a login at an OpenID provider whose ID tokens the API server accepts,
//! once; then the page has a cookie. On a port of the user's own machine, where `kubectl port-forward` leads, the page sends the session
//! itself: servers on other ports of the same host would get a cookie as well. A proxy in front of the console that authenticates users itself can send their token with
//! each request instead. What they may see is up to the API server: the
//! console has no right to act as another user.

use std::{net::IpAddr, sync::Arc};

use aws_lc_rs::rand;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::{Api, Client, Config, api::PostParams, config::AuthInfo};
use serde::Deserialize;
use serde_json::json;
use skep_auth::Places;
use skep_gateway::http::{Body, is_this_machine, response};
use tracing::debug;

use super::{
    Rejected, bearer,
    login::{Failure, Finished, Login},
    rights::Rights,
    text,
    users::{User, Users, session_time},
};
use crate::{
    limits,
    responses::{busy, error},
};

/// The prefix makes browsers refuse it from another host, and without encryption.
const COOKIE: &str = "__Host-skep-console";
/// The cookie of a login that has begun. It must come back with the browser from the site of the provider, so it is not
/// `Strict`.
const LOGIN_COOKIE: &str = "__Host-skep-login";

/// The beginning of a session that the page sends as a token. No token of a cluster begins so.
const SESSION: &str = "skep-session-";

/// Access by Kubernetes tokens.
pub struct ClusterAccess {
    /// How the API server is reached, without credentials.
    config: Config,
    users: Users,
    /// The places for sign-ins: each is a request to the API server that a stranger causes.
    sign_ins: Arc<Places>,
    login: Option<Login>,
}

/// A user who has signed in.
struct Session {
    id: String,
    /// How long they stay signed in.
    seconds: u64,
}

#[derive(Deserialize)]
struct SignIn {
    token: String,
}

impl ClusterAccess {
    /// Access by tokens of the cluster that this configuration is for. Its own credentials are not used.
    pub fn new(config: &Config) -> Self {
        let config = with_credentials(config, AuthInfo::default());
        let sign_ins = Places::new(limits::SIGN_INS, limits::OF_AN_ADDRESS);
        Self { config, users: Users::default(), sign_ins, login: None }
    }

    /// The same, with logins at a provider.
    pub fn with_login(self, login: Login) -> Self {
        Self { login: Some(login), ..self }
    }

    /// The host of the provider where users can log in.
    pub(super) fn provider(&self) -> Option<&str> {
        self.login.as_ref().map(Login::host)
    }

    /// The user that a request authenticates: by its token, or by its session.
    pub(super) async fn user(&self, headers: &HeaderMap, peer: IpAddr) -> Result<Arc<User>, Rejected> {
        if let Some(token) = bearer(headers).filter(|token| !token.starts_with(SESSION)) {
            if let Some(user) = self.users.find(token) {
                return Ok(user);
            }
            let user = self.authenticate(token, peer).await?;
            self.users.add(token, user.clone());
            return Ok(user);
        }
        session(headers).and_then(|id| self.users.find(id)).ok_or(Rejected::Unauthenticated)
    }

    pub(super) async fn sign_in(&self, headers: &HeaderMap, body: &[u8], peer: IpAddr) -> Response<Body> {
        let Ok(SignIn { token }) = serde_json::from_slice(body) else {
            return error(StatusCode::BAD_REQUEST, "the body must be {\"token\": \"...\"}");
        };
        match self.open_session(token.trim(), peer).await {
            Ok(session) if is_local(headers) => {
                response::json(StatusCode::OK, json!({"session": session.id}).to_string())
            }
            Ok(session) => with_cookies(response::empty(StatusCode::NO_CONTENT), &[session.cookie()]),
            Err(response) => response,
        }
    }

    /// Begins a login: the browser gets a cookie, and the address to go to.
    pub(super) async fn begin_login(&self, peer: IpAddr) -> Option<Response<Body>> {
        let login = self.login.as_ref()?;
        Some(match login.begin(peer).await {
            Some(begun) => {
                let cookie = login_cookie(&begun.id, limits::LOGIN_TIME.as_secs());
                let body = json!({"location": begun.location}).to_string();
                with_cookies(response::json(StatusCode::OK, body), &[cookie])
            }
            None => error(
                StatusCode::BAD_GATEWAY,
                "the provider of logins does not respond, or too many log in at once",
            ),
        })
    }

    /// Ends a login, to which the provider has sent the browser back with this query, and leads to the page.
    pub(super) async fn finish_login(
        &self,
        headers: &HeaderMap,
        query: &str,
        peer: IpAddr,
    ) -> Option<Response<Body>> {
        let login = self.login.as_ref()?;
        let finished = async {
            let query =
                Some(query).filter(|query| query.len() <= limits::CALLBACK).ok_or(Failure::Unknown)?;
            let Finished { token, state } = login.finish(cookie(headers, LOGIN_COOKIE), query, peer).await?;
            let opened = self.open_session(&token, peer).await;
            opened.map(|session| (session, state)).map_err(|_| Failure::Cluster)
        };
        let (page, session) = match finished.await {
            // Browsers do not send what follows the #, and the page removes it from the address. The state tells the page that it has
            // begun this login.
            Ok((session, state)) if is_local(headers) => {
                (format!("/#token={}&state={state}", session.id), None)
            }
            Ok((session, _)) => ("/".to_owned(), Some(session.cookie())),
            Err(failure) => (format!("/#login={}", failure.name()), None),
        };
        let mut response = response::empty(StatusCode::SEE_OTHER);
        response.headers_mut().insert(header::LOCATION, HeaderValue::from_str(&page).ok()?);
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        let cookies: Vec<String> = session.into_iter().chain([login_cookie("", 0)]).collect();
        Some(with_cookies(response, &cookies))
    }

    /// A session of the user of this token.
    async fn open_session(&self, token: &str, peer: IpAddr) -> Result<Session, Response<Body>> {
        let user = match self.authenticate(token, peer).await {
            Ok(user) => user,
            Err(Rejected::Busy) => return Err(busy()),
            Err(_) => return Err(error(StatusCode::UNAUTHORIZED, "the cluster does not accept this token")),
        };
        let mut id = [0; 24];
        if rand::fill(&mut id).is_err() {
            return Err(error(StatusCode::INTERNAL_SERVER_ERROR, "the system has no random numbers"));
        }
        let id = format!("{SESSION}{}", URL_SAFE_NO_PAD.encode(id));
        self.users.add(&id, user);
        Ok(Session { id, seconds: session_time(token).as_secs() })
    }

    pub(super) fn sign_out(&self, headers: &HeaderMap) -> Response<Body> {
        if let Some(id) = session(headers) {
            self.users.remove(id);
        }
        let none = Session { id: String::new(), seconds: 0 };
        with_cookies(response::empty(StatusCode::NO_CONTENT), &[none.cookie()])
    }

    /// The user of a token, by the API server.
    async fn authenticate(&self, token: &str, peer: IpAddr) -> Result<Arc<User>, Rejected> {
        if token.is_empty() || token.len() > limits::TOKEN {
            return Err(Rejected::Unauthenticated);
        }
        let _place = self.sign_ins.take(peer).ok_or(Rejected::Busy)?;
        self.review(token).await.ok_or(Rejected::Unauthenticated)
    }

    async fn review(&self, token: &str) -> Option<Arc<User>> {
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
        Some(Arc::new(User::new(name, Rights::new(client), session_time(token))))
    }
}

/// The same configuration with these credentials.
fn with_credentials(config: &Config, auth_info: AuthInfo) -> Config {
    let mut config = config.clone();
    config.auth_info = auth_info;
    config
}

fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let cookies = text(headers, &header::COOKIE)?.split(';');
    cookies.map(str::trim).find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

/// The session that a request is of. A cookie counts only where this console sets one: on a user's own machine, a server on another port
/// could have set it.
fn session(headers: &HeaderMap) -> Option<&str> {
    let token = bearer(headers).filter(|token| token.starts_with(SESSION));
    token.or_else(|| cookie(headers, COOKIE).filter(|_| !is_local(headers)))
}

/// Whether the browser has reached the console at an address of its own machine.
fn is_local(headers: &HeaderMap) -> bool {
    text(headers, &header::HOST).is_some_and(is_this_machine)
}

impl Session {
    fn cookie(&self) -> String {
        let Self { id, seconds } = self;
        format!("{COOKIE}={id}; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age={seconds}")
    }
}

fn login_cookie(id: &str, seconds: u64) -> String {
    format!("{LOGIN_COOKIE}={id}; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age={seconds}")
}

fn with_cookies(mut response: Response<Body>, cookies: &[String]) -> Response<Body> {
    let cookies = cookies.iter().filter_map(|cookie| HeaderValue::from_str(cookie).ok());
    for cookie in cookies {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_stranger_at_one_address_keeps_no_user_elsewhere_from_signing_in() {
        // It accepts connections, and never responds.
        let api_server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", api_server.local_addr().unwrap());
        let access = ClusterAccess::new(&Config::new(url.parse().unwrap()));
        let (stranger, user) = (IpAddr::from([203, 0, 113, 1]), IpAddr::from([203, 0, 113, 2]));
        let headers = HeaderMap::new();
        let signing_in = |peer| Box::pin(access.sign_in(&headers, br#"{"token": "t"}"#, peer));
        let mut waiting: Vec<_> = (0..limits::SIGN_INS).map(|_| signing_in(stranger)).collect();
        let refused: Vec<_> = waiting.iter_mut().filter_map(|signed_in| signed_in.now_or_never()).collect();
        assert_eq!(refused.len(), limits::SIGN_INS - limits::OF_AN_ADDRESS, "it has its part");
        assert!(refused.iter().all(|response| response.status() == StatusCode::SERVICE_UNAVAILABLE));
        assert!(signing_in(user).now_or_never().is_none(), "the token of the user is verified");
        let bearer = HeaderMap::from_iter([(header::AUTHORIZATION, HeaderValue::from_static("Bearer t"))]);
        let by_header = |peer| access.user(&bearer, peer).now_or_never().map(|found| found.err());
        assert_eq!(by_header(stranger), Some(Some(Rejected::Busy)), "nor has it more by another path");
        assert_eq!(by_header(user), None);
    }
}
