//! Questions of backends to clients whose sessions all replicas see: the answer may come to any of them.

use std::sync::Arc;

use tracing::debug;

use super::{from_backend::request_id, workflow::KeptRuns};
use crate::{
    backend::{Backend, Caller, Link},
    session::ClientSession,
};

/// A question that has just been asked.
pub(super) struct Question<'a> {
    pub(super) session: &'a ClientSession,
    pub(super) backend: &'a Arc<Backend>,
    pub(super) link: &'a Arc<Link>,
    pub(super) caller: &'a Caller,
    /// Its id at the backend, as it is spelled.
    pub(super) id: &'a str,
}

impl Question<'_> {
    /// Lets all replicas know of it, for as long as it is open. Returns its id for the client.
    pub(super) async fn announced(self, runs: Option<&Arc<KeptRuns>>) -> String {
        let public = request_id(self.backend, self.link, self.id);
        if let (Some(runs), Some(session)) = (runs, self.session.links.shared()) {
            let place = place(session, &public);
            if runs.ask(&place, session).await {
                tokio::spawn(answered_elsewhere(
                    runs.clone(),
                    place,
                    (self.backend.clone(), self.link.clone(), self.caller.clone()),
                    self.id.into(),
                ));
            }
        }
        public
    }
}

/// Where the question of this id, and its answer, are kept: no other session may answer it.
pub(super) fn place(session: &str, id: &str) -> String {
    format!("{session}/{id}")
}

/// Ends a question that is answered at another replica. That one has sent the answer, unless the session of the backend is here.
async fn answered_elsewhere(
    runs: Arc<KeptRuns>,
    place: String,
    (backend, link, caller): (Arc<Backend>, Arc<Link>, Caller),
    id: Box<str>,
) {
    tokio::select! {
        answer = runs.answer(&place) => {
            if link.questions.end(&id)
                && link.stream().is_some()
                && let Err(error) = backend.notify(&link, &caller, answer).await
            {
                debug!(backend = &*backend.name, %error, "failed to respond to a backend");
            }
        }
        () = link.questions.ended(&id) => {}
    }
    runs.close_question(&place).await;
}
