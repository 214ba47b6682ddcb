//! The message of a request.

use bytes::Bytes;
use http::{HeaderMap, HeaderName};
use skep_mcp::{
    Envelope, Era, Header, Headers, Id, Message, Method, OwnedEnvelope, Rejection, check_mirrors, era,
};

use crate::headers::{MCP_METHOD, MCP_NAME, MCP_PROTOCOL_VERSION};

/// The message of a request, parsed once. Its pieces are slices of the body.
#[derive(Clone, Debug)]
pub struct ParsedMessage {
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
    /// In a box: requests are moved from future to future.
    parsed: Box<OwnedEnvelope>,
}

impl ParsedMessage {
    /// Parses a message, and checks the headers that mirror it.
    pub fn of(headers: &HeaderMap, body: &Bytes) -> Result<Self, Rejection> {
        Self::with_headers(headers, &Envelope::parse(body).map_err(Rejection::Message)?, body)
    }

    /// The message of this envelope, which was parsed from the body.
    pub(super) fn with_headers(
        headers: &HeaderMap,
        envelope: &Envelope<'_>,
        body: &Bytes,
    ) -> Result<Self, Rejection> {
        let is_request = matches!(envelope.message(), Message::Request { .. });
        let mirrors = mirrors(headers);
        let era = match era(&mirrors, envelope).map_err(Rejection::Revision)? {
            era if is_request => era,
            _ => Era::Legacy,
        };
        // What is in front, or behind, may decide by them, whatever the revision.
        check_mirrors(&mirrors, envelope, era).map_err(Rejection::Revision)?;
        Self::new(envelope, body, era, true)
    }

    /// Parses a message of the HTTP+SSE transport of 2024, which has no such headers, and in which every message is in a
    /// session.
    pub fn of_2024(body: &Bytes) -> Result<Self, Rejection> {
        Self::new(&Envelope::parse(body).map_err(Rejection::Message)?, body, Era::Legacy, false)
    }

    fn new(envelope: &Envelope<'_>, body: &Bytes, era: Era, has_headers: bool) -> Result<Self, Rejection> {
        Ok(Self {
            method: envelope.method(),
            method_name: envelope.method_name().unwrap_or_default().into_owned(),
            target: envelope.target().map(|target| target.name().into_owned()),
            id: envelope.id().map(|id| body.slice(id.raw().range())),
            era,
            has_headers,
            parsed: Box::new(OwnedEnvelope::of(envelope, body).map_err(Rejection::Message)?),
        })
    }

    /// The envelope of the message, which is not parsed again.
    pub fn envelope(&self) -> Result<Envelope<'_>, Rejection> {
        self.parsed.envelope().map_err(Rejection::Message)
    }

    /// Another message in the place of this one, with the same headers.
    pub(super) fn replaced(
        &self,
        headers: &HeaderMap,
        envelope: &Envelope<'_>,
        body: &Bytes,
    ) -> Result<Self, Rejection> {
        if self.has_headers {
            Self::with_headers(headers, envelope, body)
        } else {
            Self::new(envelope, body, Era::Legacy, false)
        }
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

/// The headers that mirror a message.
fn mirrors(headers: &HeaderMap) -> Headers<'_> {
    let header =
        |name: &HeaderName| Header::of(headers.get_all(name).iter().map(http::HeaderValue::as_bytes));
    Headers {
        protocol_version: header(&MCP_PROTOCOL_VERSION),
        method: header(&MCP_METHOD),
        name: header(&MCP_NAME),
    }
}
