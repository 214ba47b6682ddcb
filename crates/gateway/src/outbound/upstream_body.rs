//! The body of a server's response.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::uri::Authority;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::connections::Lease;

/// How much of a body is read ahead, in bytes and in frames.
const AHEAD: usize = 16 * 1024;
const FRAMES: usize = 8;
/// How long the end of a body may take that nothing is expected from any more.
const END: Duration = Duration::from_millis(100);

/// A body that gives its connection back when it has been read to its end. If it is not read that far, the connection ends
/// with it.
pub struct UpstreamBody {
    body: Incoming,
    has_ended: bool,
    lease: Option<Lease>,
    address: Option<Arc<Authority>>,
    /// What was read ahead: a few frames.
    ahead: Vec<Result<Frame<Bytes>, hyper::Error>>,
}

impl UpstreamBody {
    pub(super) fn new(body: Incoming, lease: Lease) -> Self {
        let address = lease.address();
        Self { body, has_ended: false, lease: Some(lease), address, ahead: Vec::new() }
    }

    /// A body on a connection that others take care of.
    pub(super) fn shared(body: Incoming) -> Self {
        Self { body, has_ended: false, lease: None, address: None, ahead: Vec::new() }
    }

    /// Reads what has arrived together with the head of the response. Most responses have: then they are sent on in one piece, and not
    /// in three (the head, the content, the end), each of which would wake the client.
    ///
    /// The connection is read by a task of its own, which passes on one frame each time that it runs. So this task lets it run, as
    /// long as there is something new afterwards. It waits for nothing.
    pub(super) fn read_ahead(&mut self) -> impl Future<Output = ()> {
        let mut has_yielded = false;
        poll_fn(move |context| {
            while self.ahead.len() < FRAMES && self.bytes_ahead() < AHEAD {
                match self.poll_body(context) {
                    Poll::Ready(Some(frame)) => {
                        has_yielded = false;
                        let is_error = frame.is_err();
                        self.ahead.push(frame);
                        if is_error {
                            break;
                        }
                    }
                    Poll::Ready(None) => break,
                    Poll::Pending if has_yielded => break,
                    Poll::Pending => {
                        has_yielded = true;
                        context.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                }
            }
            Poll::Ready(())
        })
    }

    fn bytes_ahead(&self) -> usize {
        self.ahead.iter().flatten().filter_map(Frame::data_ref).map(Bytes::len).sum()
    }

    fn poll_body(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(None) = polled {
            self.has_ended = true;
            self.give_back();
        }
        polled
    }

    /// Gives the connection back if the body ends soon, for a reader that needs nothing more of it: the end of a stream often comes after
    /// its last event, and the next request would need another connection.
    pub fn finish(self) {
        if !self.has_ended && self.lease.is_some() {
            self.finish_within(END);
        }
    }

    fn finish_within(mut self, time: Duration) {
        tokio::spawn(async move {
            let mut rest = AHEAD;
            let ended = poll_fn(|context| {
                loop {
                    match ready!(self.poll_body(context)) {
                        Some(Ok(frame)) => match rest.checked_sub(frame.data_ref().map_or(0, Bytes::len)) {
                            Some(less) => rest = less,
                            None => return Poll::Ready(()),
                        },
                        Some(Err(_)) | None => return Poll::Ready(()),
                    }
                }
            });
            tokio::time::timeout(time, ended).await.ok();
        });
    }

    /// The address of the server, where the connection is to one in the cluster.
    pub fn address(&self) -> Option<&Arc<Authority>> {
        self.address.as_ref()
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
        if self.ahead.is_empty() { self.poll_body(context) } else { Poll::Ready(Some(self.ahead.remove(0))) }
    }

    fn is_end_stream(&self) -> bool {
        self.ahead.is_empty() && (self.has_ended || self.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, ahead) = (self.body.size_hint(), self.bytes_ahead() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + ahead);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + ahead);
        }
        hint
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

#[cfg(test)]
mod tests {
    use std::{
        net::SocketAddr,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use futures::FutureExt;
    use http::{Request, Response};
    use http_body_util::{BodyExt, Full};
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
        sync::Semaphore,
    };

