//! Bodies of answers, and reading those of requests.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use futures::stream::BoxStream;
use http::StatusCode;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;

use crate::{
    budget::{Budget, Exhausted, Share},
    upstream::Answered,
};

/// Why a body ended too early.
pub(crate) type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// The body of an answer.
pub(crate) enum Body {
    /// All of it is here.
    Whole(Bytes),
    /// All of it is here, and counted for as long as it is.
    Counted(Bytes, #[expect(dead_code, reason = "it counts by being there")] Share),
    /// It comes from the server as it is.
    Server(Answered),
    /// It is made piece by piece.
    Made(BoxStream<'static, Result<Bytes, BodyError>>),
    /// Somebody wants to know how it ends.
    Observed(Box<Observed>),
}

/// How an answer ended.
pub(crate) struct Ended {
    pub(crate) status: StatusCode,
    /// How much of it was sent.
    pub(crate) bytes: u64,
    /// How it began.
    pub(crate) prefix: Vec<u8>,
}

/// Somebody who wants to know how an answer ends.
pub(crate) trait Observer: Send + 'static {
    /// How much of the beginning they want to see.
    fn prefix(&self) -> usize;

    /// It has ended: all of it was sent, or nobody wants the rest.
    fn ended(self: Box<Self>, end: Ended);
}

/// A body with those who want to know how it ends.
pub(crate) struct Observed {
    inner: Body,
    observers: Vec<Box<dyn Observer>>,
    wanted: usize,
    end: Option<Ended>,
}

impl Body {
    /// The same body, of which these want to know how it ends.
    pub(crate) fn observed(self, status: StatusCode, observers: Vec<Box<dyn Observer>>) -> Self {
        if observers.is_empty() {
            return self;
        }
        let wanted = observers.iter().map(|observer| observer.prefix()).max().unwrap_or_default();
        let end = Some(Ended { status, bytes: 0, prefix: Vec::new() });
        Self::Observed(Box::new(Observed { inner: self, observers, wanted, end }))
    }
}

impl Observed {
    fn saw(&mut self, data: &[u8]) {
        let Some(end) = &mut self.end else { return };
        end.bytes += data.len() as u64;
        let room = self.wanted.saturating_sub(end.prefix.len());
        end.prefix.extend_from_slice(&data[..data.len().min(room)]);
    }
}

/// However it ends: hyper drops a body that was sent, and one that nobody wants any more.
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
            Self::Whole(bytes) | Self::Counted(bytes, _) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) | Self::Counted(bytes, _) => {
                Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes)))))
            }
            Self::Server(body) => Pin::new(body).poll_frame(context).map_err(Into::into),
            Self::Made(stream) => stream.as_mut().poll_next(context).map_ok(Frame::data),
            Self::Observed(observed) => {
                let polled = Pin::new(&mut observed.inner).poll_frame(context);
                if let Poll::Ready(Some(Ok(frame))) = &polled
                    && let Some(data) = frame.data_ref()
                {
                    observed.saw(data);
                }
                polled
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) | Self::Counted(bytes, _) => bytes.is_empty(),
            Self::Server(body) => body.is_end_stream(),
            Self::Made(_) => false,
            Self::Observed(observed) => observed.inner.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) | Self::Counted(bytes, _) => SizeHint::with_exact(bytes.len() as u64),
            Self::Server(body) => body.size_hint(),
            Self::Made(_) => SizeHint::default(),
            Self::Observed(observed) => observed.inner.size_hint(),
        }
    }
}

/// Why a body was not read to its end.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// It is larger than it may be.
    TooLarge,
    /// It broke off.
    Broken,
    /// Others take all the memory that there is for bodies.
    Exhausted,
}

/// The whole body, if it is not larger than `limit`, with its share of the budget.
pub(crate) async fn read_counted<B>(
    body: B,
    limit: usize,
    budget: &Budget,
) -> Result<(Bytes, Share), ReadError>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let mut share = budget.share();
    let bytes = pieces(body, limit, |length| share.grow(length)).await?;
    Ok((bytes, share))
}

/// The whole body, if it is not larger than `limit`, of somebody who is asked seldom enough for it not to be counted.
pub(crate) async fn read<B>(body: B, limit: usize) -> Result<Bytes, ReadError>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    pieces(body, limit, |_| Ok(())).await
}

async fn pieces<B>(
    mut body: B,
    limit: usize,
    mut takes: impl FnMut(usize) -> Result<(), Exhausted>,
) -> Result<Bytes, ReadError>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    // Said to be too large before a byte of it is read.
    if body.size_hint().lower() > limit as u64 {
        return Err(ReadError::TooLarge);
    }
    let mut first = Bytes::new();
    let mut rest: Option<BytesMut> = None;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| ReadError::Broken)?.into_data() else { continue };
        let before = rest.as_ref().map_or(first.len(), BytesMut::len);
        if before + data.len() > limit {
            return Err(ReadError::TooLarge);
        }
        takes(data.len()).map_err(|_| ReadError::Exhausted)?;
        match &mut rest {
            // Most bodies come in one piece, which is then not copied.
            None if first.is_empty() => first = data,
            None => {
                let mut joined = BytesMut::with_capacity(first.len() + data.len());
                joined.extend_from_slice(&first);
                joined.extend_from_slice(&data);
                rest = Some(joined);
            }
            Some(rest) => rest.extend_from_slice(&data),
        }
    }
    Ok(rest.map_or(first, BytesMut::freeze))
}
