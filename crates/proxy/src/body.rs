//! Bodies of answers, and reading those of requests.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use futures::stream::BoxStream;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;

/// Why a body ended too early.
pub(crate) type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// The body of an answer.
pub(crate) enum Body {
    /// All of it is here.
    Whole(Bytes),
    /// It comes from the server as it is.
    Server(Incoming),
    /// It is made piece by piece.
    Made(BoxStream<'static, Result<Bytes, BodyError>>),
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
            Self::Server(body) => Pin::new(body).poll_frame(context).map_err(Into::into),
            Self::Made(stream) => stream.as_mut().poll_next(context).map_ok(Frame::data),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Server(body) => body.is_end_stream(),
            Self::Made(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Server(body) => body.size_hint(),
            Self::Made(_) => SizeHint::default(),
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
}

/// The whole body, if it is not larger than `limit`.
pub(crate) async fn read<B>(mut body: B, limit: usize) -> Result<Bytes, ReadError>
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
