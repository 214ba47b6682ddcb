//! The two ends of an attachment, which both end with it.
//!
//! A kube client's pipes do not end when their connection breaks, or when its node
//! has failed: a reader would wait for ever, and so would a writer once the pipe is full.

use std::{
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures::future::{BoxFuture, FutureExt, Shared};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::runtime::{BoxRead, BoxWrite};

/// The end of an attachment.
type End = Shared<BoxFuture<'static, ()>>;

/// The ends of pipes that are not written to any more once `end` is done. What is in them then is still read.
pub(super) fn until(
    end: impl Future<Output = ()> + Send + 'static,
    read: impl AsyncRead + Send + Unpin + 'static,
    write: impl AsyncWrite + Send + Unpin + 'static,
) -> (BoxRead, BoxWrite) {
    let end = end.boxed().shared();
    let read = Half { inner: read, end: end.clone(), ended: false };
    (Box::new(read), Box::new(Half { inner: write, end, ended: false }))
}

struct Half<T> {
    inner: T,
    end: End,
    /// A future must not be polled after its end.
    ended: bool,
}

impl<T> Half<T> {
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if !self.ended {
            ready!(self.end.poll_unpin(context));
            self.ended = true;
        }
        Poll::Ready(())
    }

    fn poll_broken(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        self.poll_end(context).map(|()| io::Error::from(io::ErrorKind::BrokenPipe))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Half<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let ended = self.poll_end(context).is_ready();
        match Pin::new(&mut self.inner).poll_read(context, buffer) {
            Poll::Pending if ended => Poll::Ready(Ok(())),
            polled => polled,
        }
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Half<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(error) = self.poll_broken(context) {
            return Poll::Ready(Err(error));
        }
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Poll::Ready(error) = self.poll_broken(context) {
            return Poll::Ready(Err(error));
        }
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.poll_end(context).is_ready() {
            return Poll::Ready(Ok(()));
        }
        ready!(Pin::new(&mut self.inner).poll_shutdown(context))?;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, simplex},
        sync::oneshot,
    };

    use super::*;

    #[tokio::test]
    async fn data_written_before_the_end_is_still_read() {
        let (output, mut from_server) = simplex(64);
        let (_to_server, input) = simplex(64);
        let (end, ended) = oneshot::channel::<()>();
        let (mut read, _write) = until(ended.map(drop), output, input);
        from_server.write_all(b"last words\n").await.unwrap();
        drop((from_server, end));
        let mut all = String::new();
        read.read_to_string(&mut all).await.unwrap();
        assert_eq!(all, "last words\n");
        assert_eq!(read.read(&mut [0; 8]).await.unwrap(), 0, "it stays at its end");
    }

    #[tokio::test]
    async fn pending_reads_and_writes_end_with_the_attachment() {
        // The other ends are held, and nothing moves: as when a node has failed.
        let (output, _from_server) = simplex(4);
        let (_to_server, input) = simplex(4);
        let (end, ended) = oneshot::channel::<()>();
        let (mut read, mut write) = until(ended.map(drop), output, input);
        let reading = tokio::spawn(async move { read.read(&mut [0; 8]).await });
        let writing = tokio::spawn(async move { write.write_all(b"more than fits").await });
        tokio::task::yield_now().await;
        end.send(()).unwrap();
        assert_eq!(reading.await.unwrap().unwrap(), 0);
        assert_eq!(writing.await.unwrap().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
