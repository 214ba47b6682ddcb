//! Assertions of trusted issuers as grants (RFC 7523): programs get tokens without a client here.

use std::time::Duration;

use serde_json::Value;
use tracing::info;

use super::issue::AccessToken;
use crate::{
    AuthServer,
    error::OAuthError,
    keys::unverified,
    random::hash,
    rules::{AssertionRules, Parameters, assertion, resources},
    store::User,
};

impl AuthServer {
    pub(crate) async fn exchange_assertion(&self, form: &Parameters) -> Result<Value, OAuthError> {
        let invalid = || OAuthError::grant("the assertion is invalid or could not be verified");
        let text = form.get("assertion").ok_or_else(|| OAuthError::request("assertion is missing"))?;
        if form.all("resource").count() != 1 {
            return Err(OAuthError::request("exactly one resource is required"));
        }
        if form.get("scope").is_some() {
            return Err(OAuthError::scope(form.get("scope").unwrap_or_default()));
        }
        let issuer = unverified(text).and_then(|claims| claims.get("iss")?.as_str().map(str::to_owned));
        let trusted = self.settings.trusted.iter().find(|trusted| Some(&trusted.issuer) == issuer.as_ref());
        let (trusted, grant) =
            trusted.and_then(|trusted| Some((trusted, trusted.jwt_bearer.as_ref()?))).ok_or_else(invalid)?;
        let signed = trusted.keys.verify(text).await.map_err(|_| invalid())?;
        let endpoint = self.settings.token_endpoint();
        let mut audiences = vec![&*endpoint, &self.settings.issuer];
        audiences.extend(grant.audiences.iter().map(String::as_str));
        let now = self.clock.now();
        let rules = AssertionRules { audiences: &audiences, longest: grant.longest.as_secs(), now };
        let accepted = assertion(&signed.header, &signed.claims, &rules).map_err(|reason| {
            info!(reason, "an assertion is not accepted");
            OAuthError::grant(reason)
        })?;
        let subject = grant.subjects.iter().find(|(subject, _)| *subject == accepted.subject);
        let (_, allowed) = subject.ok_or_else(|| OAuthError::grant("the subject is not known"))?;
        let audience = resources(form, allowed)?;
        // A reader of an assertion must not be able to use it again (RFC 7523, section 3, item 7).
        let left = Duration::from_secs(accepted.expires.saturating_sub(now));
        let id = accepted.id.unwrap_or_else(|| hash(text));
        if !self
            .store
            .spend(&format!("assertion-jwt:{}", hash(format!("{}|{id}", trusted.issuer))), left)
            .await?
        {
            return Err(OAuthError::grant("the assertion has been used already"));
        }
        let user = User { id: format!("{}#{}", trusted.issuer, accepted.subject), name: None, email: None };
        let client_id = format!("synthetic:jwt-bearer-{}", hash(&user.id));
        let token = AccessToken {
            user: &user,
            client_id: &client_id,
            audience,
            scopes: &[],
            session: None,
            parent: None,
            actor: None,
            life: left.min(self.settings.access_life),
        };
        self.token_response(&token, None)
    }
}
