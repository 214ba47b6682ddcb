//! How long a connection lives: until the head of a request is late, until it has been idle for long, or until the listener stops.
//!
//! hyper would start a timer for each request, and hyper-util would poll a channel. Here a connection has one timer, which is
//! started again only after it has fired, and a channel that it polls once.

use std::{
    future::poll_fn,
    pin::pin,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    task::{Poll, Waker},
    time::Duration,
};

use hyper_util::server::graceful::GracefulConnection;
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use crate::limits;

/// What has happened on a connection. Its requests come one after the other.
pub(super) struct Activity {
    since: Instant,
    has_begun: AtomicBool,
    is_responding: AtomicBool,
    /// When the last request was responded to, in milliseconds.
    responded: AtomicU64,
    /// When the first byte of a head arrived that is not complete. Zero: there is none.
    head: AtomicU64,
}

impl Activity {
    pub(super) fn new() -> Self {
        Self {
            since: Instant::now(),
            has_begun: AtomicBool::new(false),
            is_responding: AtomicBool::new(false),
            responded: AtomicU64::new(0),
            head: AtomicU64::new(0),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Something has been read.
    pub(super) fn read(&self) {
        // Otherwise it belongs to the body of a request.
        if !self.is_responding.load(Ordering::Relaxed) && self.head.load(Ordering::Relaxed) == 0 {
            self.head.store(self.now().max(1), Ordering::Relaxed);
        }
    }

    /// The head of a request has arrived.
    pub(super) fn begin(&self) {
        self.has_begun.store(true, Ordering::Relaxed);
        self.is_responding.store(true, Ordering::Relaxed);
        self.head.store(0, Ordering::Relaxed);
    }

    /// The head of its response is there.
    pub(super) fn end(&self) {
        self.responded.store(self.now(), Ordering::Relaxed);
        self.is_responding.store(false, Ordering::Relaxed);
    }

    /// When the head that has begun to arrive must be complete.
    fn head_end(&self) -> Option<Instant> {
        let head = self.head.load(Ordering::Relaxed);
        (head > 0).then(|| self.since + Duration::from_millis(head) + limits::FIRST_HEAD_TIME)
    }

    /// How long the connection may be idle from now on.
    fn rest(&self) -> Duration {
        if let Some(end) = self.head_end() {
            return end.saturating_duration_since(Instant::now());
        }
        if self.is_responding.load(Ordering::Relaxed) {
            return limits::IDLE_TIME;
        }
        let responded = self.since + Duration::from_millis(self.responded.load(Ordering::Relaxed));
        limits::IDLE_TIME.saturating_sub(responded.elapsed())
    }
}

/// Serves a connection. It ends at once if the head of its first request does not arrive in this time. After that it ends when it
/// has been idle for long, or when `stop` is sent, but completes a response before.
pub(super) async fn serve<C: GracefulConnection>(
    connection: C,
    activity: &Activity,
    first_head: Duration,
    stop: watch::Receiver<()>,
) -> Result<(), C::Error> {
    let mut stopping = stop.clone();
    let (mut connection, mut stopped) = (pin!(connection), pin!(stopping.changed()));
    let mut timer = pin!(sleep(first_head));
    let (mut registered, mut is_ending) = (None::<Waker>, false);
    poll_fn(|context| {
        // The timer and the channel have the waker from their first poll on.
        let is_new = registered.as_ref().is_none_or(|waker| !waker.will_wake(context.waker()));
        if is_new {
            registered = Some(context.waker().clone());
        }
        let mut ends = !is_ending
            && (!matches!(stop.has_changed(), Ok(false))
                || (is_new && stopped.as_mut().poll(context).is_ready()));
        let has_begun = activity.has_begun.load(Ordering::Relaxed);
        let has_limit = !is_ending || !has_begun;
        if has_limit && (is_new || timer.is_elapsed()) {
            while timer.as_mut().poll(context).is_ready() {
                if !has_begun {
                    return Poll::Ready(Ok(()));
                }
                match activity.rest() {
                    Duration::ZERO => {
                        ends = true;
                        break;
                    }
                    rest => timer.as_mut().reset(Instant::now() + rest),
                }
            }
        }
        if ends && !is_ending {
            is_ending = true;
            connection.as_mut().graceful_shutdown();
            let last_head = Instant::now() + limits::LAST_HEAD_TIME;
            if !has_begun && timer.deadline() > last_head {
                timer.as_mut().reset(last_head);
                timer.as_mut().poll(context).is_ready().then(|| context.waker().wake_by_ref());
            }
        }
        let polled = connection.as_mut().poll(context);
        if polled.is_pending()
            && let Some(end) = activity.head_end()
            && timer.deadline() > end
        {
            timer.as_mut().reset(end);
            // It has the waker, and is looked at when it fires.
            timer.as_mut().poll(context).is_ready().then(|| context.waker().wake_by_ref());
        }
        polled
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, sync::Arc};

    use bytes::Bytes;
    use http::Response;
    use http_body_util::Full;
    use hyper::{server::conn::http1, service::service_fn};
    use hyper_util::rt::TokioIo;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
        task::JoinHandle,
    };

    use super::*;
    use crate::http::write_timeout::WriteTimeout;

    const FIRST_HEAD: Duration = Duration::from_secs(15);
    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: test\r\n\r\n";

    /// A connection whose requests take this long, the end of the listener, and the end of the connection.
    fn connect(response_time: Duration) -> (DuplexStream, watch::Sender<()>, JoinHandle<Instant>) {
        let (client, server) = duplex(4096);
        let (stop, stopped) = watch::channel(());
        let serving = tokio::spawn(async move {
            let activity = Arc::new(Activity::new());
            let (seen, read) = (activity.clone(), activity.clone());
            let server = WriteTimeout::new(server, limits::WRITE_TIME, move || read.read());
            let responder = service_fn(move |_| {
                let activity = activity.clone();
                async move {
                    activity.begin();
                    sleep(response_time).await;
                    activity.end();
                    Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
                }
            });
            let connection = http1::Builder::new()
                .header_read_timeout(None)
                .serve_connection(TokioIo::new(server), responder);
            serve(connection, &seen, FIRST_HEAD, stopped).await.ok();
            Instant::now()
        });
        (client, stop, serving)
    }

    async fn response(client: &mut DuplexStream) -> String {
        let mut read = [0; 1024];
        let length = client.read(&mut read).await.unwrap();
        String::from_utf8(read[..length].to_vec()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_ends_if_its_first_request_is_late() {
        for part in [&b""[..], &REQUEST[..20]] {
            let begin = Instant::now();
            let (mut client, _stop, serving) = connect(Duration::ZERO);
            client.write_all(part).await.unwrap();
            assert_eq!((serving.await.unwrap() - begin).as_secs(), FIRST_HEAD.as_secs());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_ends_when_it_has_been_idle_for_long_and_not_before() {
        let (mut client, _stop, serving) = connect(Duration::ZERO);
        for pause in [1, 20, 119, 119] {
            sleep(Duration::from_secs(pause)).await;
            if pause > FIRST_HEAD.as_secs() {
                client.write_all(REQUEST).await.unwrap();
            } else {
                // In two pieces.
                client.write_all(&REQUEST[..20]).await.unwrap();
                sleep(Duration::from_secs(1)).await;
                client.write_all(&REQUEST[20..]).await.unwrap();
            }
            assert!(response(&mut client).await.starts_with("HTTP/1.1 200"));
        }
        let last = Instant::now();
        assert_eq!((serving.await.unwrap() - last).as_secs(), limits::IDLE_TIME.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_has_begun_has_as_long_as_the_first() {
        let (mut client, _stop, serving) = connect(Duration::ZERO);
        for _ in 0..2 {
            client.write_all(REQUEST).await.unwrap();
            response(&mut client).await;
            sleep(Duration::from_secs(30)).await;
        }
        let last = Instant::now();
        for byte in &REQUEST[..10] {
            client.write_all(&[*byte]).await.ok();
            sleep(Duration::from_secs(2)).await;
        }
        assert_eq!((serving.await.unwrap() - last).as_secs(), FIRST_HEAD.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_of_a_response_does_not_count_as_idle() {
        let (mut client, _stop, serving) = connect(limits::IDLE_TIME * 3);
        for _ in 0..2 {
            client.write_all(REQUEST).await.unwrap();
            let response = response(&mut client).await;
            assert!(!response.to_lowercase().contains("connection: close"), "{response}");
        }
        let last = Instant::now();
        assert_eq!((serving.await.unwrap() - last).as_secs(), limits::IDLE_TIME.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn when_the_listener_stops_an_idle_connection_ends_and_one_with_a_request_after_its_response() {
        let (mut client, stop, serving) = connect(Duration::ZERO);
        client.write_all(REQUEST).await.unwrap();
        response(&mut client).await;
        let begin = Instant::now();
        stop.send(()).unwrap();
        assert_eq!(serving.await.unwrap(), begin);

        let (mut client, stop, serving) = connect(Duration::from_secs(7));
        client.write_all(REQUEST).await.unwrap();
        sleep(Duration::from_secs(1)).await;
        stop.send(()).unwrap();
        assert!(response(&mut client).await.to_lowercase().contains("connection: close"));
        serving.await.unwrap();

        // One whose first request has begun to arrive has a moment.
        let (mut client, stop, serving) = connect(Duration::ZERO);
        client.write_all(&REQUEST[..20]).await.unwrap();
        sleep(Duration::from_secs(1)).await;
        let begin = Instant::now();
        stop.send(()).unwrap();
        assert_eq!((serving.await.unwrap() - begin).as_secs(), limits::LAST_HEAD_TIME.as_secs());
        // All of them have ended.
        stop.closed().await;
    }
}
