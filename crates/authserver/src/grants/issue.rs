//! Issuing tokens.

use std::time::Duration;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    AuthServer,
    error::OAuthError,
    store::{Grant, User},
};

/// What an access token says.
pub(super) struct AccessToken<'a> {
    pub(super) user: &'a User,
    pub(super) client_id: &'a str,
    pub(super) audience: Vec<String>,
    pub(super) scopes: &'a [String],
    /// The session, if it has tokens of upstreams.
    pub(super) session: Option<&'a str>,
    /// The session that it ends with, if it has none of its own.
    pub(super) parent: Option<&'a str>,
    /// Who acts for the user.
    pub(super) actor: Option<Value>,
    pub(super) life: Duration,
}

impl AuthServer {
    /// A token response (RFC 6749, section 5.1).
    pub(super) fn token_response(
        &self,
        token: &AccessToken<'_>,
        refresh: Option<&str>,
    ) -> Result<Value, OAuthError> {
        let mut body = json!({
            "access_token": self.access_token(token)?,
            "token_type": "bearer",
            "expires_in": token.life.as_secs(),
            "scope": token.scopes.join(" "),
        });
        if let Some(refresh) = refresh {
            body["refresh_token"] = refresh.into();
        }
        Ok(body)
    }

    /// An access token with the claims that ToolHive gives it.
    fn access_token(&self, token: &AccessToken<'_>) -> Result<String, OAuthError> {
        let now = self.clock.now();
        let mut claims = json!({
            "iss": self.settings.issuer,
            "sub": token.user.id,
            "aud": token.audience,
            "exp": now + token.life.as_secs(),
            "iat": now,
            "jti": Uuid::new_v4().to_string(),
            "scp": token.scopes,
            "client_id": token.client_id,
        });
        let optional = [
            ("tsid", token.session.map(Value::from)),
            ("sid", token.parent.map(Value::from)),
            ("name", token.user.name.clone().map(Value::from)),
            ("email", token.user.email.clone().map(Value::from)),
            ("act", token.actor.clone()),
        ];
        for (name, value) in optional {
            if let Some(value) = value {
                claims[name] = value;
            }
        }
        self.settings.keys.sign(&claims).ok_or_else(OAuthError::server)
    }

    /// How long the session of a grant may still last.
    pub(super) fn time_left(&self, grant: &Grant) -> Duration {
        let Some(life) = self.settings.session_life else { return Duration::MAX };
        let end = grant.requested_at.saturating_add(life.as_secs());
        Duration::from_secs(end.saturating_sub(self.clock.now()))
    }

    /// The access token of a session.
    pub(super) fn session_token<'a>(
        &self,
        grant: &'a Grant,
        audience: String,
        scopes: &'a [String],
    ) -> AccessToken<'a> {
        AccessToken {
            user: &grant.session.user,
            client_id: &grant.client_id,
            audience: vec![audience],
            scopes,
            session: Some(&grant.session.id),
            parent: None,
            actor: None,
            life: self.settings.access_life.min(self.time_left(grant)),
        }
    }
}

/// Whether a session may be continued without its user.
pub(super) fn is_offline(scopes: &[String]) -> bool {
    scopes.iter().any(|scope| scope == "offline_access" || scope == "offline")
}
