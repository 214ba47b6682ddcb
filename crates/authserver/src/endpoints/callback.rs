//! The return from an upstream.

use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::Value;
use tracing::{info, warn};
use uuid::Uuid;

use super::authorize::Refusal;
use crate::{
    AuthServer,
    browser::Browser,
    error::OAuthError,
    events::{EventKind, EventOutcome},
    limits, response,
    rules::{Parameters, check_user},
    store::{self, Pending, StoreError, User},
    upstreams::{Login, Subject, Upstream, row_life},
};

const FAILED: &str = "upstream authentication failed";
/// Tells that a browser was sent on to the host with its cookies.
const MOVED: &str = "skep_moved";

impl AuthServer {
    pub(super) async fn callback(&self, query: &str, browser: &Browser) -> Response<Bytes> {
        let parameters = Parameters::parse(query.as_bytes());
        let bad = |message| response::text(StatusCode::BAD_REQUEST, message);
        if parameters.duplicate().is_some() {
            return response::unknown_login();
        }
        let is_error = parameters.get("error").is_some();
        let Some(state) = parameters.get("state") else {
            return match is_error {
                true => response::text(StatusCode::BAD_GATEWAY, FAILED),
                false => bad("missing state parameter"),
            };
        };
        if !is_error && parameters.get("code").is_none() {
            return bad("missing code parameter");
        }
        // The login stays as it is: the browser that began it may still go on.
        let is_its_own = browser.began(&self.settings.opaque, state);
        if !is_its_own && self.settings.has_callback_elsewhere && parameters.get(MOVED).is_none() {
            let url = format!("{}/oauth/callback?{query}&{MOVED}=1", self.settings.authorize_base);
            return response::redirect(StatusCode::SEE_OTHER, &url);
        }
        if !is_its_own {
            info!("a login was continued in another browser, or with an unknown state");
            return if is_error {
                response::text(StatusCode::BAD_GATEWAY, FAILED)
            } else {
                response::unknown_login()
            };
        }
        match self.store.take_pending(state, browser.address).await {
            Err(error) => OAuthError::from(error).response(),
            Ok(None) if is_error => response::text(StatusCode::BAD_GATEWAY, FAILED),
            Ok(None) => response::unknown_login(),
            Ok(Some(pending)) => self.go_on(pending, &parameters, browser).await,
        }
    }

    /// Goes on with a login. From here, the client gets every error.
    async fn go_on(&self, pending: Pending, parameters: &Parameters, browser: &Browser) -> Response<Bytes> {
        if pending.is_own() {
            return self.own_login(pending, parameters, browser).await;
        }
        let (redirect_uri, state) = (pending.redirect_uri.clone(), pending.state.clone());
        let client = pending.client_id.clone();
        match self.try_to_go_on(pending, parameters, browser).await {
            Ok(response) => response,
            Err(error) => {
                let is_denied = error.code == "access_denied";
                let outcome = if is_denied { EventOutcome::Denied } else { EventOutcome::Failure };
                self.tell((EventKind::Login, outcome), ("", &client), Some(browser.address));
                self.refuse(Refusal::Sent { redirect_uri, state, error })
            }
        }
    }

    async fn try_to_go_on(
        &self,
        mut pending: Pending,
        parameters: &Parameters,
        browser: &Browser,
    ) -> Result<Response<Bytes>, OAuthError> {
        let (position, upstream, login) = self.login_at(&pending, parameters).await?;
        // The user is the one of the first upstream.
        let user = match pending.user.take() {
            Some(user) => user,
            None => {
                if let Some(refused) = self.refused_user(&login.claims, &pending.client_id, browser) {
                    return Ok(refused);
                }
                self.user(&upstream.name, &login).await?
            }
        };
        self.keep(upstream, (&pending.session_id, &pending.client_id), &user, login).await?;
        pending.user = Some(user);
        // One that has not been discovered is left out: the user connects it later, and until then its own backends fail.
        match self.upstreams.iter().skip(position + 1).find(|next| next.is_connected()) {
            Some(next) => self.send_to(next, pending, browser).await,
            None => Ok(self.finish(pending, browser).await),
        }
    }

