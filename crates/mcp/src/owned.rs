//! A message that owns its bytes, so that it is parsed once.

use bytes::Bytes;

use crate::{
    Envelope, Fault, Id, Message, Method, Outcome,
    json::Raw,
    params::{META_FIELDS, PARAM_FIELDS, Params},
};

/// A message that was parsed once, with the places of what its envelope has.
#[derive(Clone, Debug)]
pub struct OwnedEnvelope {
    bytes: Bytes,
    kind: Kind,
    method: Option<Method>,
    id: Span,
    /// The method, the result or the error, by the kind of message.
    subject: Span,
    params: Span,
    fields: [Span; PARAM_FIELDS],
    meta: [Span; META_FIELDS],
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Request,
    Notification,
    Result,
    Error,
}

/// Where a value is. No value is empty, so an empty span is none.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    start: u32,
    end: u32,
}

impl Span {
    fn of(raw: Option<Raw<'_>>) -> Self {
        // `of` takes no message in which a place is larger.
        let place = |place: usize| u32::try_from(place).unwrap_or_default();
        raw.map(|raw| raw.range())
            .map_or_else(Self::default, |range| Self { start: place(range.start), end: place(range.end) })
    }

    fn raw(self, text: &str) -> Option<Raw<'_>> {
        let value = text.get(self.start as usize..self.end as usize)?;
        (!value.is_empty()).then(|| Raw::new(value, self.start as usize))
    }
}

impl OwnedEnvelope {
    /// The same as an envelope that was parsed from these bytes.
    pub fn of(envelope: &Envelope<'_>, bytes: &Bytes) -> Result<Self, Fault> {
        if u32::try_from(bytes.len()).is_err() {
            return Err(Fault::NotJson { at: 0, expected: "a message of less than 4 GiB" });
        }
        let (kind, id, subject) = match envelope.message() {
            Message::Request { id, method } => (Kind::Request, Some(id), method.raw()),
            Message::Notification { method } => (Kind::Notification, None, method.raw()),
            Message::Response { id, outcome: Outcome::Result(result) } => (Kind::Result, id, result),
            Message::Response { id, outcome: Outcome::Error(error) } => (Kind::Error, id, error),
        };
        let params = envelope.all_params();
        Ok(Self {
            kind,
            method: envelope.method(),
            id: Span::of(id.map(|id| id.raw())),
            subject: Span::of(Some(subject)),
            params: Span::of(params.whole()),
            fields: params.values().map(Span::of),
            meta: params.meta().values().map(Span::of),
            bytes: bytes.clone(),
        })
    }

    /// The bytes as they were received.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The envelope, which is put together from its pieces and not parsed again.
    pub fn envelope(&self) -> Result<Envelope<'_>, Fault> {
        // Both were checked when the message was parsed.
        let text = std::str::from_utf8(&self.bytes).map_err(|_| Fault::Unclear)?;
        let subject = self.subject.raw(text).ok_or(Fault::Unclear)?;
        let id = self.id.raw(text).map(Id::new).transpose()?;
        let message = match self.kind {
            Kind::Request => Message::Request { id: id.ok_or(Fault::Unclear)?, method: subject.text()? },
            Kind::Notification => Message::Notification { method: subject.text()? },
            Kind::Result => Message::Response { id, outcome: Outcome::Result(subject) },
            Kind::Error => Message::Response { id, outcome: Outcome::Error(subject) },
        };
        let params = Params::checked_before(
            self.params.raw(text),
            self.fields.map(|span| span.raw(text)),
            self.meta.map(|span| span.raw(text)),
        );
        Ok(Envelope::checked_before(&self.bytes, message, self.method, params))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(envelope: &Envelope<'_>) -> String {
        let (meta, target) = (envelope.meta(), envelope.target().map(|target| target.name().into_owned()));
        let pieces = (envelope.message(), envelope.method(), envelope.params(), envelope.arguments(), target);
        let meta = (
            meta.progress_token(),
            meta.protocol_version(),
            meta.client_info(),
            meta.client_capabilities(),
            meta.trace_parent().map(|text| text.decoded().into_owned()),
            meta.trace_state().map(|text| text.decoded().into_owned()),
        );
        let rest = (envelope.subscription_id(), envelope.requested_version(), envelope.method_name());
        format!("{pieces:?} {meta:?} {rest:?} {:?}", envelope.unambiguous_arguments())
    }

    #[test]
    fn an_owned_message_equals_the_one_that_was_parsed() {
        for message in [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"re\u0061d","arguments":{"n":1e2},"_meta":{"progressToken":"ü","traceparent":"00-1","tracestate":"a=b"}}}"#,
            r#" { "id" : "\u0061" , "method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"x"}},"jsonrpc":"2.0" } "#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#,
            r#"{"jsonrpc":"2.0","method":"ping","id":-0,"params":null}"#,
            r#"{"jsonrpc":"2.0","id":2,"result":{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"}}}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}"#,
            r#"{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"file:///ä","Uri2":1}}"#,
        ] {
            let bytes = Bytes::from(message);
            let parsed = Envelope::parse(&bytes).unwrap();
            let owned = OwnedEnvelope::of(&parsed, &bytes).unwrap();
            assert_eq!(described(&owned.envelope().unwrap()), described(&parsed), "{message}");
            assert_eq!(owned.bytes(), &bytes);
        }
    }
}
