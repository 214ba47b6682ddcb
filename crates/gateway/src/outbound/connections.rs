//! The connections to a server in the cluster, and which of them are idle.
//!
//! A connection stays with the thread that made it, so that a response wakes no other thread.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{
    Extensions, HeaderValue, Request, Response, Uri, header,
    header::InvalidHeaderValue,
    uri::{Authority, Scheme},
};
use http_body_util::Full;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::{
    client::legacy::{
        self,
        connect::{Connection as _, HttpConnector, HttpInfo},
    },
    rt::TokioIo,
};
use tower::Service as _;
use tracing::debug;

use super::UpstreamBody;
use crate::{joined_writes::JoinedWrites, limits, workers};

/// How long an idle connection is kept for the next request. Many servers in the cluster close one after five seconds,
/// and a request on it would be lost.
const KEPT: Duration = Duration::from_secs(4);
/// How long it may take to be ready for the next request: the task that reads it has to run once. One whose server responded before it had
/// read the whole request may never be.
const READY_TIME: Duration = Duration::from_millis(50);
/// How many of them are kept for each host, by each thread.
const IDLE_CONNECTIONS: usize = 256;

/// Why a request has no response.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No connection could be made: nothing was sent.
    #[error("no connection to {host}: {}", innermost(source.as_ref()))]
    Connect {
        /// The host, without a name or password before it.
        host: Box<str>,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The connection broke.
    #[error(transparent)]
    Broken(#[from] hyper::Error),
    /// The connection to a remote server broke.
    #[error("connection lost: {}", innermost(.0))]
    Lost(legacy::Error),
}

impl Error {
    /// Whether nothing was sent.
    pub fn is_connect(&self) -> bool {
        matches!(self, Self::Connect { .. })
    }
}

/// The root cause: the others are `dns error` where it is that the name does not exist.
fn innermost<'a>(error: &'a (dyn std::error::Error + 'static)) -> &'a (dyn std::error::Error + 'static) {
    std::iter::successors(Some(error), |error| error.source()).last().unwrap_or(error)
}

/// The connections to a server, at as many hosts as it has.
#[derive(Clone)]
pub(super) struct Connections {
    connector: HttpConnector,
    /// By the thread that made them.
    idle: Arc<[Idle]>,
}

/// Idle connections by host, of which the last is the one that was used last. There are few hosts, so comparing takes less time than
/// hashing.
#[derive(Default)]
struct Idle(Mutex<BTreeMap<Box<str>, Vec<Connection>>>);

/// A connection, in a box: it is moved with each response.
struct Connection(Box<Connected>);

struct Connected {
    sender: SendRequest<Full<Bytes>>,
    /// The address of the server, where its requests are to be sent that only this pod can respond to.
    address: Option<Arc<Authority>>,
    used: Instant,
    host: Authority,
    /// The `Host` header of its requests.
    header: HeaderValue,
    /// Where it is while it is idle.
    idle: Weak<[Idle]>,
    thread: usize,
}

/// A connection that becomes idle again once a response has been read to its end.
pub(super) struct Lease(Connection);

impl Connections {
    pub(super) fn new() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(limits::CONNECT_TIME));
        Self { connector, idle: (0..workers::most()).map(|_| Idle::default()).collect() }
    }

    /// Sends a request to its address, over an idle connection or a new one.
    pub(super) async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<UpstreamBody>, Error> {
        let address = std::mem::take(request.uri_mut()).into_parts();
        let host = address.authority.ok_or_else(no_host)?;
        *request.uri_mut() = address.path_and_query.map(Uri::from).unwrap_or_default();
        let thread = workers::number();
        loop {
            let (mut connection, kept) = match self.idle(thread, &host).await {
                Some(connection) => (connection, true),
                // In a box: it is seldom needed, and large.
                None => (Box::pin(self.connect(&host, thread)).await?, false),
            };
            request.headers_mut().insert(header::HOST, connection.0.header.clone());
            match connection.0.sender.try_send_request(request).await {
                Ok(response) => {
                    let mut response = response.map(|body| UpstreamBody::new(body, Lease(connection)));
                    response.body_mut().read_ahead().await;
                    return Ok(response);
                }
                // The server had just closed an idle connection, and has received nothing.
                Err(mut error) => match error.take_message().filter(|_| kept) {
                    Some(unsent) => request = unsent,
                    None => {
                        // The others are likely to break as well: what is sent again must not be lost with one of them.
                        self.forget(thread, &connection);
                        return Err(error.into_error().into());
                    }
                },
            }
        }
    }

    /// Closes the idle connections to the same host or the same address: a pod may have several names.
    fn forget(&self, thread: usize, broken: &Connection) {
        let Some(idle) = self.idle.get(thread) else { return };
        let same = |other: &Connection| other.0.host == broken.0.host || is_same_pod(&other.0, &broken.0);
        idle.lock().retain(|_, connections| {
            connections.retain(|connection| !same(connection));
            !connections.is_empty()
        });
    }

    /// A connection that can be used at once.
    async fn idle(&self, thread: usize, host: &Authority) -> Option<Connection> {
        loop {
            let mut connection = self.idle.get(thread)?.take(host)?;
            if connection.0.used.elapsed() >= KEPT {
                continue;
            }
            if connection.0.sender.is_ready() {
                return Some(connection);
            }
            match tokio::time::timeout(READY_TIME, connection.0.sender.ready()).await {
                Ok(Ok(())) => return Some(connection),
                Ok(Err(_closed)) => {}
                // One wait for each request: a caller may have left many of these.
                Err(_) => return None,
            }
        }
    }

    async fn connect(&self, host: &Authority, thread: usize) -> Result<Connection, Error> {
        // Without credentials before it.
        let failed = |source| Error::Connect { host: host.host().into(), source };
        let uri = Uri::builder().scheme(Scheme::HTTP).authority(host.clone()).path_and_query("/").build();
        let uri = uri.map_err(|error| failed(error.into()))?;
        let header = host_header(host).map_err(|error| failed(error.into()))?;
        let stream = self.connector.clone().call(uri).await.map_err(|error| failed(error.into()))?;
        let mut known = Extensions::new();
        stream.connected().get_extras(&mut known);
        let stream = TokioIo::new(JoinedWrites(stream.into_inner()));
        let (sender, connection) = handshake(stream).await?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                debug!(%error, "a connection to the server ended with an error");
            }
        });
        Ok(Connection(Box::new(Connected {
            sender,
            address: known.get::<HttpInfo>().and_then(|info| authority(info.remote_addr())),
            used: Instant::now(),
            host: host.clone(),
            header,
            idle: Arc::downgrade(&self.idle),
            thread,
        })))
    }

    #[cfg(test)]
    pub(super) fn has_idle(&self) -> bool {
        self.idle.iter().any(|idle| idle.lock().values().any(|connections| !connections.is_empty()))
    }

    /// Closes connections that have been idle for long, from time to time, for ever.
    pub(super) async fn expire(&self) {
        loop {
            tokio::time::sleep(KEPT).await;
            for idle in &*self.idle {
                idle.expire(Instant::now());
            }
        }
    }
}

