//! Runs of workflows that wait for an answer, kept in Redis, where all replicas see them.
//!
//! Of all that could go on with a run, the one that removes its record does.

use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use skep_gateway::sessions::{Records, RedisUnavailable};
use skep_workflow::Checkpoint;
use tokio::time::sleep;
use tracing::warn;

use crate::{limits, session::ClientSession};

/// All of them.
pub(crate) struct KeptRuns {
    runs: Records,
    /// The sessions of older clients that have a question, by its id.
    questions: Records,
    /// Answers that came to another replica than the one that waits, by the ids of their questions.
    answers: Records,
}

/// One of them.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct KeptRun {
    pub(super) call: KeptCall,
    /// The id of the question that an older client has.
    pub(super) question: Option<String>,
    /// Until when it may be answered.
    pub(super) until: Timestamp,
    pub(super) checkpoint: Checkpoint,
}

/// The call of the client that has started a run.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct KeptCall {
    pub(super) owner: String,
    /// Its session, in the revisions that have sessions.
    pub(super) session: Option<String>,
    /// Its id and its progress token, as they are spelled.
    pub(super) id: String,
    pub(super) progress: Option<String>,
    pub(super) tool: String,
    /// Which definition of the tool it was.
    pub(super) definition: String,
    /// The id of its entry in the audit log.
    pub(super) audit_id: String,
}

impl KeptCall {
    /// Whether it is a call of this client.
    pub(super) fn is_of(&self, session: &ClientSession) -> bool {
        self.owner == session.owner.to_text() && self.session.as_deref() == session.links.shared.as_deref()
    }
}

impl KeptRuns {
    pub(crate) fn new(sessions: &Records) -> Self {
        Self {
            runs: sessions.within("workflow"),
            questions: sessions.within("question"),
            answers: sessions.within("answer"),
        }
    }

    /// Keeps a run. Returns whether it is kept: if not, it goes on at this replica only.
    pub(super) async fn keep(&self, state: &str, run: &KeptRun, time: Duration) -> bool {
        let bytes = serde_json::to_vec(run).unwrap_or_default();
        if bytes.is_empty() || bytes.len() > limits::KEPT_RUN {
            warn!(tool = run.call.tool, bytes = bytes.len(), "a workflow that waits is too large to be kept");
            return false;
        }
        // Longer than it may be answered, so that the replica that waits can tell an expired run from one that another has.
        let life = time + limits::KEPT_RUN_MARGIN;
        if let (Some(question), Some(session)) = (&run.question, &run.call.session)
            && self.questions.put_for(question, session.as_bytes(), life).await.is_err()
        {
            return false;
        }
        self.runs.put_for(state, &bytes, life).await.is_ok()
    }

    /// The run that is kept under this state, if it can still be answered.
    pub(super) async fn find(&self, state: &str) -> Result<Option<KeptRun>, RedisUnavailable> {
        let run = self.runs.peek(state).await?;
        let run = run.and_then(|bytes| serde_json::from_slice::<KeptRun>(&bytes).ok());
        Ok(run.filter(|run| Timestamp::now() < run.until))
    }

    /// Takes a run, and returns whether it was there: only then the caller goes on with it.
    pub(super) async fn take(&self, state: &str) -> Result<bool, RedisUnavailable> {
        self.runs.take(state).await
    }

    /// The question has its answer.
    pub(super) async fn close_question(&self, question: &str) {
        self.questions.remove(question).await.ok();
        self.answers.remove(question).await.ok();
    }

    /// Waits for an answer that another replica receives.
    pub(in crate::front) async fn answer(&self, question: &str) -> Bytes {
        loop {
            sleep(limits::ANSWER_PAUSE).await;
            if let Ok(Some(answer)) = self.answers.peek(question).await {
                return answer.into();
            }
        }
    }

    /// Passes an answer on to the replica that waits for it. Returns whether a question of this session waits.
    pub(in crate::front) async fn pass_on(
        &self,
        session: &ClientSession,
        question: &str,
        answer: &[u8],
    ) -> Result<bool, RedisUnavailable> {
        let session_of_question = self.questions.peek(question).await?;
        if session_of_question.as_deref() != session.links.shared.as_deref().map(str::as_bytes)
            || session_of_question.is_none()
        {
            return Ok(false);
        }
        self.answers.put_new_for(question, answer, limits::INPUT_TIME).await
    }
}
