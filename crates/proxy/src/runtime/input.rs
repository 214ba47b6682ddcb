//! The standard input of a server. Closing it ends the server.

use std::{
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::{io::AsyncWrite, sync::oneshot};

/// The standard input of a server. Closing it makes the server end, and waits until it has.
pub struct Input<W> {
    pipe: Option<W>,
    done: Option<oneshot::Sender<()>>,
    ended: Option<oneshot::Receiver<()>>,
}

impl<W: AsyncWrite + Unpin> Input<W> {
    /// `done` is dropped when the server is no longer needed, and `ended` is waited for until its other end is dropped.
    pub fn new(pipe: W, done: oneshot::Sender<()>, ended: oneshot::Receiver<()>) -> Self {
        Self { pipe: Some(pipe), done: Some(done), ended: Some(ended) }
    }

    fn pipe(&mut self) -> io::Result<Pin<&mut W>> {
        self.pipe.as_mut().map(Pin::new).ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Input<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.pipe()?.poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.pipe()?.poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.pipe = None;
        self.done = None;
        // The sender sends nothing, and is dropped when the server has ended.
        if let Some(ended) = &mut self.ended {
            ready!(Pin::new(ended).poll(context)).ok();
            self.ended = None;
        }
        Poll::Ready(Ok(()))
    }
}