impl Idle {
    fn take(&self, host: &Authority) -> Option<Connection> {
        self.lock().get_mut(host.as_str())?.pop()
    }

    fn put(&self, connection: Connection) {
        let mut hosts = self.lock();
        match hosts.get_mut(connection.0.host.as_str()) {
            Some(connections) if connections.len() >= IDLE_CONNECTIONS => {}
            Some(connections) => connections.push(connection),
            None => {
                hosts.insert(connection.0.host.as_str().into(), vec![connection]);
            }
        }
    }

    fn expire(&self, now: Instant) {
        self.lock().retain(|_, connections| {
            connections.retain(|connection| {
                !connection.0.sender.is_closed() && now.saturating_duration_since(connection.0.used) < KEPT
            });
            !connections.is_empty()
        });
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Box<str>, Vec<Connection>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lease {
    /// The address of the server.
    pub(super) fn address(&self) -> Option<Arc<Authority>> {
        self.0.0.address.clone()
    }

    /// Returns the connection after the response has been read to its end.
    pub(super) fn give_back(self) {
        let Self(Connection(mut connected)) = self;
        if connected.sender.is_closed() {
            return;
        }
        connected.used = Instant::now();
        if let Some(idle) = connected.idle.upgrade()
            && let Some(idle) = idle.get(connected.thread)
        {
            idle.put(Connection(connected));
        }
    }
}

/// Whether both are to one IP address, at whatever port.
fn is_same_pod(one: &Connected, other: &Connected) -> bool {
    match (&one.address, &other.address) {
        (Some(one), Some(other)) => one.host() == other.host(),
        _ => false,
    }
}

fn authority(address: SocketAddr) -> Option<Arc<Authority>> {
    Authority::try_from(address.to_string()).ok().map(Arc::new)
}

fn no_host() -> Error {
    Error::Connect { host: "nowhere".into(), source: "it has no address".into() }
}

/// The `Host` header: without the default port, and without a name or password.
fn host_header(address: &Authority) -> Result<HeaderValue, InvalidHeaderValue> {
    let host = address.host();
    match address.port_u16().filter(|port| *port != 80) {
        Some(port) => HeaderValue::try_from(format!("{host}:{port}")),
        None => HeaderValue::from_str(host),
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
        sync::watch,
    };

    use super::*;

    #[tokio::test]
    async fn after_a_connection_has_broken_the_next_request_has_a_new_one() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (count, mut accepted) = watch::channel(0);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                count.send_modify(|count| *count += 1);
                let number = *count.borrow();
                tokio::spawn(async move {
                    let mut requests = 0;
                    // Each of the first three connections breaks at its second request.
                    while stream.read(&mut [0; 4096]).await.is_ok_and(|read| read > 0) {
                        requests += 1;
                        if number <= 3 && requests == 2 {
                            return;
                        }
                        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
                    }
                });
            }
        });
        let connections = Connections::new();
        let request = |host: &str| {
            Request::get(format!("http://{host}:{}/", address.port())).body(Full::default()).unwrap()
        };
        let (pod, service) = ("127.0.0.1", "localhost");
        let (first, second, third) = tokio::join!(
            connections.send(request(pod)),
            connections.send(request(pod)),
            connections.send(request(service))
        );
        drop((first.unwrap(), second.unwrap(), third.unwrap()));
        accepted.wait_for(|count| *count == 3).await.unwrap();
        assert!(matches!(connections.send(request(pod)).await, Err(Error::Broken(_))));
        assert!(!connections.has_idle(), "one with another name of the same address is as old");
        connections.send(request(service)).await.unwrap();
        assert_eq!(*accepted.borrow(), 4);
    }

    #[tokio::test]
    async fn no_caller_chooses_the_host_also_on_a_kept_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut heads = Vec::new();
            for _ in 0..2 {
                let mut head = [0; 4096];
                let length = stream.read(&mut head).await.unwrap();
                heads.push(String::from_utf8(head[..length].to_vec()).unwrap());
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
            }
            heads
        });
        let connections = Connections::new();
        for _ in 0..2 {
            let request =
                Request::get(format!("http://name:secret@{address}/")).header(header::HOST, "other");
            drop(connections.send(request.body(Full::default()).unwrap()).await.unwrap());
        }
        for head in server.await.unwrap() {
            let hosts: Vec<_> = head.lines().filter_map(|line| line.strip_prefix("host: ")).collect();
            assert_eq!(hosts, [address.to_string()], "{head}");
        }
    }

    #[tokio::test]
    async fn a_connection_that_breaks_ends_no_request_on_another() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Connections::new();
        let request =
            |path: &str| Request::get(format!("http://{address}/{path}")).body(Full::default()).unwrap();
        let slow = connections.send(request("slow"));
        let breaking = async {
            let (mut first, _) = listener.accept().await.unwrap();
            assert!(first.read(&mut [0; 4096]).await.unwrap() > 0);
            let broken = connections.send(request("broken"));
            let (broken, ()) = tokio::join!(broken, async {
                let (mut second, _) = listener.accept().await.unwrap();
                assert!(second.read(&mut [0; 4096]).await.unwrap() > 0);
            });
            assert!(matches!(broken, Err(Error::Broken(_))));
            first.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
            first
        };
        let (slow, _first) = tokio::join!(slow, breaking);
        assert_eq!(slow.unwrap().status(), http::StatusCode::NO_CONTENT);
    }

    #[tokio::test]
    async fn a_connection_on_which_the_last_request_is_not_read_is_not_used_again() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let mut open = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                // It reads the head alone, and responds.
                assert!(stream.read(&mut [0; 16]).await.unwrap() > 0);
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
                open.push(stream);
            }
        });
        let connections = Connections::new();
        // More than the buffers of both sides hold.
        let large = Bytes::from(vec![0; 32 * 1024 * 1024]);
        let post = || Request::post(format!("http://{address}/")).body(Full::new(large.clone())).unwrap();
        let (first, second, third) =
            tokio::join!(connections.send(post()), connections.send(post()), connections.send(post()));
        drop((first.unwrap(), second.unwrap(), third.unwrap()));
        let request = Request::get(format!("http://{address}/")).body(Full::default()).unwrap();
        tokio::time::timeout(Duration::from_secs(30), connections.send(request)).await.unwrap().unwrap();
        // It has waited for one of those that another caller left, and not for all.
        let idle: usize = connections
            .idle
            .iter()
            .flat_map(|idle| idle.lock().values().map(Vec::len).collect::<Vec<_>>())
            .sum();
        assert_eq!(idle, 3, "two that are not read, and its own");
    }
}
