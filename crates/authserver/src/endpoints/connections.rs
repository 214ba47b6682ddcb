//! Connections: the providers at which a session has tokens. Its user sees them on a page, connects one again, disconnects one,
//! and ends the session; a client does the same with its access token, but for the login.
//!
//! The page is for the user of the session alone, so that no one connects an account to the session of another: a browser
//! logs in at the first provider, and a cookie for this browser remembers that for some time. Where that provider does not name its
//! users, the browser of the session's own login has such a cookie.

use std::collections::BTreeSet;

use bytes::Bytes;
use form_urlencoded::Serializer;
use http::{Method, Response, StatusCode, header};
use serde_json::json;
use uuid::Uuid;

use super::{Arrived, authorize::Refusal};
use crate::{
    AuthServer,
    browser::{Browser, ConnectionForm, connections_page, set_user},
    error::OAuthError,
    limits, response,
    rules::Parameters,
    store::{self, Pending, StoreError, User, client_of},
    upstreams::{Login, Upstream},
};

/// What a login of this server itself is for, in place of the state of a client.
pub(super) const SIGN_IN: &str = "sign-in";
const CONNECT: &str = "connect";

/// Why the page is not shown.
enum Hidden {
    /// The browser must log in.
    Unknown,
    Refused(Response<Bytes>),
}

/// A session of the user who has logged in in a browser.
struct Owned {
    user: User,
    rows: Vec<Option<store::Upstream>>,
}

impl AuthServer {
    /// The address of the page about a session.
    pub fn connections_url(&self, session: &str) -> String {
        let query = Serializer::new(String::new()).append_pair("session", session).finish();
        format!("{}?{query}", self.sessions_url())
    }

    /// The address of the page about all sessions of a user.
    fn sessions_url(&self) -> String {
        format!("{}/oauth/connections", self.settings.authorize_base)
    }

    /// A client's request, with its access token.
    pub(super) async fn connections_api(
        &self,
        method: &Method,
        request: &Arrived<'_>,
        token: &str,
    ) -> Response<Bytes> {
        let claims = match self.claims(token).await {
            Ok(claims) => claims.filter(|claims| is_current(claims, self.clock.now())),
            Err(error) => return OAuthError::from(error).response(),
        };
        let session = claims.as_ref().and_then(|claims| claims.get("tsid")?.as_str());
        let Some(session) = session else {
            return response::token(StatusCode::UNAUTHORIZED, &json!({"error": "invalid_token"}));
        };
        if method == Method::DELETE {
            let query = Parameters::parse(request.query.as_bytes());
            let provider = query.get("provider").unwrap_or_default();
            return match self.upstream_tokens().disconnect(session, provider).await {
                Ok(()) => response::with(StatusCode::NO_CONTENT, [], Bytes::new()),
                Err(error) => OAuthError::from(error).response(),
            };
        }
        match self.upstream_tokens().connections(session).await {
            Ok(connections) => {
                let body = json!({"connections": connections, "page": self.connections_url(session)});
                response::token(StatusCode::OK, &body)
            }
            Err(error) => OAuthError::from(error).response(),
        }
    }

    pub(super) async fn connections(&self, query: &str, browser: &Browser) -> Response<Bytes> {
        let parameters = Parameters::parse(query.as_bytes());
        let session = parameters.get("session").unwrap_or_default();
        if session.is_empty() {
            return self.sessions(browser).await;
        }
        match self.owned(session, browser).await {
            Ok(owned) => self.connections_page(session, &owned, browser).await,
            Err(Hidden::Refused(response)) => response,
            Err(Hidden::Unknown) => match self.upstreams.first() {
                Some(first) => self.begin_own(&first.name, session, SIGN_IN, None, browser).await,
                None => OAuthError::server().response(),
            },
        }
    }

    async fn connections_page(&self, session: &str, owned: &Owned, browser: &Browser) -> Response<Bytes> {
        let client = client_of(&owned.rows);
        let names = match self.client_names(BTreeSet::from([client])).await {
            Ok(names) => names,
            Err(error) => return OAuthError::from(error).response(),
        };
        connections_page(&ConnectionForm {
            user: owned.user.label(),
            client: names.get(client).map(String::as_str).unwrap_or_default(),
            session,
            token: browser.form_token(&self.settings.opaque, session),
            connections: &self.upstream_tokens().described(&owned.rows),
        })
    }

    /// A button of a page.
    pub(super) async fn change_connection(
        &self,
        request: &Arrived<'_>,
        browser: &Browser,
    ) -> Response<Bytes> {
        let foreign = || {
            response::text(StatusCode::FORBIDDEN, "this form is not of this server, or not for this browser")
        };
        let Some(form) = request.form().filter(|_| self.is_own_origin(request)) else { return foreign() };
        let (session, provider) =
            (form.get("session").unwrap_or_default(), form.get("provider").unwrap_or_default());
        if !browser.has_form(&self.settings.opaque, session, form.get("token").unwrap_or_default()) {
            return foreign();
        }
        let Owned { user, rows } = match self.owned(session, browser).await {
            Ok(owned) => owned,
            Err(Hidden::Refused(response)) => return response,
            Err(Hidden::Unknown) => return self.to_page(session),
        };
        match form.get("action") {
            Some("disconnect") => match self.upstream_tokens().disconnect(session, provider).await {
                Ok(()) => self.to_page(session),
                Err(error) => OAuthError::from(error).response(),
            },
            Some("end") => self.end_own(session, &user, client_of(&rows)).await,
            Some("connect") => self.begin_own(provider, session, CONNECT, Some(user), browser).await,
            _ => response::text(StatusCode::BAD_REQUEST, "there is no such action"),
        }
    }

