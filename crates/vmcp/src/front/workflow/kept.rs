//! Runs of workflows that wait for an answer, kept in Redis, where all replicas see them.
//!
//! Of all that could go on with a run, the one that takes its record does. They hold arguments and results of tools, so they are
//! encrypted where the replicas share a secret.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use skep_auth::Seal;
use skep_gateway::sessions::{Holder, Records, RedisUnavailable};
use skep_workflow::Checkpoint;
use tokio::time::{Instant, sleep};
use tracing::{debug, warn};
use uuid::Uuid;

use super::{quota::Quota, sealed_records::SealedRecords};
use crate::{
    backend::Claim,
    front::own::{NoTree, Trees},
    limits,
    session::ClientSession,
};

/// All of them.
pub(crate) struct KeptRuns {
    runs: SealedRecords,
    /// The sessions of older clients that have a question, of a workflow or of a backend, by its id.
    questions: SealedRecords,
    /// Answers that came to another replica than the one that waits, or who sends them, by the ids of their questions.
    answers: SealedRecords,
    quota: Quota,
}

/// What has become of an answer that is for another replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::front) enum PassedOn {
    /// The replica that waits gets it.
    Yes,
    /// The question has an answer.
    Answered,
    /// No question of this session waits for it.
    NoQuestion,
    TooLarge,
}

/// The start of a record in place of an answer: a replica is sending it to the backend.
const SENDING: &str = "sending ";
/// A record in place of an answer: the backend has it, or no longer waits for it.
const DELIVERED: &str = "delivered";

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

/// The part of a kept run that says whose it is.
#[derive(Deserialize)]
struct Head {
    call: KeptCall,
    until: Timestamp,
}

/// Why a kept run could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoRun {
    /// Redis does not respond.
    Unavailable,
    /// There is no memory for its tree.
    NoMemory,
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
    /// Which call it was. Records of older replicas do not have it.
    #[serde(default)]
    pub(super) digest: Option<String>,
    /// The id of its entry in the audit log.
    pub(super) audit_id: String,
}

impl KeptCall {
    /// Whether it is a call of this client.
    pub(super) fn is_of(&self, session: &ClientSession) -> bool {
        self.owner == session.owner.to_text() && self.session.as_deref() == session.links.shared()
    }
}

impl KeptRuns {
    pub(crate) fn new(sessions: &Records, seal: &Arc<Seal>) -> Self {
        let records = |kind| SealedRecords::new(sessions, kind, seal);
        Self {
            runs: records("workflow"),
            questions: records("question"),
            answers: records("answer"),
            quota: Quota::default(),
        }
    }

    /// Keeps a run of this caller. Returns whether it is kept: if not, it goes on at this replica only.
    pub(super) async fn keep(&self, state: &str, run: &KeptRun, time: Duration, holder: Holder) -> bool {
        let text = serde_json::to_string(run).unwrap_or_default();
        if text.is_empty() || text.len() > limits::KEPT_RUN {
            warn!(tool = run.call.tool, bytes = text.len(), "a workflow that waits is too large to be kept");
            return false;
        }
        // Longer than it may be answered, so that the replica that waits can tell an expired run from one that another has.
        let life = time + limits::KEPT_RUN_MARGIN;
        if !self.quota.add(holder, state, life) {
            debug!(tool = run.call.tool, "too many workflows of this caller wait for this one to be kept");
            return false;
        }
        let is_kept = match (&run.question, &run.call.session) {
            (Some(question), Some(session)) => self.questions.put(question, session, life).await,
            _ => true,
        };
        let is_kept = is_kept && self.runs.put(state, &text, life).await;
        if !is_kept {
            self.quota.remove(state);
        }
        is_kept
    }

    /// Returns the run of this client that is kept under this state, if it can still be answered.
    pub(super) async fn find(
        &self,
        state: &str,
        session: &ClientSession,
        trees: &Trees,
    ) -> Result<Option<KeptRun>, NoRun> {
        let text = self.runs.find(state).await.map_err(|_| NoRun::Unavailable)?;
        // The tree is built only for its client.
        let is_open = |text: &String| {
            let head = serde_json::from_str::<Head>(text);
            head.is_ok_and(|head| head.call.is_of(session) && Timestamp::now() < head.until)
        };
        match text.filter(is_open).map(|text| trees.tree(&text)).transpose() {
            Ok(run) => Ok(run),
            Err(NoTree::Malformed) => Ok(None),
            Err(NoTree::TooLarge) => Err(NoRun::NoMemory),
        }
    }

