//! Revocation (RFC 7009). A token ends with its session, and so do all others of it.

use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::Arrived;
use crate::{
    AuthServer,
    error::OAuthError,
    events::{EventKind, EventOutcome},
    keys::REFRESH,
    limits, response,
    store::Client,
};

impl AuthServer {
    pub(super) async fn revoke(&self, request: &Arrived<'_>) -> Response<Bytes> {
        match self.try_to_revoke(request).await {
            Ok(()) => response::token(StatusCode::OK, &json!({})),
            Err(error) => error.response(),
        }
    }

    async fn try_to_revoke(&self, request: &Arrived<'_>) -> Result<(), OAuthError> {
        let form = request.form().ok_or_else(|| OAuthError::request("the body must be a form"))?;
        if form.duplicate().is_some() {
            return Err(OAuthError::request("a parameter is there twice"));
        }
        let authenticated = self.authenticated(request.headers, &form, request.peer).await?;
        let token = form.get("token").ok_or_else(|| OAuthError::request("token is missing"))?;
        match self.session_of(&authenticated.client, token).await? {
            Some(session) => {
                self.use_assertion(&authenticated).await?;
                let ended = self.end_session(&session).await;
                let outcome = if ended.is_ok() { EventOutcome::Success } else { EventOutcome::Failure };
                let client = &*authenticated.client.id;
                self.tell((EventKind::Revocation, outcome), ("", client), Some(request.peer));
                ended
            }
            // An unknown token has ended already (RFC 7009, section 2.2), and that of another client is not this one's.
            None => Ok(()),
        }
    }

    /// The session of a token that was issued to this client.
    async fn session_of(&self, client: &Client, token: &str) -> Result<Option<String>, OAuthError> {
        if let Some((family, _)) = self.settings.opaque.member(REFRESH, token) {
            let grant = self.store.refresh(&family).await?;
            return Ok(grant.filter(|grant| grant.client_id == client.id).map(|grant| grant.session.id));
        }
        let claims = self.settings.keys.verified(token);
        let claims =
            claims.filter(|claims| claims.get("client_id").and_then(Value::as_str) == Some(&client.id));
        let Some(claims) = claims else { return Ok(None) };
        match claims.get("tsid").and_then(Value::as_str) {
            Some(session) => Ok(Some(session.to_owned())),
            // It ends soon, or with the session of its user (RFC 7009, section 2.2.1).
            None => Err(OAuthError::new("unsupported_token_type", "a delegated token cannot be revoked")),
        }
    }

    /// Ends a session, for as long as an access token of it could still be valid, or its code be used.
    pub(crate) async fn end_session(&self, session: &str) -> Result<(), OAuthError> {
        let longest = self.settings.access_life.max(self.settings.delegation_life);
        let life = longest + self.settings.code_life + limits::SPENT_LIFE;
        let providers: Vec<&str> = self.upstream_tokens().providers().collect();
        Ok(self.store.end_session(session, &providers, life).await?)
    }
}
