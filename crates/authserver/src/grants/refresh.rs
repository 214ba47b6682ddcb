//! The refresh grant (RFC 6749, section 6), with rotation (OAuth 2.1, section 4.3.1).

use std::time::Duration;

use serde_json::Value;
use tracing::warn;

use super::replacement::{Replacement, Tokens};
use crate::{
    AuthServer,
    error::OAuthError,
    keys::REFRESH,
    rules::{Parameters, is_within, resources, scopes, target},
    store::{Client, Grant, Rotation},
};

impl AuthServer {
    /// Replaces a refresh token, and returns the response, with what is undone if the client does not get it. `arrived` is when
    /// the request did.
    pub(crate) async fn refresh(
        &self,
        client: &Client,
        form: &Parameters,
        arrived: Duration,
    ) -> Result<(Value, Replacement), OAuthError> {
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
        let requested = form.get("scope").map(scopes);
        if let Some(requested) = &requested
            && !is_within(requested, &grant.granted_scopes)
        {
            let other = requested.iter().find(|scope| !grant.granted_scopes.contains(scope));
            return Err(OAuthError::scope(other.map(String::as_str).unwrap_or_default()));
        }
        let audience = target(&resources(form, &self.settings.audiences)?, &grant.granted_audience)?;
        let issued = self.settings.opaque.issue_for(REFRESH, &grant.session.id)?;
        let life = self.settings.refresh_life;
        // A narrower scope is for this access token only: the next refresh may have all again.
        let next = Grant { expires_at: now + life.as_secs(), ..grant.clone() };
        let millis = u64::try_from(self.clock.precise().as_millis()).unwrap_or(u64::MAX);
        let tokens = Tokens { old: signature.to_owned(), new: issued.signature, life, at: millis };
        let (rotation, replacement) =
            Replacement::make(self.store.clone(), tokens, grant.clone(), next).await?;
        match rotation {
            Rotation::Done => {
                let granted = requested.as_deref().unwrap_or(&grant.granted_scopes);
                let token = self.session_token(&grant, audience, granted);
                Ok((self.token_response(&token, Some(&issued.token))?, replacement))
            }
            Rotation::Ended => Err(unknown()),
            Rotation::Lost(at) => {
                self.end_if_stolen(&grant, arrived, at).await?;
                Err(unknown())
            }
        }
    }

    /// A token that comes back after it was replaced was stolen, or its thief has replaced it: the session ends. A request
    /// that was on its way while another one replaced the token is a client that sent it twice, and ends nothing.
    async fn end_if_stolen(&self, grant: &Grant, arrived: Duration, replaced: u64) -> Result<(), OAuthError> {
        if arrived.as_millis() <= u128::from(replaced) {
            return Ok(());
        }
        warn!(client = grant.client_id, "a refresh token was used twice: its session ends");
        self.end_session(&grant.session.id).await
    }
}
