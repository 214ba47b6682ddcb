//! What administrators do: list the sessions of users and the clients that have registered, end sessions, and forget clients.
//! No token is ever part of it. Who may do so is for those to decide who call it.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Serialize;
use uuid::Uuid;

use crate::{
    AuthServer,
    error::OAuthError,
    limits,
    store::{StoreError, UserSession},
};

/// Which sessions are meant: those that have all of these. Without any, all are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// The id of one session.
    pub session: Option<String>,
    /// A user: the subject of access tokens, the subject at an upstream, or the e-mail address.
    pub user: Option<String>,
    /// The id of a client.
    pub client: Option<String>,
}

/// A session of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionSummary {
    /// Its id. It is no credential.
    pub id: String,
    /// The user, as the subject of access tokens.
    pub user: String,
    /// The name of the user, if the session can be continued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The e-mail address of the user, if the session can be continued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// The subjects of the user at the upstreams where the session has tokens.
    pub accounts: Vec<Account>,
    /// The client that acts for the user.
    pub client: String,
    /// What that calls itself.
    pub client_name: String,
    /// When the user connected an upstream for the last time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// When the client must have continued it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// A user at an upstream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Account {
    /// The name of the upstream.
    pub provider: String,
    /// The subject of the user there.
    pub subject: String,
}

/// Some of the sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionPage {
    /// The sessions.
    pub sessions: Vec<SessionSummary>,
    /// Where the others begin. Without it, there are no others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Whether other processes have the same ones.
    pub shared: bool,
}

/// What was ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EndedPage {
    /// The sessions that have ended.
    pub ended: Vec<SessionSummary>,
    /// Where the others begin that are meant. Without it, there are no others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A client that has registered, and has got tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClientSummary {
    /// Its id.
    pub id: String,
    /// What it calls itself.
    pub name: String,
    /// Where it has users sent back to.
    pub redirect_uris: Vec<String>,
    /// Whether it has no secret.
    pub public: bool,
}

/// Some of the clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClientPage {
    /// The clients.
    pub clients: Vec<ClientSummary>,
    /// Where the others begin. Without it, there are no others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl SessionFilter {
    fn means(&self, session: &UserSession) -> bool {
        let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        is(&self.client, session.client_id()) && self.user.as_ref().is_none_or(|user| is_of(session, user))
    }
}

/// Whether a session is of the user who is called this. An e-mail address is what an upstream says of its user.
fn is_of(session: &UserSession, user: &str) -> bool {
    let email = session.grant.as_ref().and_then(|grant| grant.session.user.email.as_deref());
    let mut accounts = session.rows.iter().flatten();
    session.user_id() == user
        || email.is_some_and(|email| email.eq_ignore_ascii_case(user))
        || accounts.any(|row| row.upstream_subject == user)
}

impl AuthServer {
    /// Some of the sessions that are meant, from here on.
    pub async fn list_sessions(&self, filter: &SessionFilter, from: &str) -> Result<SessionPage, StoreError> {
        let (found, next) = self.meant(filter, from).await?;
        let sessions = self.summaries(&found).await?;
        Ok(SessionPage { sessions, next, shared: self.store.is_shared() })
    }

    /// Ends some of the sessions that are meant, from here on. Their users approve the client again in its next login.
    pub async fn end_sessions(&self, filter: &SessionFilter, from: &str) -> Result<EndedPage, StoreError> {
        let (found, next) = self.meant(filter, from).await?;
        let ended = self.summaries(&found).await?;
        for session in &found {
            let ended = self.end_for_good(&session.id, session.user_id(), session.client_id()).await;
            ended.map_err(|_: OAuthError| StoreError::Unavailable)?;
        }
        Ok(EndedPage { ended, next })
    }

    /// Some of the clients that have registered and have got tokens, from here on.
    pub async fn list_clients(&self, from: &str) -> Result<ClientPage, StoreError> {
        let (found, next) = self.store.used_clients(from, limits::ADMINISTRATION_PAGE).await?;
        let mut clients: Vec<_> = found
            .into_iter()
            .map(|client| ClientSummary {
                id: client.id,
                name: client.name,
                redirect_uris: client.redirect_uris,
                public: client.public,
            })
            .collect();
        clients.sort_by(|left, right| left.id.cmp(&right.id));
        Ok(ClientPage { clients, next })
    }

    /// Forgets a client: its registration, and that users have approved it. Its sessions go on, but cannot be continued without a
    /// registration. Returns whether it had one.
    pub async fn forget_client(&self, id: &str) -> Result<bool, StoreError> {
        self.store.forget_approvals(id, &Uuid::new_v4().simple().to_string()).await?;
        self.store.remove_client(id).await
    }

    /// The sessions that are meant, of a bounded number that are looked at, and where to go on.
    async fn meant(
        &self,
        filter: &SessionFilter,
        from: &str,
    ) -> Result<(Vec<UserSession>, Option<String>), StoreError> {
        let providers: Vec<&str> = self.upstream_tokens().providers().collect();
        if let Some(session) = &filter.session {
            let found = self.store.user_session(session, &providers).await?;
            let found = found.filter(|session| self.goes_on(session) && filter.means(session));
            return Ok((found.into_iter().collect(), None));
        }
        let (mut found, mut from) = (Vec::new(), from.to_owned());
        for _ in 0..limits::ADMINISTRATION_PAGES {
            let page = self.store.all_sessions(&from, limits::ADMINISTRATION_PAGE, &providers).await?;
            found.extend(page.0.into_iter().filter(|session| self.goes_on(session) && filter.means(session)));
            match page.1 {
                None => return Ok((unique(found), None)),
                Some(next) => from = next,
            }
            if found.len() >= limits::ADMINISTRATION_PAGE {
                break;
            }
        }
        Ok((unique(found), Some(from)))
    }

    async fn summaries(&self, sessions: &[UserSession]) -> Result<Vec<SessionSummary>, StoreError> {
        let names = self.client_names(sessions.iter().map(UserSession::client_id).collect()).await?;
        let summary = |session: &UserSession| {
            let user = session.grant.as_ref().map(|grant| &grant.session.user);
            let accounts = session.rows.iter().flatten().filter(|row| !row.access_token.is_empty());
            SessionSummary {
                id: session.id.clone(),
                user: session.user_id().to_owned(),
                name: user.and_then(|user| user.name.clone()),
                email: user.and_then(|user| user.email.clone()),
                accounts: accounts
                    .map(|row| Account {
                        provider: row.provider_id.clone(),
                        subject: row.upstream_subject.clone(),
                    })
                    .collect(),
                client: session.client_id().to_owned(),
                client_name: names.get(session.client_id()).cloned().unwrap_or_default(),
                since: time(session.connected_at()),
                until: session.grant.as_ref().and_then(|grant| time(grant.expires_at)),
            }
        };
        Ok(sessions.iter().map(summary).collect())
    }
}

/// Each session once: a page of the store may have one twice.
fn unique(sessions: Vec<UserSession>) -> Vec<UserSession> {
    let mut seen = BTreeSet::new();
    sessions.into_iter().filter(|session| seen.insert(session.id.clone())).collect()
}

fn time(seconds: u64) -> Option<Timestamp> {
    let seconds = i64::try_from(seconds).ok().filter(|seconds| *seconds > 0)?;
    Timestamp::from_second(seconds).ok()
}
