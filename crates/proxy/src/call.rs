//! What is known of the message in a request.

use bytes::Bytes;
use http::HeaderMap;
use skep_mcp::{
    Envelope, Era, Fault, Header, Headers, Id, Message, Method, Refusal, era,
    header::{MCP_METHOD, MCP_NAME, MCP_PROTOCOL_VERSION},
    mirrored,
};

/// A message that has been looked at. The pieces are slices of the body that it came in.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// What it asks for. A response asks for nothing.
    pub(crate) method: Option<Method>,
    /// What it asks for, in the words of the message.
    pub(crate) method_name: String,
    /// What it names: a tool, a prompt, a resource.
    pub(crate) target: Option<String>,
    /// Its id, as it is spelt. A notification has none.
    pub(crate) id: Option<Bytes>,
    /// Which way of speaking it follows.
    pub(crate) era: Era,
    /// Whether headers go with it, which must say the same.
    has_headers: bool,
}

impl Call {
    /// Looks at a message and at the headers that must say the same, before anybody decides anything.
    pub(crate) fn of(headers: &HeaderMap, body: &Bytes) -> Result<Self, Refusal> {
        let envelope = Envelope::parse(body).map_err(Refusal::Message)?;
        let is_request = matches!(envelope.message(), Message::Request { .. });
        let said = said(headers);
        let era = if is_request { era(&said, &envelope).map_err(Refusal::Revision)? } else { Era::Legacy };
        if era == Era::Modern {
            mirrored(&said, &envelope).map_err(Refusal::Revision)?;
        }
        Ok(Self::new(&envelope, body, era, true))
    }

    /// Looks at a message of the HTTP+SSE transport of 2024, which has no such headers, and in which all is in a session.
    pub(crate) fn of_2024(body: &Bytes) -> Result<Self, Refusal> {
        let envelope = Envelope::parse(body).map_err(Refusal::Message)?;
        Ok(Self::new(&envelope, body, Era::Legacy, false))
    }

    fn new(envelope: &Envelope<'_>, body: &Bytes, era: Era, has_headers: bool) -> Self {
        Self {
            method: envelope.method(),
            method_name: envelope.method_name().unwrap_or_default().into_owned(),
            target: envelope.target().map(|target| target.name().into_owned()),
            id: envelope.id().map(|id| body.slice(id.raw().range())),
            era,
            has_headers,
        }
    }

    /// Looks at another message in the place of this one, in the same way.
    pub(crate) fn replaced(&self, headers: &HeaderMap, body: &Bytes) -> Result<Self, Refusal> {
        if self.has_headers { Self::of(headers, body) } else { Self::of_2024(body) }
    }

    /// The id, for an answer.
    pub(crate) fn id(&self) -> Option<Id<'_>> {
        self.id.as_deref().and_then(Id::spelled)
    }

    /// Whether the message begins a session.
    pub(crate) fn is_initialize(&self) -> bool {
        self.method == Some(Method::Initialize)
    }
}

/// The arguments of a call, for those who decide about it.
pub(crate) fn arguments(body: &[u8]) -> Result<Option<serde_json::Value>, Fault> {
    Envelope::parse(body)?.arguments_to_judge()
}

fn said(headers: &HeaderMap) -> Headers<'_> {
    let header = |name| Header::of(headers.get_all(name).iter().map(http::HeaderValue::as_bytes));
    Headers {
        protocol_version: header(MCP_PROTOCOL_VERSION),
        method: header(MCP_METHOD),
        name: header(MCP_NAME),
    }
}
