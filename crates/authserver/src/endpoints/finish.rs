//! The end of a login: the code for the client.

use bytes::Bytes;
use http::{Response, header};
use uuid::Uuid;

use super::authorize::Refusal;
use crate::{
    AuthServer,
    browser::{Approval, Browser, page, set_approvals, set_user},
    error::OAuthError,
    events::{EventKind, EventOutcome},
    keys::CODE,
    store::{Grant, Pending, Proof, Session, StoreError, User},
};

impl AuthServer {
    /// Issues a code, unless this user has to approve the client: an approval that the browser remembers may be of another user.
    pub(super) async fn finish(&self, pending: Pending, browser: &Browser) -> Response<Bytes> {
        let user = pending.user.as_ref().map(|user| &*user.id).unwrap_or_default();
        let (redirect_uri, state) = (pending.redirect_uri.clone(), pending.state.clone());
        let asked = match self.is_approved(&pending, user, browser).await {
            Ok(true) => return self.issue_code(pending, browser).await,
            Ok(false) => self.ask(pending, browser).await,
            Err(error) => Err(error.into()),
        };
        match asked {
            Ok(response) => response,
            Err(error) => self.refuse(Refusal::Sent { redirect_uri, state, error }),
        }
    }

    async fn is_approved(
        &self,
        pending: &Pending,
        user: &str,
        browser: &Browser,
    ) -> Result<bool, StoreError> {
        if !pending.is_approval_remembered {
            return Ok(true);
        }
        let mark = self.store.approvals_mark(&pending.client_id).await?;
        let approval = Approval::of(pending, &mark);
        // After a session of the client was ended, its user decides again, whatever browsers remember.
        Ok(browser.has_approved(&self.settings.opaque, &approval, user)
            && !self.store.is_in_doubt(user, &pending.client_id).await?)
    }

    async fn ask(&self, pending: Pending, browser: &Browser) -> Result<Response<Bytes>, OAuthError> {
        let client =
            self.client(&pending.client_id, browser.address).await?.ok_or_else(OAuthError::client)?;
        let flow = browser.state(&self.settings.opaque)?;
        let pending = Pending {
            internal_state: flow.clone(),
            upstream_provider_name: String::new(),
            is_approval_remembered: false,
            ..pending
        };
        self.store.put_pending(&flow, &pending, browser.address).await?;
        Ok(page(&self.question(&client.name, &pending, Vec::new(), vec![("flow", flow)])))
    }

    /// Issues a code, and has the browser remember the approval.
    pub(super) async fn issue_code(&self, pending: Pending, browser: &Browser) -> Response<Bytes> {
        let Some(user) = pending.user.clone() else { return OAuthError::server().response() };
        // The page was shown, and the user has allowed it.
        if !pending.is_approval_remembered {
            self.store.doubt(&user.id, &pending.client_id, false).await.ok();
        }
        let is_exempt = self.settings.clients_without_consent.contains(&pending.client_id);
        // At worst, the user approves the client once more.
        let mark = self.store.approvals_mark(&pending.client_id).await.unwrap_or_default();
        let approval = Approval::of(&pending, &mark);
        let approvals = browser.approvals_with(&self.settings.opaque, &approval, &user.id);
        // No other login proves who such a user is, so the browser does, on the page about connections.
        let until = self.clock.now() + self.settings.refresh_life.as_secs();
        let cookie = user.is_unnamed().then(|| browser.signed_in(&self.settings.opaque, &user, until));
        let (redirect_uri, state, scope) =
            (pending.redirect_uri.clone(), pending.state.clone(), pending.scopes.join(" "));
        let (client, id) = (pending.client_id.clone(), user.id.clone());
        let issued = self.code_for(pending, user).await;
        let outcome = if issued.is_ok() { EventOutcome::Success } else { EventOutcome::Failure };
        self.tell((EventKind::Login, outcome), (&id, &client), Some(browser.address));
        let mut response = match issued {
            Ok(code) => self.send_back(&redirect_uri, &state, &[("code", &code), ("scope", &scope)]),
            Err(error) => return self.refuse(Refusal::Sent { redirect_uri, state, error }),
        };
        if !is_exempt && let Some(cookie) = set_approvals(&approvals, self.settings.is_secure()) {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
        if let Some(cookie) = cookie.and_then(|cookie| set_user(&cookie, self.settings.is_secure())) {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
        response
    }

    async fn code_for(&self, pending: Pending, user: User) -> Result<String, OAuthError> {
        let issued = self.settings.opaque.issue(CODE)?;
        let (now, life) = (self.clock.now(), self.settings.code_life);
        let grant = Grant {
            client_id: pending.client_id,
            request_id: Uuid::new_v4().to_string(),
            requested_at: now,
            granted_scopes: pending.scopes,
            granted_audience: pending.resources,
            session: Session { id: pending.session_id, user },
            expires_at: now + life.as_secs(),
            proof: Some(Proof {
                challenge: pending.pkce_challenge,
                redirect_uri: pending.redirect_uri,
                is_redirect_implied: pending.is_redirect_implied,
            }),
        };
        self.store.put_code(&issued.signature, &grant, life).await?;
        Ok(issued.token)
    }
}
