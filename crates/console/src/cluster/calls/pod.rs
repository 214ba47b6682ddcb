//! The calls of one pod.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full};
use jiff::Timestamp;
use skep_config::calls;
use skep_gateway::{
    http::{BodyError, events},
    middleware::{CALLS_EVENT, CONNECTIONS_EVENT, COUNTS_EVENT, Call, CallLog, Counts},
    outbound,
};
use skep_mcp::sse::{Decoder, Event, Frame};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::debug;

use super::endpoints::Endpoint;
use crate::{Key, cluster::token::Tokens, limits};

/// A pod whose calls are read.
pub(super) struct Pod {
    endpoint: Endpoint,
    log: Arc<CallLog>,
    tokens: Arc<Tokens>,
    client: Arc<outbound::Client>,
    /// The last call that was read. A new connection begins with calls that are known already.
    last: Option<(u64, Timestamp)>,
}

/// What the pod has reported is forgotten when it is not read any more.
impl Drop for Pod {
    fn drop(&mut self) {
        self.forget();
    }
}

impl Pod {
    pub(super) fn new(
        endpoint: Endpoint,
        log: Arc<CallLog>,
        tokens: Arc<Tokens>,
        client: Arc<outbound::Client>,
    ) -> Self {
        Self { endpoint, log, tokens, client, last: None }
    }

    /// Reads its calls, for ever. A pod without such a stream, of an older version for example, is tried from time to time.
    pub(super) async fn read(mut self) {
        let mut pause = limits::CALLS_RETRY.0;
        loop {
            let start = Instant::now();
            let read = self.read_stream().await;
            if start.elapsed() > limits::CALLS_RETRY.1 {
                pause = limits::CALLS_RETRY.0;
                // It has ended with its token.
                if read.is_ok() {
                    continue;
                }
            }
            let error = read.err().map(|error| error.to_string()).unwrap_or_default();
            debug!(address = %self.endpoint.address, error, "a stream of calls has ended");
            self.forget();
            sleep(pause).await;
            pause = limits::CALLS_RETRY.1.min(pause * 2);
        }
    }

    fn forget(&self) {
        let address = self.endpoint.address.to_string();
        self.log.set_counts(&address, None);
        self.log.set_connections(&address, None);
    }

    async fn read_stream(&mut self) -> Result<(), BodyError> {
        let Key { kind, namespace, name } = &self.endpoint.key;
        let token = self.tokens.request(calls::audience(kind, namespace, name)).await?;
        let mut authorization = HeaderValue::from_str(&format!("Bearer {token}"))?;
        authorization.set_sensitive(true);
        let uri: Uri = format!("http://{}{}", self.endpoint.address, calls::PATH).parse()?;
        let sent = self.client.send(&uri, |uri| {
            let mut request = Request::new(Full::<Bytes>::default());
            *request.uri_mut() = uri;
            request.headers_mut().insert(header::AUTHORIZATION, authorization.clone());
            request
        });
        let response = timeout(limits::CALLS_SILENCE, sent).await??;
        if response.status() != StatusCode::OK || !events::is_stream(response.headers()) {
            return Err(format!("it responds with {}", response.status()).into());
        }
        let mut body = response.into_body();
        let mut decoder = Decoder::new(limits::CALLS_EVENT);
        while let Some(frame) = timeout(limits::CALLS_SILENCE, body.frame()).await? {
            let Ok(data) = frame?.into_data() else { continue };
            decoder.feed(&data);
            let mut next = Instant::now();
            while let Some(frame) = decoder.frame()? {
                if let Frame::Event(event) = frame {
                    self.take(&event)?;
                }
                next += limits::CALLS_PACE;
            }
            sleep_until(next.min(Instant::now() + Duration::from_secs(60))).await;
        }
        Ok(())
    }

    fn take(&mut self, event: &Event) -> Result<(), serde_json::Error> {
        let data = event.data().map(|data| &**data).unwrap_or_default();
        match event.kind() {
            Some(kind) if kind == CALLS_EVENT.as_bytes() => self.add(serde_json::from_slice(data)?),
            Some(kind) if kind == COUNTS_EVENT.as_bytes() => {
                let counts: Counts = serde_json::from_slice(data)?;
                self.log.set_counts(&self.endpoint.address.to_string(), Some(counts));
            }
            Some(kind) if kind == CONNECTIONS_EVENT.as_bytes() => {
                let connections = serde_json::from_slice(data)?;
                self.log.set_connections(&self.endpoint.address.to_string(), Some(connections));
            }
            _ => {}
        }
        Ok(())
    }

    fn add(&mut self, calls: Vec<Call>) {
        let is_last = |call: &Call| Some((call.id, call.time)) == self.last;
        let known = calls.iter().position(is_last).map_or(0, |place| place + 1);
        self.last = calls.last().map(|call| (call.id, call.time)).or(self.last);
        calls.into_iter().skip(known).for_each(|call| self.log.add(call));
    }
}
