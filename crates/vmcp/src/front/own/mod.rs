//! Tools of the virtual server itself: a call that makes other calls.
//!
//! Each runs in a task of its own, which ends with the call. What it sends to the client passes through a queue: the response
//! is written from it, as that of a backend is from its messages.

mod calls;
mod input_time;
mod response;
mod trees;

use std::sync::Arc;

use bytes::Bytes;
use skep_gateway::{body::CountedBytes, identity::Holder};
use skep_mcp::{Envelope, Kind, Method, Raw, SessionId};
use tokio::sync::{mpsc, oneshot};

use super::{
    AbortOnDrop, ClientRequest, Front,
    answer::{Recipient, tool_error, translated},
    rpc::RpcError,
    workflow::Keeper,
};
use crate::{backend::Caller, catalog::Catalog, limits};
pub(super) use calls::{ANSWER, Calls, Elicitation, answer_of};
pub(super) use response::OwnCall;
pub(super) use trees::{NoTree, Trees};

/// What a tool sends to its client.
enum Sent {
    /// A notification or request, before the response.
    Message(CountedBytes),
    /// A question for the user of an older client, and by what its stream can go on elsewhere, if it can.
    Question(Bytes, Option<SessionId>),
    /// It needs input of a client of 2026-07-28.
    NeedsInput(NeededInput),
    /// The result, as JSON.
    Result(CountedBytes),
    /// The error in place of a result.
    Error(RpcError),
}

/// Input that a call needs.
pub(super) struct NeededInput {
    /// The method and parameters of the request, as JSON.
    request: Box<str>,
    /// What the client sends with it.
    state: SessionId,
    /// Where the result goes, as JSON.
    reply: oneshot::Sender<String>,
}

/// What the latest request for a call has: a client sends its request again with its input, maybe with a new token.
struct CallingClient {
    caller: Caller,
    /// What the client wants progress for, as it is spelled.
    progress: Option<Box<str>>,
}

impl CallingClient {
    fn of(request: &ClientRequest<'_>) -> Self {
        let progress = progress_token(&request.envelope).map(Into::into);
        Self { caller: request.caller.clone(), progress }
    }
}

impl Front {
    /// Starts a tool that makes calls, and returns its result as JSON. `keeper` keeps it while it waits.
    pub(super) fn start_own<R>(
        self: &Arc<Self>,
        request: &ClientRequest<'_>,
        catalog: Arc<Catalog>,
        keeper: Option<Arc<Keeper>>,
        run: impl FnOnce(Calls) -> R,
    ) -> Result<OwnCall, RpcError>
    where
        R: Future<Output = String> + Send + 'static,
    {
        let (sender, sent) = mpsc::channel(limits::STREAM_QUEUE);
        let Ok(calls) = Calls::new(self.clone(), request, catalog, sender.clone()) else {
            return Err(RpcError::internal("the call could not be started"));
        };
        let client = calls.client.clone();
        let (server, era, running) = (self.name.clone(), request.era, run(calls));
        let front = self.clone();
        let holder = request.exchange.holder();
        let task = tokio::spawn(async move {
            let result = running.await;
            let translated = Raw::spelled(&result).and_then(|result| {
                translated(result, Method::ToolsCall, era, Recipient::Client, &server).ok()
            });
            let result = front.counted(translated.unwrap_or(result), holder);
            sender.send(Sent::Result(result)).await.ok();
        });
        let task = AbortOnDrop(task.abort_handle());
        Ok(OwnCall::new(self, request, sent, client, keeper, task))
    }
}

impl Front {
    /// The result of a tool, as JSON, which counts against the budget of bodies until the client has read it.
    fn counted(&self, result: String, holder: Holder) -> CountedBytes {
        let mut share = self.budget.part_of(Some(holder)).share();
        match share.grow(result.len()) {
            Ok(()) => CountedBytes::new(result.into(), share),
            Err(_) => {
                Bytes::from(tool_error("there is no memory for the result now: try again later")).into()
            }
        }
    }
}

/// What the client wants progress for, as it is spelled.
pub(super) fn progress_token<'a>(envelope: &Envelope<'a>) -> Option<&'a str> {
    let meta = envelope.params().and_then(|params| params.get("_meta"))?;
    meta.get("progressToken").map(|token| token.as_str())
}

/// The arguments of a call, as JSON.
pub(super) fn arguments<'a>(envelope: &Envelope<'a>) -> &'a str {
    let arguments = envelope.arguments().filter(|arguments| arguments.kind() == Kind::Object);
    arguments.map_or("{}", |arguments| arguments.as_str())
}
