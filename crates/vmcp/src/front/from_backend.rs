//! What a backend sends before, or beside, a response.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use skep_mcp::{Edits, Envelope, Json, Method, Object, Raw};
use uuid::Uuid;

use crate::{
    backend::{Backend, Link, unreserved},
    level::Level,
    session::ClientSession,
};

/// Where a notification since 2026-07-28 names the request that it is for.
pub(super) const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// Whether a notification of a backend is for the client, which wants log messages of this level. What is for the virtual
/// server is done.
pub(super) fn for_client(
    envelope: &Envelope<'_>,
    session: &ClientSession,
    backend: &Backend,
    lowest: Option<Level>,
) -> bool {
    match envelope.method() {
        Some(Method::ToolsListChanged | Method::PromptsListChanged | Method::ResourcesListChanged) => {
            // Clients get it once the lists have been read.
            session.expire_own_lists(&backend.name);
            backend.lists_changed();
            false
        }
        Some(Method::LogMessage) => {
            let level = envelope.params().and_then(|params| params.get("level")).and_then(Raw::as_text);
            let level = level.and_then(|level| Level::named(&level));
            lowest.is_some_and(|lowest| level.is_some_and(|level| level >= lowest))
        }
        // Policies have decided about what it has subscribed to, and about nothing else.
        Some(Method::ResourcesUpdated) => {
            envelope.target().is_some_and(|target| session.is_subscribed(&target.name()))
        }
        // It is about a stream of the virtual server itself.
        Some(Method::SubscriptionsAcknowledged) => false,
        _ => true,
    }
}

/// The notification without what is about the stream to the backend, and with what is about the client's subscription.
pub(super) fn retagged(envelope: &Envelope<'_>, subscription: Option<&str>) -> Option<Bytes> {
    let mut params = Object::default();
    let mut meta = Object::default();
    for (key, value) in envelope.params().and_then(|params| params.entries().ok()).unwrap_or_default() {
        match &*key.decoded() {
            "_meta" => meta = unreserved(Some(value)).ok()?,
            _ => params.put(key.raw().as_str(), value.as_str()),
        }
    }
    if let Some(id) = subscription {
        meta.put(&format!("\"{SUBSCRIPTION_ID}\""), id);
    }
    if !meta.is_empty() {
        params.put("\"_meta\"", &meta.json());
    }
    let method = serde_json::Value::from(envelope.method_name()?);
    Some(format!(r#"{{"jsonrpc":"2.0","method":{method},"params":{}}}"#, params.json()).into())
}

/// The progress with the token of a request that was sent again.
pub(super) fn with_token(envelope: &Envelope<'_>, token: &str) -> Option<Bytes> {
    let sent = envelope.params()?.get("progressToken")?;
    let edits = Edits::of(envelope.bytes()).replace(sent, Json::Raw(Raw::spelled(token)?));
    edits.bytes().ok().map(Bytes::from)
}

/// Whether a request of a backend is for the client: it must have declared that it can answer it.
pub(super) fn for_session(envelope: &Envelope<'_>, session: &ClientSession) -> bool {
    envelope.method().and_then(capability).is_some_and(|name| session.can(name))
}

/// The capability that a client needs for a request of a server.
pub(super) fn capability(method: Method) -> Option<&'static str> {
    match method {
        Method::SamplingCreateMessage => Some("sampling"),
        Method::ElicitationCreate => Some("elicitation"),
        Method::RootsList => Some("roots"),
        _ => None,
    }
}

/// The id of a backend's request for the client, from which any replica knows where the response belongs. No two requests have the
/// same one, whatever ids the backend gives them.
pub(super) fn request_id(backend: &Backend, link: &Link, id: &str, number: Uuid) -> String {
    let [backend, id] = [&*backend.name, id].map(|text| URL_SAFE_NO_PAD.encode(text));
    let number = number.simple();
    match link.stream() {
        // Each replica has another stream, where a backend may use the same ids.
        Some(stream) => format!("{backend}.{id}.{number}.{stream}"),
        None => format!("{backend}.{id}.{number}"),
    }
}

/// The parts of such an id.
pub(super) struct RequestId<'a> {
    pub(super) backend: String,
    /// The id that the backend gave it, as it is spelled.
    pub(super) id: String,
    /// The number of the question.
    pub(super) number: Uuid,
    /// The stream that it came on, of a backend with HTTP+SSE.
    pub(super) stream: Option<&'a str>,
}

impl<'a> RequestId<'a> {
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.splitn(4, '.');
        let mut decoded = || String::from_utf8(URL_SAFE_NO_PAD.decode(parts.next()?).ok()?).ok();
        let (backend, id) = (decoded()?, decoded()?);
        let number = Uuid::try_parse(parts.next()?).ok()?;
        Some(Self { backend, id, number, stream: parts.next() })
    }
}

/// The notification that a backend no longer waits for a response, to the client that has its request.
pub(super) fn withdrawn(envelope: &Envelope<'_>, backend: &Backend, link: &Link) -> Option<Bytes> {
    let id = envelope.params()?.get("requestId")?;
    let number = link.questions.number(id.as_str())?;
    link.questions.end(number);
    let known = request_id(backend, link, id.as_str(), number);
    let edits = Edits::of(envelope.bytes()).replace(id, Json::Text(&known));
    edits.bytes().ok().map(Bytes::from)
}

/// The request with another id.
pub(super) fn readdressed(envelope: &Envelope<'_>, id: &str) -> Option<Bytes> {
    let edits = Edits::of(envelope.bytes()).replace(envelope.id()?.raw(), Json::Text(id));
    edits.bytes().ok().map(Bytes::from)
}