    use super::*;
    use crate::outbound::Client;

    const HEAD: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    const CONTENT: &str = "5\r\nhello\r\n";
    const END_CHUNK: &str = "0\r\n\r\n";

    /// A server that sends the pieces of each response, each but the first when it may.
    struct Server {
        client: Client,
        address: SocketAddr,
        connections: Arc<AtomicUsize>,
        may: Arc<Semaphore>,
    }

    impl Server {
        async fn start(pieces: &'static [&'static str]) -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let (connections, may) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
            let (count, permits) = (connections.clone(), may.clone());
            tokio::spawn(async move {
                while let Ok((mut stream, _)) = listener.accept().await {
                    count.fetch_add(1, Ordering::Relaxed);
                    let may = permits.clone();
                    tokio::spawn(async move {
                        // Requests here are smaller than what is read at once.
                        while stream.read(&mut [0; 4096]).await.is_ok_and(|read| read > 0) {
                            for (index, piece) in pieces.iter().enumerate() {
                                if index > 0 {
                                    may.acquire().await.unwrap().forget();
                                }
                                stream.write_all(piece.as_bytes()).await.unwrap();
                            }
                        }
                    });
                }
            });
            Self { client: Client::new(false).unwrap(), address, connections, may }
        }

        async fn response(&self) -> Response<UpstreamBody> {
            let uri = format!("http://{}/", self.address);
            self.client.send_once(Request::get(uri).body(Full::default()).unwrap()).await.unwrap()
        }
    }

    async fn text(body: &mut UpstreamBody) -> Option<Bytes> {
        body.frame().await.map(|frame| frame.unwrap().into_data().unwrap())
    }

    #[tokio::test]
    async fn what_arrives_with_the_head_is_there_with_it() {
        let server = Server::start(&["HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"]).await;
        let mut body = server.response().await.into_body();
        assert_eq!(body.size_hint().exact(), Some(5));
        assert_eq!(text(&mut body).now_or_never().unwrap().unwrap(), "hello");
        assert!(body.is_end_stream());

        let both = [HEAD, CONTENT, END_CHUNK].concat().leak();
        let server = Server::start(vec![&*both].leak()).await;
        let mut body = server.response().await.into_body();
        assert!(!body.is_end_stream());
        assert_eq!(text(&mut body).now_or_never().unwrap().unwrap(), "hello");
        assert!(body.is_end_stream());
        assert_eq!(text(&mut body).now_or_never().unwrap(), None);
        // Its connection is idle since the end was read, whether the reader knows it or not.
        let unread = server.response().await;
        server.response().await;
        assert_eq!(server.connections.load(Ordering::Relaxed), 1);
        assert!(unread.body().address().is_some());
    }

    #[tokio::test]
    async fn a_stream_begins_before_there_is_anything_on_it() {
        let server = Server::start(&[HEAD, CONTENT, END_CHUNK]).await;
        let mut body = server.response().await.into_body();
        assert!(text(&mut body).now_or_never().is_none());
        server.may.add_permits(1);
        assert_eq!(text(&mut body).await.unwrap(), "hello");
        server.may.add_permits(1);
        assert_eq!(text(&mut body).await, None);
    }

    #[tokio::test]
    async fn a_connection_is_kept_if_a_body_ends_after_what_was_expected() {
        let both = [HEAD, CONTENT].concat().leak();
        let server = Server::start(vec![&*both, END_CHUNK].leak()).await;
        for _ in 0..3 {
            let mut body = server.response().await.into_body();
            assert_eq!(text(&mut body).await.unwrap(), "hello");
            server.may.add_permits(1);
            body.finish_within(Duration::from_secs(60));
            while !server.client.has_idle_connection() {
                tokio::task::yield_now().await;
            }
        }
        assert_eq!(server.connections.load(Ordering::Relaxed), 1);
        // One that does not end is closed.
        let mut body = server.response().await.into_body();
        assert_eq!(text(&mut body).await.unwrap(), "hello");
        body.finish_within(Duration::ZERO);
        server.may.add_permits(2);
        server.response().await;
        assert_eq!(server.connections.load(Ordering::Relaxed), 2);
    }
}
