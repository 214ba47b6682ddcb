//! Connections whose clients do not read.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

/// A stream whose writes fail if the client has not read anything for this long. `read` is called when the client has sent something.
pub(super) struct WriteTimeout<S, R> {
    stream: S,
    time: Duration,
    read: R,
    /// When the write that waits fails.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<S, R> WriteTimeout<S, R> {
    pub(super) fn new(stream: S, time: Duration, read: R) -> Self {
        Self { stream, time, read, deadline: None }
    }

    fn limited<T>(&mut self, context: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.deadline = None;
            return polled;
        }
        let time = self.time;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(time)));
        ready!(deadline.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin, R: Fn() + Unpin> AsyncRead for WriteTimeout<S, R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            (self.read)();
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin, R: Unpin> AsyncWrite for WriteTimeout<S, R> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.limited(context, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.limited(context, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(context);
        self.limited(context, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_write_fails_when_the_client_has_not_read_for_long() {
        let (server, mut client) = duplex(4);
        let mut server = WriteTimeout::new(server, Duration::from_secs(10), || ());
        server.write_all(b"full").await.unwrap();
        let mut read = [0; 2];
        let (written, _) = tokio::join!(server.write_all(b"ab"), async {
            tokio::time::sleep(Duration::from_secs(9)).await;
            client.read_exact(&mut read).await
        });
        written.expect("it was slow, but it was read");
        let error = server.write_all(b"more").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
