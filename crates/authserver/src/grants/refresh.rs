//! The refresh grant (RFC 6749, section 6), with rotation (OAuth 2.1, section 4.3.1).

use std::net::IpAddr;

use serde_json::Value;
use tracing::warn;

use super::delivery::{Spent, Undelivered};
use crate::{
    AuthServer,
    error::OAuthError,
    events::{EventKind, EventOutcome},
    keys::REFRESH,
    rules::{Parameters, is_within, resources, scopes, target},
    store::{Client, Grant, Rotation},
    upstreams::SessionError,
};

impl AuthServer {
    /// Replaces a refresh token, and returns the response.
    pub(crate) async fn refresh(
        &self,
        client: &Client,
        form: &Parameters,
        peer: IpAddr,
    ) -> Result<(Value, Undelivered), OAuthError> {
        let refreshed = self.try_to_refresh(client, form, peer).await;
        match &refreshed {
            Ok((user, ..)) => {
                self.tell((EventKind::Refresh, EventOutcome::Success), (user, &client.id), Some(peer));
            }
            Err(_) => self.tell((EventKind::Refresh, EventOutcome::Failure), ("", &client.id), Some(peer)),
        }
        refreshed.map(|(_, body, undelivered)| (body, undelivered))
    }

    async fn try_to_refresh(
        &self,
        client: &Client,
        form: &Parameters,
        peer: IpAddr,
    ) -> Result<(String, Value, Undelivered), OAuthError> {
        let unknown = || OAuthError::grant("the refresh token is not valid");
        let token =
            form.get("refresh_token").ok_or_else(|| OAuthError::request("refresh_token is missing"))?;
        let (family, signature) = self.settings.opaque.member(REFRESH, token).ok_or_else(unknown)?;
        let grant = self.store.refresh(&family).await?.ok_or_else(unknown)?;
        if grant.client_id != client.id {
            return Err(OAuthError::grant("the refresh token was issued to another client"));
        }
        let now = self.clock.now();
        if now >= grant.expires_at {
            return Err(OAuthError::grant("the refresh token has expired"));
        }
        if self.time_left(&grant).is_zero() {
            self.end_session(&grant.session.id).await?;
            return Err(OAuthError::grant(
                "the session has lasted as long as it may: its user must log in again",
            ));
        }
        let requested = form.get("scope").map(scopes);
        if let Some(requested) = &requested
            && !is_within(requested, &grant.granted_scopes)
        {
            let other = requested.iter().find(|scope| !grant.granted_scopes.contains(scope));
            return Err(OAuthError::scope(other.map(String::as_str).unwrap_or_default()));
        }
        let audience = target(&resources(form, &self.settings.audiences)?, &grant.granted_audience)?;
        match self.upstream_tokens().check_identity(&grant.session.id).await {
            Ok(()) => {}
            Err(SessionError::Unavailable) => return Err(OAuthError::unavailable()),
            Err(SessionError::Ended | SessionError::Expired) => {
                return Err(OAuthError::grant("the identity provider has ended the login of the user"));
            }
        }
        // One of two requests of a client at once gets tokens, and the other ends nothing.
        let exchanged = self.in_flight.begin(&family).ok_or_else(unknown)?;
        let issued = self.settings.opaque.issue_after(token, &grant.session.id)?;
        let life = self.settings.refresh_life.min(self.time_left(&grant));
        // A narrower scope is for this access token only: the next refresh may have all again.
        let next = Grant { expires_at: now + life.as_secs(), ..grant.clone() };
        match self.store.rotate(signature, &issued.signature, &next, life).await? {
            Rotation::Done => {
                let granted = requested.as_deref().unwrap_or(&grant.granted_scopes);
                let access = self.session_token(&grant, audience, granted);
                let body = self.token_response(&access, Some(&issued.token))?;
                let (user, session) = (grant.session.user.id, grant.session.id);
                let spent = Spent::Refresh { new: issued.signature, session };
                Ok((user, body, Undelivered::new(spent, exchanged)))
            }
            Rotation::Refused => Err(unknown()),
            Rotation::Stolen => {
                // It comes back long after its client has got another one: this is a thief, or the client after a thief.
                warn!(client = grant.client_id, "a refresh token was used twice: its session ends");
                let reuse = (EventKind::Reuse, EventOutcome::Denied);
                self.tell(reuse, (&grant.session.user.id, &client.id), Some(peer));
                self.end_session(&grant.session.id).await?;
                Err(unknown())
            }
        }
    }
}
