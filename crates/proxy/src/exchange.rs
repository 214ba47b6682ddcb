//! One request on its way through the proxy.

use std::{net::SocketAddr, sync::Arc, time::Instant};

use bytes::Bytes;
use http::{HeaderMap, Method, uri::PathAndQuery};
use skep_mcp::{Id, Refusal};

use crate::{
    answer::{self, Refused},
    budget::Share,
    call::Call,
    identity::Identity,
    layers::Noted,
};

/// A request, read to its end, with what has been found out about it.
pub(crate) struct Exchange {
    /// When it came.
    pub(crate) started: Instant,
    pub(crate) method: Method,
    pub(crate) path: PathAndQuery,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// The memory that the body takes.
    pub(crate) _share: Share,
    /// Who is at the other end of the connection.
    pub(crate) peer: SocketAddr,
    /// The message that the body holds, if it holds one.
    pub(crate) call: Option<Call>,
    /// Who calls, once that is known.
    pub(crate) identity: Option<Arc<Identity>>,
    /// What traces and metrics will tell of it.
    pub(crate) noted: Option<Arc<Noted>>,
}

impl Exchange {
    /// The id that an answer must carry.
    pub(crate) fn id(&self) -> Option<Id<'_>> {
        self.call.as_ref().and_then(Call::id)
    }

    /// The answer that refuses this request.
    pub(crate) fn refused(&self, refusal: &Refusal) -> Refused {
        Box::new(answer::refused(refusal, self.id()))
    }

    /// Puts another message in place of the one that came, and looks at it as at the first.
    pub(crate) fn replace_body(&mut self, body: Bytes) -> Result<(), Refusal> {
        self.call = Some(Call::of(&self.headers, &body)?);
        self.body = body;
        Ok(())
    }
}
