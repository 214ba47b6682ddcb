//! The body of a server's response.

use std::{
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::connections::Lease;

/// A body that gives its connection back when it has been read to its end. If it is not read that far, the connection ends
/// with it.
pub struct UpstreamBody {
    body: Incoming,
    lease: Option<Lease>,
}

impl UpstreamBody {
    pub(super) fn new(body: Incoming, lease: Lease) -> Self {
        Self { body, lease: Some(lease) }
    }

    /// A body on a connection that others take care of.
    pub(super) fn shared(body: Incoming) -> Self {
        Self { body, lease: None }
    }

    /// The address of the server, until the body has been read.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.lease.as_ref().and_then(Lease::peer)
    }

    fn give_back(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.give_back();
        }
    }
}

impl Body for UpstreamBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(None) = polled {
            self.give_back();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A reader that knows that a body has ended does not poll it once more.
impl Drop for UpstreamBody {
    fn drop(&mut self) {
        if self.body.is_end_stream() {
            self.give_back();
        }
    }
}