    /// Sends the browser to the page about a session, or to that about all of them.
    pub(super) fn to_page(&self, session: &str) -> Response<Bytes> {
        let url = if session.is_empty() { self.sessions_url() } else { self.connections_url(session) };
        response::redirect(StatusCode::SEE_OTHER, &url)
    }

    /// A session, if its user is the one who has logged in in this browser.
    async fn owned(&self, session: &str, browser: &Browser) -> Result<Owned, Hidden> {
        let unavailable = |error| Hidden::Refused(OAuthError::from(error).response());
        let unknown = || {
            Hidden::Refused(response::text(
                StatusCode::NOT_FOUND,
                "there is no such session: log in again in your client",
            ))
        };
        let rows = self.upstream_tokens().rows(session).await.map_err(unavailable)?.ok_or_else(unknown)?;
        let owner = rows.iter().flatten().next().map(|row| row.user_id.clone()).ok_or_else(unknown)?;
        match browser.user(&self.settings.opaque, self.clock.now()) {
            Some(user) if user.id == owner => Ok(Owned { user, rows }),
            Some(_) => {
                Err(Hidden::Refused(response::text(StatusCode::FORBIDDEN, "this session is of another user")))
            }
            None if (User { id: owner, ..User::default() }).is_unnamed() => Err(unknown()),
            None => Err(Hidden::Unknown),
        }
    }

    /// Sends the browser to a provider, to come back to the page.
    pub(super) async fn begin_own(
        &self,
        provider: &str,
        session: &str,
        purpose: &str,
        user: Option<User>,
        browser: &Browser,
    ) -> Response<Bytes> {
        let Some(upstream) = self.upstreams.iter().find(|upstream| upstream.name == provider) else {
            return response::text(StatusCode::BAD_REQUEST, "there is no such provider");
        };
        let pending =
            Pending { session_id: session.to_owned(), state: purpose.to_owned(), user, ..Pending::own() };
        let sent = self.send_to(upstream, pending, browser).await;
        sent.unwrap_or_else(|error| self.refuse(Refusal::Shown(error)))
    }

    /// Goes on with a login of this server itself.
    pub(super) async fn own_login(
        &self,
        pending: Pending,
        parameters: &Parameters,
        browser: &Browser,
    ) -> Response<Bytes> {
        match self.try_own_login(&pending, parameters, browser).await {
            Ok(response) => response,
            Err(error) => self.refuse(Refusal::Shown(error)),
        }
    }

    async fn try_own_login(
        &self,
        pending: &Pending,
        parameters: &Parameters,
        browser: &Browser,
    ) -> Result<Response<Bytes>, OAuthError> {
        let (position, upstream, login) = self.login_at(pending, parameters).await?;
        let user = match position {
            0 => Some(self.user(&upstream.name, &login).await?),
            _ => None,
        };
        let mut response = self.to_page(&pending.session_id);
        match (&*pending.state, user, &pending.user) {
            (SIGN_IN, Some(user), _) if !user.is_unnamed() => {
                let until = self.clock.now() + limits::SIGNED_IN.as_secs();
                let cookie = browser.signed_in(&self.settings.opaque, &user, until);
                if let Some(cookie) = set_user(&cookie, self.settings.is_secure()) {
                    response.headers_mut().append(header::SET_COOKIE, cookie);
                }
            }
            (CONNECT, user, Some(owner)) if user.as_ref().is_none_or(|user| may_be(user, owner)) => {
                self.keep_again(upstream, &pending.session_id, owner, login).await?;
            }
            _ => return Err(OAuthError::new("access_denied", "the login is of another user")),
        }
        Ok(response)
    }

    /// Keeps the tokens of another login in a session, whose client stays the same.
    async fn keep_again(
        &self,
        upstream: &Upstream,
        session: &str,
        user: &User,
        login: Login,
    ) -> Result<(), StoreError> {
        let rows = self.upstream_tokens().rows(session).await?.unwrap_or_default();
        self.keep(upstream, (session, client_of(&rows)), user, login).await
    }
}

/// Whether a login at the first provider may be one of the user of a session. A provider that does not name its users does not
/// decide that: the browser does.
fn may_be(user: &User, owner: &User) -> bool {
    user.id == owner.id || (user.is_unnamed() && owner.is_unnamed())
}

impl Pending {
    /// A login of this server itself. No client has an empty id.
    fn own() -> Self {
        Self {
            client_id: String::new(),
            redirect_uri: String::new(),
            state: String::new(),
            scopes: Vec::new(),
            pkce_challenge: String::new(),
            pkce_method: String::new(),
            session_id: Uuid::new_v4().simple().to_string(),
            internal_state: String::new(),
            upstream_provider_name: String::new(),
            upstream_pkce_verifier: String::new(),
            upstream_nonce: String::new(),
            created_at: 0,
            resources: Vec::new(),
            is_redirect_implied: false,
            is_approval_remembered: false,
            user: None,
        }
    }

    pub(super) fn is_own(&self) -> bool {
        self.client_id.is_empty()
    }
}

/// Whether a token has not expired.
fn is_current(claims: &serde_json::Map<String, serde_json::Value>, now: u64) -> bool {
    claims.get("exp").and_then(serde_json::Value::as_u64).is_some_and(|until| now < until)
}
