//! Streams of a backend that end before the response. One whose events have ids is continued where it has ended: a backend may end
//! it on purpose, to be asked again later (MCP 2025-11-25, transports, resumability).

use std::time::Duration;

use skep_gateway::{body::CountedBytes, http::events};
use skep_mcp::Era;
use tokio::time::sleep;
use tracing::debug;

use super::{
    Backend, BackendError, Caller, Link, Messages,
    messages::{Events, Head},
};
use crate::limits;

impl Backend {
    /// The next message of a request. The backend may send nothing at all for this long. It may be dropped and called again.
    pub(crate) async fn next(
        &self,
        link: &Link,
        caller: &Caller,
        messages: &mut Messages,
        silence: Duration,
    ) -> Result<CountedBytes, BackendError> {
        loop {
            match messages.next(silence).await {
                Ok(Some(message)) => return Ok(message),
                Ok(None) | Err(BackendError::Broken) => {}
                Err(error) => return Err(error),
            }
            let Messages::Events(events) = messages else { return Err(BackendError::Broken) };
            if !self.continue_stream(link, caller, events).await {
                return Err(BackendError::Broken);
            }
        }
    }

    /// Continues a stream that has ended. Returns whether there may be more of it.
    async fn continue_stream(&self, link: &Link, caller: &Caller, events: &mut Events) -> bool {
        let place = events.place().clone();
        if place.id.is_none()
            || link.revision.era() == Era::Modern
            || events.attempts >= limits::RESUME_ATTEMPTS
        {
            return false;
        }
        sleep(place.pause.unwrap_or(limits::RESUME_PAUSE).max(limits::RESUME_LEAST_PAUSE)).await;
        events.attempts += 1;
        match self.open_stream(link, caller, &place).await {
            Ok(Head { response, .. }) if response.status().is_success() => {
                let is_stream = events::is_stream(response.headers());
                if is_stream {
                    events.go_on_with(response.into_body());
                }
                is_stream
            }
            // It may be about to start again.
            Ok(Head { response, .. }) => response.status().is_server_error(),
            Err(error) => {
                debug!(backend = &*self.name, %error, "failed to continue a stream");
                true
            }
        }
    }
}