    /// The page for a user who may not log in, if that is one. Nothing of the login is kept. The client learns nothing: the user
    /// may have another account.
    fn refused_user(&self, claims: &Value, client: &str, browser: &Browser) -> Option<Response<Bytes>> {
        let allowed = self.settings.allowed_users.as_ref()?;
        let reason = check_user(allowed, claims).err()?;
        info!(%reason, "a user may not log in");
        self.tell((EventKind::Login, EventOutcome::Denied), ("", client), Some(browser.address));
        let text = format!(
            "your account may not be used here: {reason}. Log in with another account at the identity provider, or ask your administrator"
        );
        let error = OAuthError { status: StatusCode::FORBIDDEN, ..OAuthError::new("access_denied", text) };
        Some(self.refuse(Refusal::Shown(error)))
    }

    /// The login that an upstream has sent the browser back with.
    pub(super) async fn login_at(
        &self,
        pending: &Pending,
        parameters: &Parameters,
    ) -> Result<(usize, &Upstream, Login), OAuthError> {
        let failed = || OAuthError::new("server_error", "the login at the identity provider failed");
        let position = self.upstreams.iter().position(|one| one.name == pending.upstream_provider_name);
        let (position, upstream) = position
            .and_then(|position| Some((position, self.upstreams.get(position)?)))
            .ok_or_else(failed)?;
        if !upstream.is_issuer(parameters.get("iss")) {
            warn!(upstream = upstream.name, "the response to a login is of another issuer");
            return Err(failed());
        }
        let Some(code) = parameters.get("code").filter(|_| parameters.get("error").is_none()) else {
            let text = |name| {
                parameters.get(name).unwrap_or_default().chars().take(limits::NAME).collect::<String>()
            };
            let (error, description) = (text("error"), text("error_description"));
            warn!(upstream = upstream.name, error, description, "the provider has refused a login");
            return Err(OAuthError::new("access_denied", FAILED));
        };
        let (verifier, nonce) = (&pending.upstream_pkce_verifier, &pending.upstream_nonce);
        let login = upstream.log_in(code, verifier, nonce, self.clock.now()).await.map_err(|error| {
            warn!(upstream = upstream.name, %error, "a login failed");
            failed()
        })?;
        Ok((position, upstream, login))
    }

    pub(super) async fn user(&self, provider: &str, login: &Login) -> Result<User, StoreError> {
        let id = match &login.subject {
            Subject::Synthetic(id) => id.clone(),
            Subject::Known(subject) => {
                let new = Uuid::new_v4().to_string();
                self.store.user(provider, subject, &new, self.clock.now()).await?
            }
        };
        Ok(User { id, name: login.name.clone(), email: login.email.clone() })
    }

    /// Keeps the tokens of a login in a session of a client. Of an upstream that sends a refresh token only once, the earlier one is kept.
    pub(super) async fn keep(
        &self,
        upstream: &Upstream,
        (session, client): (&str, &str),
        user: &User,
        login: Login,
    ) -> Result<(), StoreError> {
        let now = self.clock.now();
        let subject = match login.subject {
            Subject::Known(subject) | Subject::Synthetic(subject) => subject,
        };
        let scopes = upstream.granted(&login.tokens);
        let mut row = store::Upstream {
            provider_id: upstream.name.clone(),
            access_token: login.tokens.access_token,
            refresh_token: login.tokens.refresh_token,
            id_token: login.tokens.id_token,
            expires_at: login.tokens.expires_in.map_or(0, |seconds| now + seconds),
            session_expires_at: now + self.settings.refresh_life.as_secs(),
            user_id: user.id.clone(),
            connected_at: now,
            scopes,
            upstream_subject: subject,
            client_id: client.to_owned(),
            is_refused: false,
        };
        if row.refresh_token.is_empty()
            && let Some(earlier) = self.store.latest_upstream(&user.id, &upstream.name).await?
            && earlier.upstream_subject == row.upstream_subject
            && !earlier.is_refused
        {
            row.refresh_token = earlier.refresh_token;
        }
        self.store.put_upstream(session, &row, row_life(&row, now)).await
    }
}
