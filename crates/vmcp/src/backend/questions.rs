//! Requests of a backend to the client of a session that have no response yet. The time of the user is not that of the backend.

use skep_mcp::{Envelope, Raw};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};
use uuid::Uuid;

use crate::limits;

/// The open questions of a session.
#[derive(Debug, Default)]
pub(crate) struct Questions(watch::Sender<Vec<Question>>);

#[derive(Debug)]
struct Question {
    /// Distinguishes it from others: a backend may use an id again.
    number: Uuid,
    /// Its id, as it is spelled.
    id: Box<str>,
    /// What the backend wants progress for, as it is spelled.
    progress: Option<Box<str>>,
    /// Until when it may be answered.
    until: Instant,
    /// Whether its answer is on its way to the backend.
    is_claimed: bool,
}

/// The right to send the backend the answer to a question: one sender has it at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    Granted,
    /// The question has an answer.
    Refused,
    NoQuestion,
}

impl Questions {
    /// Records one, if there is room for it, which a very long id or token does not have. Returns its number.
    pub(crate) fn ask(&self, envelope: &Envelope<'_>) -> Option<Uuid> {
        let id = envelope.id()?.raw().as_str();
        let meta = envelope.params().and_then(|params| params.get("_meta"));
        let progress = meta.and_then(|meta| meta.get("progressToken")).map(|token| token.as_str());
        if id.len().max(progress.map_or(0, str::len)) > limits::QUESTION_ID {
            return None;
        }
        let now = Instant::now();
        let (number, until) = (Uuid::new_v4(), now + limits::INPUT_TIME);
        let progress = progress.map(Into::into);
        let question = Question { number, id: id.into(), progress, until, is_claimed: false };
        let is_recorded = self.0.send_if_modified(|open| {
            open.retain(|other| other.until > now && *other.id != *id);
            let has_room = open.len() < limits::INPUTS;
            if has_room {
                open.push(question);
            }
            has_room
        });
        is_recorded.then_some(number)
    }

    /// The number of the open question with this id, as it is spelled.
    pub(crate) fn number(&self, id: &str) -> Option<Uuid> {
        self.0.borrow().iter().find(|question| *question.id == *id).map(|question| question.number)
    }

    /// Claims the answer to a question. The question stays open until the backend has the answer.
    pub(crate) fn claim(&self, number: Uuid) -> Claim {
        let mut claim = Claim::NoQuestion;
        self.0.send_if_modified(|open| {
            if let Some(question) = open.iter_mut().find(|question| question.number == number) {
                claim = if question.is_claimed { Claim::Refused } else { Claim::Granted };
                question.is_claimed = true;
            }
            false
        });
        claim
    }

    /// Gives up a claim: the backend has not got the answer, and the client may send it again.
    pub(crate) fn release(&self, number: Uuid) {
        self.0.send_if_modified(|open| {
            open.iter_mut()
                .filter(|question| question.number == number)
                .for_each(|question| question.is_claimed = false);
            false
        });
    }

    /// Ends a question: it has its response, or none is expected any more. Returns whether it was open.
    pub(crate) fn end(&self, number: Uuid) -> bool {
        self.0.send_if_modified(|open| {
            let before = open.len();
            open.retain(|question| question.number != number);
            open.len() < before
        })
    }

    /// Whether progress with this token, as it is spelled, is for one of them.
    pub(crate) fn want_progress(&self, token: Raw<'_>) -> bool {
        self.0.borrow().iter().any(|question| question.progress.as_deref() == Some(token.as_str()))
    }

    /// Completes when this one is no longer open.
    pub(crate) async fn ended(&self, number: Uuid) {
        let mut changes = self.0.subscribe();
        loop {
            changes.mark_unchanged();
            let until =
                self.0.borrow().iter().find(|question| question.number == number).map(|open| open.until);
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

    fn ask(questions: &Questions, id: usize) -> Option<Uuid> {
        ask_with(questions, id, "t")
    }

    fn ask_with(questions: &Questions, id: impl std::fmt::Display, token: &str) -> Option<Uuid> {
        let params = format!(r#"{{"_meta":{{"progressToken":"{token}"}}}}"#);
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"roots/list","params":{params}}}"#);
        questions.ask(&Envelope::parse(text.as_bytes()).unwrap())
    }

    #[test]
    fn a_question_with_a_long_id_or_token_is_declined() {
        let questions = Questions::default();
        let long = "x".repeat(limits::QUESTION_ID);
        assert_eq!(ask_with(&questions, format!("\"{long}\""), "t"), None);
        assert_eq!(ask_with(&questions, 1, &long), None);
        assert!(!questions.are_open() && ask_with(&questions, 1, &long[2..]).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn questions_are_open_until_they_are_answered_or_their_time_has_passed() {
        let questions = Questions::default();
        assert!(!questions.are_open() && questions.changed(false).now_or_never().is_none());
        let [first, second] = [1, 2].map(|id| ask(&questions, id).unwrap());
        assert!(questions.changed(false).now_or_never().is_some());
        assert!(questions.end(first) && !questions.end(first));
        assert!(questions.are_open(), "there is another");
        assert!(questions.end(second) && !questions.are_open());
        assert!(ask(&questions, 3).is_some());
        let asked = Instant::now();
        questions.changed(true).await;
        assert_eq!(asked.elapsed().as_secs(), limits::INPUT_TIME.as_secs());
    }

    #[test]
    fn a_link_bounds_its_open_questions() {
        let questions = Questions::default();
        let first = ask(&questions, 0).unwrap();
        assert!((1..limits::INPUTS).all(|id| ask(&questions, id).is_some()));
        assert_eq!(ask(&questions, limits::INPUTS), None);
        questions.end(first);
        assert!(ask(&questions, limits::INPUTS).is_some());
    }

    #[test]
    fn an_answer_has_one_sender_until_that_fails() {
        let questions = Questions::default();
        let number = ask(&questions, 1).unwrap();
        assert_eq!([(); 2].map(|()| questions.claim(number)), [Claim::Granted, Claim::Refused]);
        questions.release(number);
        assert_eq!(questions.claim(number), Claim::Granted);
        let again = ask(&questions, 1).unwrap();
        assert_eq!(questions.claim(number), Claim::NoQuestion, "its id names another question");
        assert!(!questions.end(number) && questions.end(again));
    }
}
