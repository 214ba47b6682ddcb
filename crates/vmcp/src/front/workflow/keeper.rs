//! Keeps one run of a workflow, each time that it waits for an answer.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use skep_gateway::sessions::Holder;
use skep_mcp::{Era, SessionId};
use skep_workflow::Checkpoint;

use super::kept::{KeptCall, KeptRun, KeptRuns};

/// What keeps one run.
pub(in crate::front) struct Keeper {
    pub(super) runs: Arc<KeptRuns>,
    call: KeptCall,
    era: Era,
    /// Whose run it is.
    holder: Holder,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Where it is kept now.
    kept: Option<Kept>,
    /// The step whose question an older client has got from another replica, and the id of that.
    sent: Option<(String, String)>,
}

#[derive(Clone)]
struct Kept {
    state: SessionId,
    question: Option<String>,
}

/// Why a run does not go on here.
pub(super) enum Lost {
    /// Another replica has it.
    Taken,
    /// It is not known who has it.
    Unavailable,
}

impl Keeper {
    pub(super) fn new(runs: Arc<KeptRuns>, call: KeptCall, era: Era, holder: Holder) -> Self {
        Self { runs, call, era, holder, state: Mutex::default() }
    }

    /// The same for a run whose question the client has.
    pub(super) fn with_question(self, step: String, question: String) -> Self {
        self.state().sent = Some((step, question));
        self
    }

    /// The id of the question of a step, and whether the client has it.
    pub(super) fn question(&self, step: &str) -> (String, bool) {
        match self.state().sent.take_if(|(sent, _)| sent == step) {
            Some((_, question)) => (question, true),
            None => (new_question(), false),
        }
    }

    /// Keeps the run. Returns the state by which any replica can go on with it, if it could be kept.
    pub(super) async fn keep(
        &self,
        checkpoint: Checkpoint,
        question: &str,
        time: Duration,
    ) -> Option<SessionId> {
        let until = Timestamp::now() + SignedDuration::try_from(time).unwrap_or(SignedDuration::ZERO);
        let question = (self.era == Era::Legacy).then(|| question.to_owned());
        let run = KeptRun { call: self.call.clone(), question: question.clone(), until, checkpoint };
        let state = SessionId::random();
        if !self.runs.keep(state.as_str(), &run, time, self.holder).await {
            return None;
        }
        self.state().kept = Some(Kept { state: state.clone(), question });
        Some(state)
    }

    /// Takes the run, so that no other replica goes on with it.
    pub(super) async fn claim(&self) -> Result<(), Lost> {
        let kept = self.state().kept.take();
        let Some(Kept { state, question }) = kept else { return Ok(()) };
        match self.runs.take(state.as_str()).await {
            Ok(true) => {}
            Ok(false) => return Err(Lost::Taken),
            Err(_) => return Err(Lost::Unavailable),
        }
        if let Some(question) = question {
            self.runs.close_question(&question).await;
        }
        Ok(())
    }

    /// The client has cancelled the call, or has too many of them: no replica goes on.
    pub(in crate::front) fn forget(self: &Arc<Self>) {
        let keeper = self.clone();
        tokio::spawn(async move { keeper.claim().await.ok() });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The start of the ids of questions.
pub(in crate::front) const QUESTION: &str = "workflow-";

/// The id of a question that no other has, at whatever replica.
pub(in crate::front) fn new_question() -> String {
    format!("{QUESTION}{}", uuid::Uuid::new_v4())
}
