//! The message of a request.

use bytes::Bytes;
use http::HeaderMap;
use skep_mcp::{
    Envelope, Era, Fault, Header, Headers, Id, Message, Method, Refusal, era,
    header::{MCP_METHOD, MCP_NAME, MCP_PROTOCOL_VERSION},
    mirrored,
};

/// The message of a request, parsed once. Its pieces are slices of the body.
#[derive(Clone, Debug)]
pub struct Call {
    /// Its method. A response has none.
    pub method: Option<Method>,
    /// The name of the method, also where the method is unknown.
    pub method_name: String,
    /// What it names: a tool, a prompt, a resource.
    pub target: Option<String>,
    /// Its id, as it is spelt. A notification has none.
    pub id: Option<Bytes>,
    /// The era of its revision.
    pub era: Era,
    /// Whether it has headers that mirror it.
    has_headers: bool,
}

impl Call {
    /// Parses a message, and checks the headers that mirror it.
    pub fn of(headers: &HeaderMap, body: &Bytes) -> Result<Self, Refusal> {
        let envelope = Envelope::parse(body).map_err(Refusal::Message)?;
        let is_request = matches!(envelope.message(), Message::Request { .. });
        let said = said(headers);
        let era = if is_request { era(&said, &envelope).map_err(Refusal::Revision)? } else { Era::Legacy };
        if era == Era::Modern {
            mirrored(&said, &envelope).map_err(Refusal::Revision)?;
        }
        Ok(Self::new(&envelope, body, era, true))
    }

    /// Parses a message of the HTTP+SSE transport of 2024, which has no such headers, and in which every message is in a
    /// session.
    pub fn of_2024(body: &Bytes) -> Result<Self, Refusal> {
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

    /// Parses another message in the place of this one, in the same way.
    pub fn replaced(&self, headers: &HeaderMap, body: &Bytes) -> Result<Self, Refusal> {
        if self.has_headers { Self::of(headers, body) } else { Self::of_2024(body) }
    }

    /// The id, for a response.
    pub fn id(&self) -> Option<Id<'_>> {
        self.id.as_deref().and_then(Id::spelled)
    }

    /// Whether the message starts a session.
    pub fn is_initialize(&self) -> bool {
        self.method == Some(Method::Initialize)
    }
}

/// The arguments of a call, for policies.
pub fn arguments(body: &[u8]) -> Result<Option<serde_json::Value>, Fault> {
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
