//! Token exchange (RFC 8693): a client gets a token to act for a user.

use std::time::Duration;

use serde_json::Value;

use super::{issue::AccessToken, subject_token::SubjectToken};
use crate::{
    AuthServer,
    error::OAuthError,
    rules::{Parameters, TargetError, resources, scopes},
    store::{Client, Method},
};

const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
const JWT: &str = "urn:ietf:params:oauth:token-type:jwt";

impl AuthServer {
    pub(crate) async fn exchange(&self, client: &Client, form: &Parameters) -> Result<Value, OAuthError> {
        if client.token_endpoint_auth_method == Method::None {
            return Err(OAuthError::new("unauthorized_client", "a public client cannot act for users"));
        }
        let (token, types) = (form.get("subject_token"), [Some(ACCESS_TOKEN), Some(JWT)]);
        let token = token.ok_or_else(|| OAuthError::request("subject_token is missing"))?;
        if !types.contains(&form.get("subject_token_type")) {
            return Err(OAuthError::request("subject_token_type must be that of an access token or a JWT"));
        }
        if !matches!(form.get("requested_token_type"), None | Some(ACCESS_TOKEN)) {
            return Err(OAuthError::request("requested_token_type must be that of an access token"));
        }
        let requested = scopes(form.get("scope").unwrap_or_default());
        if let Some(other) = requested.iter().find(|scope| !client.scopes.contains(scope)) {
            return Err(OAuthError::scope(other));
        }
        self.check_actor_token(client, form).await?;
        let subject = self.subject_token(client, token).await?;
        if let Some(other) = requested.iter().find(|scope| !subject.scopes.contains(scope)) {
            return Err(OAuthError::scope(other));
        }
        let audience = self.exchanged_audience(client, form, &subject)?;
        let left = Duration::from_secs(subject.expires.saturating_sub(self.clock.now()));
        let token = AccessToken {
            user: &subject.user,
            client_id: &client.id,
            audience,
            scopes: &requested,
            // The delegate acts with rights of its own, not with the user's tokens of upstreams.
            session: None,
            parent: subject.session.as_deref(),
            actor: Some(subject.actor.clone()),
            life: left.min(self.settings.delegation_life),
        };
        let mut body = self.token_response(&token, None)?;
        body["issued_token_type"] = ACCESS_TOKEN.into();
        Ok(body)
    }

    /// The actor is the client. A token that it sends to prove that must be its own (RFC 8693, section 2.1).
    async fn check_actor_token(&self, client: &Client, form: &Parameters) -> Result<(), OAuthError> {
        let wrong = |message: &'static str| Err(OAuthError::request(message));
        match (form.get("actor_token"), form.get("actor_token_type")) {
            (None, None) => Ok(()),
            (None, Some(_)) => wrong("actor_token_type needs an actor_token"),
            (Some(_), None) => wrong("actor_token needs an actor_token_type"),
            (Some(token), Some(ACCESS_TOKEN | JWT)) => {
                let claims = self.claims(token).await?;
                let now = self.clock.now() as f64;
                let is_own = claims.is_some_and(|claims| {
                    claims.get("client_id").and_then(Value::as_str) == Some(&client.id)
                        && claims.get("exp").and_then(Value::as_f64).is_some_and(|end| end > now)
                });
                if is_own { Ok(()) } else { wrong("the actor token is not one of this client") }
            }
            _ => wrong("actor_token_type is not supported"),
        }
    }

    /// The audience of the new token: within that of the subject token, and what the client may have.
    fn exchanged_audience(
        &self,
        client: &Client,
        form: &Parameters,
        subject: &SubjectToken,
    ) -> Result<Vec<String>, OAuthError> {
        let mut requested = resources(form, &self.settings.audiences)?;
        requested.extend(form.all("audience").filter(|audience| !audience.is_empty()).map(str::to_owned));
        let is_allowed =
            |audience: &String| client.audience.contains(audience) && subject.audience.contains(audience);
        let audience: Vec<String> = match &*requested {
            [] => subject
                .audience
                .iter()
                .filter(|audience| client.audience.contains(audience))
                .cloned()
                .collect(),
            requested if requested.iter().all(is_allowed) => requested.to_vec(),
            _ => Vec::new(),
        };
        if audience.is_empty() {
            return Err(TargetError("the client cannot have a token for this audience").into());
        }
        Ok(audience)
    }
}
