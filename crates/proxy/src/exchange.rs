//! One request on its way through the proxy.

use std::{net::SocketAddr, sync::Arc, time::Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header, uri::PathAndQuery};
use skep_mcp::{
    Envelope, Era, Id, Refusal,
    header::{MCP_METHOD, MCP_NAME, MCP_SESSION_ID, encoded_name},
};

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
    /// Whether a middleware has changed the body: then the client may not see it.
    pub(crate) is_changed: bool,
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

    /// The request that starts this request's session again, with the same headers from the same caller. Its caller is not
    /// known yet, as for every request that has not passed through the middlewares.
    pub(crate) fn initialize(&self, body: Bytes) -> Result<Self, Refusal> {
        let mut headers = self.headers.clone();
        for name in [MCP_SESSION_ID, MCP_METHOD, MCP_NAME] {
            headers.remove(name);
        }
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        let call = Call::of(&headers, &body)?;
        if !call.is_initialize() || call.id.is_none() || call.era != Era::Legacy {
            return Err(Refusal::Session);
        }
        Ok(Self {
            started: Instant::now(),
            method: Method::POST,
            path: self.path.clone(),
            headers,
            body,
            is_changed: false,
            _share: self._share.another(),
            peer: self.peer,
            call: Some(call),
            identity: None,
            noted: None,
        })
    }

    /// Puts another message in place of the one that came, and looks at it as at the first.
    pub(crate) fn replace_body(&mut self, body: Bytes) -> Result<(), Refusal> {
        self.call = Some(match &self.call {
            Some(call) => call.replaced(&self.headers, &body)?,
            None => Call::of(&self.headers, &body)?,
        });
        self.body = body;
        self.is_changed = true;
        Ok(())
    }

    /// The same for a message that may name something else: the header that names it says what the body says. If it is
    /// refused, all stays as it was.
    pub(crate) fn replace_message(&mut self, body: Bytes) -> Result<(), Refusal> {
        let said = self.headers.get(MCP_NAME).cloned();
        if said.is_some()
            && let Some(target) = Envelope::parse(&body).map_err(Refusal::Message)?.target()
        {
            let name = HeaderValue::from_str(&encoded_name(&target.name())).map_err(|_| Refusal::Internal)?;
            self.headers.insert(MCP_NAME, name);
        }
        self.replace_body(body).inspect_err(|_| {
            if let Some(said) = said {
                self.headers.insert(MCP_NAME, said);
            }
        })
    }
}
