//! A connection: to a host, or to a proxy.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::MaybeHttpsStream;
use hyper_util::{
    client::legacy::connect::{Connected, Connection},
    rt::TokioIo,
};
use tokio::net::TcpStream;

/// A connection.
pub enum Stream {
    /// To the host itself.
    Direct(TokioIo<TcpStream>),
    /// To a proxy, which forwards requests by their address.
    Proxy(Box<MaybeHttpsStream<TokioIo<TcpStream>>>),
    /// To the host, in a tunnel through a proxy.
    Tunnel(Box<MaybeHttpsStream<TokioIo<TcpStream>>>),
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        match self {
            Self::Direct(stream) => stream.connected(),
            // Requests have the whole address.
            Self::Proxy(_) => Connected::new().proxy(true),
            Self::Tunnel(_) => Connected::new(),
        }
    }
}

macro_rules! delegate {
    ($self:ident, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            Self::Direct(stream) => {
                let $stream = Pin::new(stream);
                $call
            }
            Self::Proxy(stream) | Self::Tunnel(stream) => {
                let $stream = Pin::new(&mut **stream);
                $call
            }
        }
    };
}

impl Read for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        delegate!(self, stream => stream.poll_read(context, buffer))
    }
}

impl Write for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        delegate!(self, stream => stream.poll_write(context, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => stream.poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => stream.poll_shutdown(context))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Direct(stream) => stream.is_write_vectored(),
            Self::Proxy(stream) | Self::Tunnel(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        delegate!(self, stream => stream.poll_write_vectored(context, slices))
    }
}
