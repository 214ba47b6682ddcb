//! Messages in the body of a response.

use bytes::Bytes;
use http_body_util::BodyExt;
use skep_gateway::http::Body;
use skep_mcp::{
    Envelope, Message,
    sse::{Decoder, Frame},
};

use super::InspectError;

/// How much of a response is read: of a body, and of each event.
const MESSAGE: usize = 16 << 20;

/// A stream of events.
pub(super) struct Events {
    body: Body,
    decoder: Decoder,
}

impl Events {
    pub(super) fn new(body: Body) -> Self {
        Self { body, decoder: Decoder::new(MESSAGE) }
    }

    /// The type and the data of the next event.
    pub(super) async fn next(&mut self) -> Result<(String, Bytes), InspectError> {
        loop {
            match self.decoder.frame() {
                Ok(Some(Frame::Event(event))) => {
                    let kind = String::from_utf8_lossy(event.kind().unwrap_or(b"message")).into_owned();
                    return Ok((kind, event.data().cloned().unwrap_or_default()));
                }
                Ok(Some(Frame::Comment(_))) => continue,
                Ok(None) => {}
                Err(error) => return Err(InspectError::Invalid(error.to_string())),
            }
            let frame = self.body.frame().await;
            let frame =
                frame.ok_or_else(|| InspectError::Invalid("a stream ended without the response".into()))?;
            let frame = frame.map_err(|error| InspectError::Unreachable(error.to_string()))?;
            if let Ok(data) = frame.into_data() {
                self.decoder.feed(&data);
            }
        }
    }

    /// The response to the request with this id. Other messages are not for the proxy.
    pub(super) async fn response(&mut self, id: u64) -> Result<Bytes, InspectError> {
        let id = id.to_string();
        loop {
            let (_, data) = self.next().await?;
            let is_response = Envelope::parse(&data).is_ok_and(|envelope| {
                matches!(envelope.message(), Message::Response { id: Some(of), .. } if of.raw().as_str() == id)
            });
            if is_response {
                return Ok(data);
            }
        }
    }
}

/// A whole body.
pub(super) async fn whole(mut body: Body) -> Result<Bytes, InspectError> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| InspectError::Unreachable(error.to_string()))?;
        bytes.extend_from_slice(&frame.into_data().unwrap_or_default());
        if bytes.len() > MESSAGE {
            return Err(InspectError::Invalid(format!("a response is larger than {MESSAGE} bytes")));
        }
    }
    Ok(bytes.into())
}
