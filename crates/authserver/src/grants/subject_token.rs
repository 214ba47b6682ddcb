//! The token that is exchanged: whose it is, and who acts for its subject.

use serde_json::Value;

use crate::{
    AuthServer,
    config::Trusted,
    error::OAuthError,
    keys::{Claims, session_of, unverified},
    limits,
    rules::{actor_chain, is_id_token, may_act},
    store::{Client, User},
};

/// A subject token that is accepted.
pub(super) struct SubjectToken {
    pub(super) user: User,
    pub(super) audience: Vec<String>,
    pub(super) scopes: Vec<String>,
    /// The session of this server that it belongs to.
    pub(super) session: Option<String>,
    /// When it expires, in seconds since 1970.
    pub(super) expires: u64,
    /// Who acts for the subject in the new token.
    pub(super) actor: Value,
}

fn invalid() -> OAuthError {
    OAuthError::request("the subject token is invalid or could not be verified")
}

impl AuthServer {
    /// What a subject token says, if it is one of this server or of a trusted issuer.
    pub(super) async fn subject_token(
        &self,
        client: &Client,
        token: &str,
    ) -> Result<SubjectToken, OAuthError> {
        let issuer = unverified(token).and_then(|claims| text(&claims, "iss")).ok_or_else(invalid)?;
        if issuer == self.settings.issuer {
            let claims = self.claims(token).await?.ok_or_else(invalid)?;
            return self.own_subject(client, &claims);
        }
        let trusted =
            self.settings.trusted.iter().find(|trusted| trusted.issuer == issuer).ok_or_else(invalid)?;
        let signed = trusted.keys.verify(token).await.map_err(|_| invalid())?;
        self.foreign_subject(client, trusted, &signed.claims)
    }

    /// Delegates are configured to act for the users of this server.
    fn own_subject(&self, client: &Client, claims: &Claims) -> Result<SubjectToken, OAuthError> {
        let expires = self.valid_until(claims, 0)?;
        let actor = actor_chain(&self.settings.issuer, &client.id, claims.get("act"))
            .map_err(|error| OAuthError::request(error.0))?;
        Ok(SubjectToken {
            user: User {
                id: text(claims, "sub").ok_or_else(invalid)?,
                name: text(claims, "name"),
                email: text(claims, "email"),
            },
            audience: texts(claims.get("aud")),
            scopes: texts(claims.get("scp")),
            session: session_of(claims).map(str::to_owned),
            expires,
            actor,
        })
    }

    fn foreign_subject(
        &self,
        client: &Client,
        trusted: &Trusted,
        claims: &Claims,
    ) -> Result<SubjectToken, OAuthError> {
        let expires = self.valid_until(claims, limits::SKEW)?;
        let audience = texts(claims.get("aud"));
        // An issuer without one is for assertions alone.
        let is_expected = !trusted.audience.is_empty() && audience.contains(&trusted.audience);
        let subject = text(claims, "sub").ok_or_else(invalid)?;
        if !is_expected || is_id_token(claims) {
            return Err(invalid());
        }
        self.check_consent(client, trusted, claims)?;
        let mut former = serde_json::json!({"iss": trusted.issuer});
        if let Some(actor) = text(claims, &trusted.actor_claim) {
            former["sub"] = actor.into();
        }
        if let Some(earlier) = claims.get("act") {
            former["act"] = earlier.clone();
        }
        let actor = actor_chain(&self.settings.issuer, &client.id, Some(&former))
            .map_err(|error| OAuthError::request(error.0))?;
        let scopes = match claims.get("scope") {
            Some(Value::String(scope)) => crate::rules::scopes(scope),
            _ => texts(claims.get("scp")),
        };
        let id = format!("{}#{subject}", trusted.issuer);
        let user = User { id, name: text(claims, "name"), email: text(claims, "email") };
        Ok(SubjectToken { user, audience, scopes, session: None, expires, actor })
    }

    /// Whether a client may act for the subject of a trusted issuer's token: the actor must be allowed, unless the token
    /// itself names the client and no actors are listed, and the client must be one that the issuer's tokens are for.
    fn check_consent(&self, client: &Client, trusted: &Trusted, claims: &Claims) -> Result<(), OAuthError> {
        let denied = || OAuthError::grant("the subject token does not let this client act for its subject");
        let named = may_act(claims, &self.settings.issuer, &client.id).filter(|_| trusted.allows_may_act);
        match &named {
            Some(Ok(true)) => {}
            Some(Ok(false)) => return Err(denied()),
            Some(Err(_)) => return Err(invalid()),
            None if !trusted.limits_actors() => return Err(invalid()),
            None => {}
        }
        // A token cannot name its way round the list of actors.
        if trusted.limits_actors() && !trusted.allows_actor(claims) {
            return Err(invalid());
        }
        let is_delegate = trusted.delegates.iter().any(|delegate| delegate == "*" || *delegate == client.id);
        if is_delegate { Ok(()) } else { Err(denied()) }
    }

    fn valid_until(&self, claims: &Claims, skew: u64) -> Result<u64, OAuthError> {
        let now = self.clock.now() as f64;
        let time = |name: &str| claims.get(name).map(|value| value.as_f64());
        let begins = time("nbf").flatten().unwrap_or_default();
        match time("exp") {
            Some(Some(end)) if end + skew as f64 > now && begins <= now + skew as f64 => {
                Ok(end.max(now) as u64)
            }
            _ => Err(invalid()),
        }
    }
}

fn text(claims: &Claims, name: &str) -> Option<String> {
    claims.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn texts(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}