    /// Takes a run, and returns whether nobody else has: only then the caller goes on with it. As others would not, this is tried for
    /// a while.
    pub(super) async fn take(&self, state: &str) -> Result<bool, RedisUnavailable> {
        let (taker, until) = (Uuid::new_v4().to_string(), Instant::now() + limits::TAKE_TIME);
        let is_taken = loop {
            match self.runs.take(state, &taker).await {
                Ok(is_taken) => break is_taken,
                Err(error) if Instant::now() > until => return Err(error),
                Err(_) => sleep(limits::TAKE_PAUSE).await,
            }
        };
        if is_taken {
            self.runs.remove(state).await;
        }
        self.quota.remove(state);
        Ok(is_taken)
    }

    /// Lets all replicas know that a backend has asked the client of this session something. Returns whether they do.
    pub(in crate::front) async fn ask(&self, question: &str, session: &str) -> bool {
        self.questions.put(question, session, limits::INPUT_TIME).await
    }

    /// Closes a question, which has its answer or expects none any more. For a while, replicas still recognize late answers.
    pub(in crate::front) async fn close_question(&self, question: &str) {
        self.questions.remove(question).await;
        self.answers.retire(question, DELIVERED, limits::ANSWERED_TIME).await;
    }

    /// Waits for an answer that another replica receives. None if that replica has sent it to the backend.
    pub(in crate::front) async fn answer(&self, question: &str) -> Option<Bytes> {
        loop {
            sleep(limits::ANSWER_PAUSE).await;
            match self.answers.find(question).await {
                Ok(Some(record)) if record == DELIVERED => return None,
                Ok(Some(record)) if !record.starts_with(SENDING) => return Some(record.into()),
                _ => {}
            }
        }
    }

    /// Claims the answer to a question of a backend, for at most this long. A claim ends with [`deliver`](Self::deliver) or
    /// [`release`](Self::release).
    pub(in crate::front) async fn claim(
        &self,
        question: &str,
        life: Duration,
    ) -> Result<Claim, RedisUnavailable> {
        if self.questions.find(question).await?.is_none() {
            let is_answered = self.answers.find(question).await?.is_some();
            return Ok(if is_answered { Claim::Refused } else { Claim::NoQuestion });
        }
        // No two claims are the same record.
        let record = format!("{SENDING}{}", Uuid::new_v4());
        let is_first = self.answers.put_new(question, &record, life).await?;
        Ok(if is_first { Claim::Granted } else { Claim::Refused })
    }

    /// Records that the backend has the answer.
    pub(in crate::front) async fn deliver(&self, question: &str) {
        self.answers.put(question, DELIVERED, limits::INPUT_TIME).await;
    }

    /// Gives up a claim: the answer may be sent again, by any replica.
    pub(in crate::front) async fn release(&self, question: &str) {
        self.answers.remove(question).await;
    }

    /// Passes an answer on to the replica that waits for it, if a question of this session does.
    pub(in crate::front) async fn pass_on(
        &self,
        session: &ClientSession,
        question: &str,
        answer: &[u8],
    ) -> Result<PassedOn, RedisUnavailable> {
        let session_of_question = self.questions.find(question).await?;
        if session_of_question.is_none() && self.answers.find(question).await?.is_some() {
            return Ok(PassedOn::Answered);
        }
        let Some(answer) = std::str::from_utf8(answer).ok().filter(|_| {
            session_of_question.is_some() && session_of_question.as_deref() == session.links.shared()
        }) else {
            return Ok(PassedOn::NoQuestion);
        };
        if answer.len() > limits::KEPT_RUN {
            return Ok(PassedOn::TooLarge);
        }
        let is_first = self.answers.put_new(question, answer, limits::INPUT_TIME).await?;
        Ok(if is_first { PassedOn::Yes } else { PassedOn::Answered })
    }
}
