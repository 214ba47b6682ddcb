//! The sessions of a user: in each, a client acts for the user, with what it has at each provider. The user sees them on a page,
//! without a client, and ends one there.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use bytes::Bytes;
use futures::future::join_all;
use http::{Response, StatusCode};
use tracing::info;

use super::connections::SIGN_IN;
use crate::{
    AuthServer,
    browser::{Browser, SessionItem, sessions_page},
    error::OAuthError,
    events::{EventKind, EventOutcome},
    response,
    rules::Uri,
    store::{StoreError, User, UserSession},
};

impl AuthServer {
    /// The page about all sessions of the user who has logged in in this browser.
    pub(super) async fn sessions(&self, browser: &Browser) -> Response<Bytes> {
        let Some(first) = self.upstreams.first() else { return OAuthError::server().response() };
        let Some(user) = browser.user(&self.settings.opaque, self.clock.now()) else {
            return match first.names_users() {
                true => self.begin_own(&first.name, "", SIGN_IN, None, browser).await,
                // Another login there is another user.
                false => response::text(
                    StatusCode::NOT_FOUND,
                    "the identity provider does not name its users: use the browser in which you have logged in",
                ),
            };
        };
        match self.session_items(&user, browser).await {
            Ok(items) => sessions_page(user.label(), &items),
            Err(error) => OAuthError::from(error).response(),
        }
    }

    async fn session_items(&self, user: &User, browser: &Browser) -> Result<Vec<SessionItem>, StoreError> {
        let sessions = self.sessions_of(user).await?;
        let names = self.client_names(sessions.iter().map(UserSession::client_id).collect()).await?;
        let item = |session: &UserSession| SessionItem {
            client: names.get(session.client_id()).cloned().unwrap_or_default(),
            token: browser.form_token(&self.settings.opaque, &session.id),
            connections: self.upstream_tokens().described(&session.rows),
            id: session.id.clone(),
        };
        Ok(sessions.iter().map(item).collect())
    }

    /// The sessions of a user that go on, the newest first: those that can be continued, and those whose access token may still
    /// be valid.
    async fn sessions_of(&self, user: &User) -> Result<Vec<UserSession>, StoreError> {
        let providers: Vec<&str> = self.upstream_tokens().providers().collect();
        let mut sessions = self.store.sessions(&user.id, &providers).await?;
        sessions.retain(|session| self.goes_on(session));
        sessions.sort_by_key(|session| Reverse(session.connected_at()));
        Ok(sessions)
    }

    /// Whether a session can be continued, or its access token may still be valid.
    pub(crate) fn goes_on(&self, session: &UserSession) -> bool {
        let life = (self.settings.code_life + self.settings.access_life).as_secs();
        session.grant.is_some() || self.clock.now() < session.connected_at() + life
    }

    /// The names of clients. Of one with a document, the host that has it is known without a request.
    pub(crate) async fn client_names<'a>(
        &self,
        ids: BTreeSet<&'a str>,
    ) -> Result<BTreeMap<&'a str, String>, StoreError> {
        let named = join_all(ids.into_iter().map(async |id| {
            let name = match Uri::parse(id).filter(|uri| uri.is("https")) {
                Some(uri) => uri.host.to_owned(),
                None => self.store.client(id).await?.map(|client| client.name).unwrap_or_default(),
            };
            Ok((id, name))
        }));
        named.await.into_iter().collect()
    }

    /// Ends a session, and forgets that the user has approved the client, in all browsers.
    pub(crate) async fn end_for_good(
        &self,
        session: &str,
        user: &str,
        client: &str,
    ) -> Result<(), OAuthError> {
        self.store.doubt(user, client, true).await?;
        let ended = self.end_session(session).await;
        let outcome = if ended.is_ok() { EventOutcome::Success } else { EventOutcome::Failure };
        self.tell((EventKind::SessionEnd, outcome), (user, client), None);
        ended
    }

    /// Ends a session of the user who has requested that. The client gets no other one without the user.
    pub(super) async fn end_own(&self, session: &str, user: &User, client: &str) -> Response<Bytes> {
        match self.end_for_good(session, &user.id, client).await {
            Ok(()) => {
                info!("a user has ended a session");
                self.to_page("")
            }
            Err(error) => error.response(),
        }
    }
}
