//! What a backend has requested of the client in a session, and has no response to yet. The time of the user is not that of the
//! backend.

use skep_mcp::{Envelope, Raw};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use crate::limits;

/// The open questions of a session.
#[derive(Debug, Default)]
pub(crate) struct Questions(watch::Sender<Vec<Question>>);

#[derive(Debug)]
struct Question {
    /// Its id, as it is spelled.
    id: Box<str>,
    /// What the backend wants progress for, as it is spelled.
    progress: Option<Box<str>>,
    /// Until when it may be answered.
    until: Instant,
}

impl Questions {
    /// Records one. Returns whether there was room for it: there is none for a very long id or token.
    pub(crate) fn ask(&self, envelope: &Envelope<'_>) -> bool {
        let Some(id) = envelope.id().map(|id| id.raw().as_str()) else { return false };
        let meta = envelope.params().and_then(|params| params.get("_meta"));
        let progress = meta.and_then(|meta| meta.get("progressToken")).map(|token| token.as_str());
        if id.len().max(progress.map_or(0, str::len)) > limits::QUESTION_ID {
            return false;
        }
        let now = Instant::now();
        let progress = progress.map(Into::into);
        let question = Question { id: id.into(), progress, until: now + limits::INPUT_TIME };
        self.0.send_if_modified(|open| {
            open.retain(|other| other.until > now && *other.id != *id);
            let has_room = open.len() < limits::INPUTS;
            if has_room {
                open.push(question);
            }
            has_room
        })
    }

    /// It has its response, or none is expected any more. Returns whether it was open.
    pub(crate) fn end(&self, id: &str) -> bool {
        self.0.send_if_modified(|open| {
            let before = open.len();
            open.retain(|question| *question.id != *id);
            open.len() < before
        })
    }

    /// Whether progress with this token, as it is spelled, is for one of them.
    pub(crate) fn want_progress(&self, token: Raw<'_>) -> bool {
        self.0.borrow().iter().any(|question| question.progress.as_deref() == Some(token.as_str()))
    }

    /// Completes when this one is no longer open.
    pub(crate) async fn ended(&self, id: &str) {
        let mut changes = self.0.subscribe();
        loop {
            changes.mark_unchanged();
            let until = self.0.borrow().iter().find(|question| *question.id == *id).map(|open| open.until);
            let Some(until) = until.filter(|until| *until > Instant::now()) else { return };
            tokio::select! {
                _ = changes.changed() => {}
                () = sleep_until(until) => return,
            }
        }
    }

    pub(crate) fn are_open(&self) -> bool {
        self.end_of_last().is_some()
    }

    /// Completes when there are none any more, or the first one. It may be dropped and called again.
    pub(crate) async fn changed(&self, were_open: bool) {
        let mut changes = self.0.subscribe();
        loop {
            changes.mark_unchanged();
            let end = self.end_of_last();
            if end.is_some() != were_open {
                return;
            }
            let over = async {
                match end {
                    Some(end) => sleep_until(end).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = changes.changed() => {}
                () = over => {}
            }
        }
    }

    /// When the last one can no longer be answered.
    fn end_of_last(&self) -> Option<Instant> {
        let end = self.0.borrow().iter().map(|question| question.until).max();
        end.filter(|end| *end > Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn ask(questions: &Questions, id: usize) -> bool {
        ask_with(questions, id, "t")
    }

    fn ask_with(questions: &Questions, id: impl std::fmt::Display, token: &str) -> bool {
        let params = format!(r#"{{"_meta":{{"progressToken":"{token}"}}}}"#);
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"roots/list","params":{params}}}"#);
        questions.ask(&Envelope::parse(text.as_bytes()).unwrap())
    }

    #[test]
    fn a_question_with_a_long_id_or_token_is_declined() {
        let questions = Questions::default();
        let long = "x".repeat(limits::QUESTION_ID);
        assert!(!ask_with(&questions, format!("\"{long}\""), "t"));
        assert!(!ask_with(&questions, 1, &long));
        assert!(!questions.are_open() && ask_with(&questions, 1, &long[2..]));
    }

    #[tokio::test(start_paused = true)]
    async fn questions_are_open_until_they_are_answered_or_their_time_has_passed() {
        let questions = Questions::default();
        assert!(!questions.are_open() && questions.changed(false).now_or_never().is_none());
        assert!(ask(&questions, 1) && ask(&questions, 2));
        assert!(questions.changed(false).now_or_never().is_some());
        assert!(questions.end("1") && !questions.end("1"));
        assert!(questions.are_open(), "there is another");
        assert!(questions.end("2") && !questions.are_open());
        assert!(ask(&questions, 3));
        let asked = Instant::now();
        questions.changed(true).await;
        assert_eq!(asked.elapsed().as_secs(), limits::INPUT_TIME.as_secs());
    }

    #[test]
    fn a_backend_asks_a_few_questions_at_once_only() {
        let questions = Questions::default();
        assert!((0..limits::INPUTS).all(|id| ask(&questions, id)));
        assert!(!ask(&questions, limits::INPUTS));
        questions.end("0");
        assert!(ask(&questions, limits::INPUTS));
    }
}
