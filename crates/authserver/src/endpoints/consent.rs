//! The user's decision.

use bytes::Bytes;
use http::{Response, StatusCode, header};

use super::{
    Arrived,
    authorize::{Refusal, Requested},
};
use crate::{
    AuthServer,
    browser::Browser,
    error::OAuthError,
    events::{EventKind, EventOutcome},
    response,
    rules::{Parameters, Uri},
    store::Pending,
};

impl AuthServer {
    pub(super) async fn consent(&self, request: &Arrived<'_>, browser: &Browser) -> Response<Bytes> {
        let foreign = || {
            response::text(StatusCode::FORBIDDEN, "this form is not of this server, or not for this browser")
        };
        let Some(form) = request.form().filter(|_| self.is_own_origin(request)) else { return foreign() };
        let is_allowed = match form.get("decision") {
            Some("allow") => true,
            Some("deny") => false,
            _ => return response::text(StatusCode::BAD_REQUEST, "there is no decision"),
        };
        match (form.get("flow"), form.get("request")) {
            (Some(flow), _) => self.decide_after_login(flow, is_allowed, browser).await,
            (None, Some(query)) if self.is_form_of(&form, query, browser) => {
                self.decide_before_login(query, is_allowed, browser).await
            }
            _ => foreign(),
        }
    }

    fn is_form_of(&self, form: &Parameters, query: &str, browser: &Browser) -> bool {
        browser.has_form(&self.settings.opaque, query, form.get("token").unwrap_or_default())
    }

    /// A browser names the origin of the page that has the form.
    pub(super) fn is_own_origin(&self, request: &Arrived<'_>) -> bool {
        let Some(origin) = request.headers.get(header::ORIGIN) else { return true };
        let origin_of = |uri: &str| {
            let uri = Uri::parse(uri)?;
            let port = uri.port.map(|port| format!(":{port}")).unwrap_or_default();
            let host = if uri.host.contains(':') { format!("[{}]", uri.host) } else { uri.host.to_owned() };
            Some(format!("{}://{host}{port}", uri.scheme))
        };
        [&self.settings.issuer, &self.settings.authorize_base]
            .into_iter()
            .filter_map(|uri| origin_of(uri))
            .any(|own| origin.as_bytes().eq_ignore_ascii_case(own.as_bytes()))
    }

    /// The request is checked again: the client may have changed since the page was shown.
    async fn decide_before_login(&self, query: &str, is_allowed: bool, browser: &Browser) -> Response<Bytes> {
        match self.requested(query, browser.address).await {
            Err(refusal) => self.refuse(refusal),
            Ok(Requested { pending, .. }) if is_allowed => {
                self.tell_of_consent(EventOutcome::Success, &pending, browser);
                self.begin(pending, browser).await
            }
            Ok(Requested { pending, .. }) => self.deny(pending, browser),
        }
    }

    async fn decide_after_login(&self, flow: &str, is_allowed: bool, browser: &Browser) -> Response<Bytes> {
        if !browser.began(&self.settings.opaque, flow) {
            return response::unknown_login();
        }
        match self.store.take_pending(flow, browser.address).await {
            Err(error) => OAuthError::from(error).response(),
            Ok(None) => response::unknown_login(),
            // It still waits for an upstream.
            Ok(Some(pending)) if !pending.upstream_provider_name.is_empty() => response::unknown_login(),
            Ok(Some(pending)) if is_allowed => {
                self.tell_of_consent(EventOutcome::Success, &pending, browser);
                self.issue_code(pending, browser).await
            }
            Ok(Some(pending)) => self.deny(pending, browser),
        }
    }

    /// The user is not known before the login.
    fn tell_of_consent(&self, outcome: EventOutcome, pending: &Pending, browser: &Browser) {
        let user = pending.user.as_ref().map(|user| &*user.id).unwrap_or_default();
        self.tell((EventKind::Consent, outcome), (user, &pending.client_id), Some(browser.address));
    }

    fn deny(&self, pending: Pending, browser: &Browser) -> Response<Bytes> {
        self.tell_of_consent(EventOutcome::Denied, &pending, browser);
        let error = OAuthError::new("access_denied", "the user denied the request");
        self.refuse(Refusal::Sent { redirect_uri: pending.redirect_uri, state: pending.state, error })
    }
}
