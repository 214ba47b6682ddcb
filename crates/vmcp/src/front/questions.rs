//! Questions of backends to clients, and their answers. Where replicas share a session, an answer may come to any of them.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::sleep;
use tracing::debug;
use uuid::Uuid;

use super::{
    Front,
    from_backend::{RequestId, request_id},
    workflow::{KeptRuns, PassedOn},
};
use crate::{
    backend::{Backend, BackendError, Caller, Claim, Link},
    limits,
    session::ClientSession,
};

/// A new question of a backend.
pub(super) struct Question<'a> {
    pub(super) session: &'a ClientSession,
    pub(super) backend: &'a Arc<Backend>,
    pub(super) link: &'a Arc<Link>,
    pub(super) caller: &'a Caller,
    /// Its id at the backend, as it is spelled.
    pub(super) id: &'a str,
    pub(super) number: Uuid,
}

/// An answer of the client to a question of a backend.
pub(super) struct ClientAnswer<'a> {
    pub(super) session: &'a ClientSession,
    pub(super) backend: Arc<Backend>,
    pub(super) caller: &'a Caller,
    /// The id that the client has of the question, and its parts.
    pub(super) public: &'a str,
    pub(super) id: RequestId<'a>,
    /// The message, as the backend gets it.
    pub(super) message: Bytes,
}

/// Why the backend does not get an answer.
pub(super) enum Undelivered {
    NoQuestion,
    TooLarge,
    Unavailable,
    Backend(Arc<str>, BackendError),
}

impl Question<'_> {
    /// Announces the question to all replicas, for as long as it is open. Returns its id for the client.
    pub(super) async fn announce(self, runs: Option<&Arc<KeptRuns>>) -> String {
        let public = request_id(self.backend, self.link, self.id, self.number);
        if let (Some(runs), Some(session)) = (runs, self.session.links.shared()) {
            let announced = AnnouncedQuestion {
                runs: runs.clone(),
                place: place(session, &public),
                session: session.into(),
                backend: self.backend.clone(),
                link: self.link.clone(),
                caller: self.caller.clone(),
                number: self.number,
            };
            let is_known = runs.ask(&announced.place, session).await;
            tokio::spawn(announced.watch(is_known));
        }
        public
    }
}

/// A question that other replicas may get the answer to.
struct AnnouncedQuestion {
    runs: Arc<KeptRuns>,
    place: String,
    session: Box<str>,
    backend: Arc<Backend>,
    link: Arc<Link>,
    caller: Caller,
    number: Uuid,
}

impl AnnouncedQuestion {
    /// Closes the question when it ends, here or at another replica. `is_known` is whether the others know it already.
    async fn watch(self, mut is_known: bool) {
        let answered = async {
            while !is_known {
                sleep(limits::ANSWER_PAUSE).await;
                is_known = self.runs.ask(&self.place, &self.session).await;
            }
            self.runs.answer(&self.place).await
        };
        tokio::select! {
            answer = answered => {
                if let Some(answer) = answer && self.link.questions.claim(self.number) == Claim::Granted {
                    self.send(answer).await;
                }
                self.link.questions.end(self.number);
            }
            () = self.link.questions.ended(self.number) => {}
        }
        self.runs.close_question(&self.place).await;
    }

    /// Sends the backend an answer that another replica has accepted: twice, if need be.
    async fn send(&self, answer: Bytes) {
        let Self { backend, link, caller, .. } = self;
        let mut sent = backend.notify(link, caller, answer.clone()).await;
        if sent.is_err() {
            sleep(limits::ANSWER_PAUSE).await;
            sent = backend.notify(link, caller, answer).await;
        }
        if let Err(error) = sent {
            debug!(backend = &*backend.name, %error, "failed to respond to a backend");
        }
    }
}

/// The key of a question, and of its answer: only its own session may answer it.
fn place(session: &str, id: &str) -> String {
    format!("{session}/{id}")
}

impl Front {
    /// Sends the answer to a question to its backend, once, whichever replicas get it. If that fails, the client may send it again.
    pub(super) async fn answer_backend(&self, answer: ClientAnswer<'_>) -> Result<(), Undelivered> {
        let ClientAnswer { session, backend, caller, public, id, message } = answer;
        let here = session.links.opened(&backend.name).filter(|link| link.stream() == id.stream);
        let claim = here.as_ref().map_or(Claim::NoQuestion, |link| link.questions.claim(id.number));
        if claim == Claim::Refused {
            return Ok(());
        }
        let shared = self.kept.clone().zip(session.links.shared().map(|session| place(session, public)));
        let here = here.filter(|_| claim == Claim::Granted);
        if let Some((runs, place)) = &shared {
            if here.is_none() && id.stream.is_some() {
                // Only the replica that has the stream can send it.
                return match runs.pass_on(session, place, &message).await {
                    Ok(PassedOn::Yes | PassedOn::Answered) => Ok(()),
                    Ok(PassedOn::NoQuestion) => Err(Undelivered::NoQuestion),
                    Ok(PassedOn::TooLarge) => Err(Undelivered::TooLarge),
                    Err(_) => Err(Undelivered::Unavailable),
                };
            }
            let life = backend.timeout.saturating_mul(limits::OPENING_TIMES) + limits::KEPT_RUN_MARGIN;
            // Without Redis, nobody else is known to send it.
            if let Ok(Claim::Refused) = runs.claim(place, life).await {
                if let Some(link) = here {
                    link.questions.release(id.number);
                }
                return Ok(());
            }
        }
        let link = match (here, &shared) {
            (Some(link), _) => link,
            (None, Some(_)) => match session.links.existing(&backend, caller).await {
                Some(link) => link,
                None => return Err(Undelivered::NoQuestion),
            },
            // It was answered, or its time has passed.
            (None, None) => return Ok(()),
        };
        let name = backend.name.clone();
        let delivery = Delivery { backend, link, caller: caller.clone(), number: id.number, shared };
        // It does not end with the connection of the client.
        match tokio::spawn(delivery.send(message)).await {
            Ok(sent) => sent.map_err(|error| Undelivered::Backend(name, error)),
            Err(_) => Err(Undelivered::Backend(name, BackendError::Broken)),
        }
    }
}

/// The way of an answer to its backend.
struct Delivery {
    backend: Arc<Backend>,
    link: Arc<Link>,
    caller: Caller,
    number: Uuid,
    /// Where other replicas see the answer.
    shared: Option<(Arc<KeptRuns>, String)>,
}

impl Delivery {
    /// Sends the answer, which ends the question unless that fails.
    async fn send(self, answer: Bytes) -> Result<(), BackendError> {
        let Self { backend, link, caller, number, shared } = self;
        let sent = backend.notify(&link, &caller, answer).await;
        match &sent {
            Ok(()) => {
                if let Some((runs, place)) = &shared {
                    runs.deliver(place).await;
                }
                link.questions.end(number);
            }
            Err(error) => {
                debug!(backend = &*backend.name, %error, "failed to respond to a backend");
                if let Some((runs, place)) = &shared {
                    runs.release(place).await;
                }
                link.questions.release(number);
            }
        }
        sent
    }
}
