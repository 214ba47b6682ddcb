//! Bodies of responses.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::stream::BoxStream;
use http::StatusCode;
use http_body::{Body as HttpBody, Frame, SizeHint};

use crate::outbound::UpstreamBody;

/// Why a body ended too early.
pub type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a response.
pub enum Body {
    /// All of it is here.
    Whole(Bytes),
    /// It streams from the server unchanged.
    Upstream(UpstreamBody),
    /// It is made piece by piece.
    Made(BoxStream<'static, Result<Bytes, BodyError>>),
    /// Its end is observed.
    Observed(Box<Observed>),
}

/// How a response ended.
pub struct Ended {
    /// Its status.
    pub status: StatusCode,
    /// How much of it was sent.
    pub bytes: u64,
    /// Its first bytes.
    pub prefix: Vec<u8>,
}

/// Observes how a response ends.
pub trait Observer: Send + 'static {
    /// How much of its start is to be recorded.
    fn prefix(&self) -> usize;

    /// It has ended: all of it was sent, or the client has disconnected.
    fn ended(self: Box<Self>, end: Ended);
}

/// A body with its observers.
pub struct Observed {
    inner: Body,
    observers: Vec<Box<dyn Observer>>,
    wanted: usize,
    end: Option<Ended>,
}

impl Body {
    /// The same body with these observers.
    pub fn observed(self, status: StatusCode, observers: Vec<Box<dyn Observer>>) -> Self {
        if observers.is_empty() {
            return self;
        }
        let wanted = observers.iter().map(|observer| observer.prefix()).max().unwrap_or_default();
        let end = Some(Ended { status, bytes: 0, prefix: Vec::new() });
        Self::Observed(Box::new(Observed { inner: self, observers, wanted, end }))
    }
}

impl Observed {
    fn record(&mut self, data: &[u8]) {
        let Some(end) = &mut self.end else { return };
        end.bytes += data.len() as u64;
        let room = self.wanted.saturating_sub(end.prefix.len());
        end.prefix.extend_from_slice(&data[..data.len().min(room)]);
    }
}

/// However it ends: hyper drops a body that was sent, and one whose client has disconnected.
impl Drop for Observed {
    fn drop(&mut self) {
        let Some(end) = self.end.take() else { return };
        for observer in std::mem::take(&mut self.observers) {
            let end = Ended { prefix: end.prefix.clone(), ..end };
            observer.ended(end);
        }
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut *self {
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Upstream(body) => Pin::new(body).poll_frame(context).map_err(Into::into),
            Self::Made(stream) => stream.as_mut().poll_next(context).map_ok(Frame::data),
            Self::Observed(observed) => {
                let polled = Pin::new(&mut observed.inner).poll_frame(context);
                if let Poll::Ready(Some(Ok(frame))) = &polled
                    && let Some(data) = frame.data_ref()
                {
                    observed.record(data);
                }
                polled
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Upstream(body) => body.is_end_stream(),
            Self::Made(_) => false,
            Self::Observed(observed) => observed.inner.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Upstream(body) => body.size_hint(),
            Self::Made(_) => SizeHint::default(),
            Self::Observed(observed) => observed.inner.size_hint(),
        }
    }
}
