//! The authorization code grant (RFC 6749, section 4.1.3).

use std::net::IpAddr;

use serde_json::Value;
use tracing::warn;

use super::{
    delivery::{Spent, Undelivered},
    issue::is_offline,
};
use crate::{
    AuthServer,
    error::OAuthError,
    events::{EventKind, EventOutcome},
    keys::CODE,
    rules::{GrantType, Parameters, is_verified, resources, target},
    store::{Client, Grant, Proof, Taken},
};

impl AuthServer {
    pub(crate) async fn redeem_code(
        &self,
        client: &Client,
        form: &Parameters,
        peer: IpAddr,
    ) -> Result<(Value, Undelivered), OAuthError> {
        let unknown = || OAuthError::grant("the code is not valid");
        let requested = resources(form, &self.settings.audiences)?;
        let code = form.get("code").ok_or_else(unknown)?;
        let signature = self.settings.opaque.signature(CODE, code).ok_or_else(unknown)?;
        let (grant, taken) = self.store.code(signature).await?.ok_or_else(unknown)?;
        let proof = grant.proof.as_ref().ok_or_else(unknown)?;
        // A stranger's attempt, or a slip, does not spend the code of another.
        if grant.client_id != client.id {
            return Err(OAuthError::grant("the code was issued to another client"));
        }
        if !is_redirect_of(proof, form.get("redirect_uri")) {
            return Err(OAuthError::grant("the redirect_uri is not the one of the authorization request"));
        }
        let audience = target(&requested, &grant.granted_audience)?;
        if !is_verified(&proof.challenge, form.get("code_verifier")) {
            // It cannot be guessed again, and who has seen a code does not end the session of its client.
            self.store.spend_code(signature).await?;
            return Err(OAuthError::grant("the code_verifier does not fit the code_challenge"));
        }
        if let Taken::Spent = taken {
            warn!(client = client.id, "a code was used twice: its session ends");
            let reuse = (EventKind::Reuse, EventOutcome::Denied);
            self.tell(reuse, (&grant.session.user.id, &client.id), Some(peer));
            self.end_session(&grant.session.id).await?;
            return Err(OAuthError::grant("the code has been used already"));
        }
        if self.clock.now() >= grant.expires_at {
            return Err(OAuthError::grant("the code has expired"));
        }
        // Of requests of a client at once, one gets tokens here, and one at each other replica: they have the same refresh token.
        // The others end nothing, nor do those that have arrived before the code was spent.
        let exchanged = self.in_flight.begin(signature).ok_or_else(unknown)?;
        if let (_, Taken::Spent) = self.store.code(signature).await?.ok_or_else(unknown)? {
            return Err(unknown());
        }
        let refresh = self.first_refresh(client, &grant, code).await?;
        let token = self.session_token(&grant, audience, &grant.granted_scopes);
        let body = self.token_response(&token, refresh.as_deref())?;
        Ok((body, Undelivered::new(Spent::Code { signature: signature.to_owned() }, exchanged)))
    }

    /// The first refresh token of a session, if it is to be continued.
    async fn first_refresh(
        &self,
        client: &Client,
        grant: &Grant,
        code: &str,
    ) -> Result<Option<String>, OAuthError> {
        if !is_offline(&grant.granted_scopes) || !client.may_use(GrantType::Refresh) {
            return Ok(None);
        }
        let issued = self.settings.opaque.issue_after(code, &grant.session.id)?;
        let life = self.settings.refresh_life.min(self.time_left(grant));
        let grant = Grant { expires_at: self.clock.now() + life.as_secs(), proof: None, ..grant.clone() };
        match self.store.put_refresh(&issued.signature, &grant, life).await? {
            true => Ok(Some(issued.token)),
            false => Err(OAuthError::grant("the session has ended")),
        }
    }
}

/// Whether the redirect URI is the one of the authorization request. It may be missing if it was there (RFC 6749,
/// section 4.1.3).
fn is_redirect_of(proof: &Proof, given: Option<&str>) -> bool {
    match given {
        Some(given) => given == proof.redirect_uri,
        None => proof.is_redirect_implied,
    }
}
