//! The attack of a name whose address changes: it is a public one when it is checked, and a private one afterwards.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::FutureExt;
use http::Request;
use skep_egress::Proxies;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::{FetchError, Fetcher, connect::Guard};

/// All of 127.0.0.0/8 is this machine: one address is the internet here, and another one is the network behind it.
const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
const CLOSED: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3));
const PRIVATE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

const FORBIDDEN: &str = "its address is private, which is not allowed";

/// A server of the attacker, an inner one at the same port, and DNS answers that the attacker chooses.
struct Attack {
    inner: TcpListener,
    port: u16,
    /// How many requests the attacker's server has received.
    received: Arc<AtomicUsize>,
    /// How many times the name was resolved.
    resolved: Arc<AtomicUsize>,
    fetcher: Fetcher,
}

impl Attack {
    /// Each look-up gets the next of the answers, and the last one from then on. The server responds with `response`.
    async fn new(answers: &[&[IpAddr]], response: &'static str) -> Self {
        Self::through(answers, response, None).await
    }

    async fn through(answers: &[&[IpAddr]], response: &'static str, proxy: Option<String>) -> Self {
        let (server, inner) = listeners().await;
        let port = inner.local_addr().unwrap().port();
        let (received, resolved) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        tokio::spawn(serve(server, response, received.clone()));
        let guard = Guard {
            resolve: resolver(answers, resolved.clone()),
            permits: Some(|address| address != PRIVATE),
        };
        let proxies = Proxies::new(|name| proxy.clone().filter(|_| name == "HTTP_PROXY")).unwrap();
        let fetcher = Fetcher::guarded(guard, true, None, proxies).unwrap();
        Self { inner, port, received, resolved, fetcher }
    }

    /// Fetches a document that the attacker has named.
    async fn fetch(&self) -> Result<Bytes, FetchError> {
        let uri = format!("http://rebind.example:{}/c.json", self.port).parse().unwrap();
        self.fetcher.document(uri, None, 1024, Duration::from_secs(10)).await.map(http::Response::into_body)
    }

    /// The same, where redirects are followed.
    async fn fetch_following_redirects(&self) -> Result<Bytes, FetchError> {
        let request = Request::get(format!("http://rebind.example:{}/keys", self.port));
        let request = request.body(Bytes::new()).unwrap();
        self.fetcher.bytes(request, 1024, Duration::from_secs(10)).await.map(|(_, body)| body)
    }

    fn counts(&self) -> (usize, usize) {
        (self.resolved.load(Ordering::SeqCst), self.received.load(Ordering::SeqCst))
    }

    fn assert_inner_is_untouched(&self) {
        assert!(self.inner.accept().now_or_never().is_none(), "there was a connection");
    }
}

/// Listeners of the public and of the private address, at one port.
async fn listeners() -> (TcpListener, TcpListener) {
    loop {
        let server = TcpListener::bind((PUBLIC, 0)).await.unwrap();
        let port = server.local_addr().unwrap().port();
        if let Ok(inner) = TcpListener::bind((PRIVATE, port)).await {
            return (server, inner);
        }
    }
}

fn resolver(answers: &[&[IpAddr]], resolved: Arc<AtomicUsize>) -> super::connect::Resolve {
    let answers: Vec<Vec<IpAddr>> = answers.iter().rev().map(|answer| answer.to_vec()).collect();
    let answers = Arc::new(Mutex::new(answers));
    Arc::new(move |name| {
        assert_eq!(name, "rebind.example");
        resolved.fetch_add(1, Ordering::SeqCst);
        let mut answers = answers.lock().unwrap();
        let answer = if answers.len() > 1 { answers.pop() } else { answers.first().cloned() };
        let addresses = answer.unwrap().into_iter().map(|address| SocketAddr::new(address, 0)).collect();
        async { io::Result::Ok(addresses) }.boxed()
    })
}

/// A connection for each request, so that the next one resolves the name again.
async fn serve(server: TcpListener, response: &'static str, received: Arc<AtomicUsize>) {
    while let Ok((mut stream, _)) = server.accept().await {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(stream.read_u8().await.unwrap());
        }
        received.fetch_add(1, Ordering::SeqCst);
        stream.write_all(response.as_bytes()).await.unwrap();
    }
}

const DOCUMENT: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}";
const REDIRECT: &str =
    "HTTP/1.1 302 Found\r\nLocation: /next\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// If a name were resolved once to check it, and once more to connect, every second answer would be connected to.
#[tokio::test]
async fn the_address_that_is_checked_is_the_one_that_is_connected_to() {
    let attack = Attack::new(&[&[PUBLIC], &[PRIVATE]], DOCUMENT).await;
    assert_eq!(&*attack.fetch().await.unwrap(), b"{}");
    assert_eq!(attack.counts(), (1, 1), "one look-up for one connection");
    let error = attack.fetch().await.unwrap_err().to_string();
    assert!(error.contains(FORBIDDEN), "{error}");
    assert_eq!(attack.counts(), (2, 1));
    attack.assert_inner_is_untouched();
}

#[tokio::test]
async fn a_name_that_is_public_again_after_it_was_private_is_no_way_in() {
    let attack = Attack::new(&[&[PRIVATE], &[PUBLIC], &[PRIVATE], &[PUBLIC]], DOCUMENT).await;
    for is_permitted in [false, true, false, true] {
        assert_eq!(attack.fetch().await.is_ok(), is_permitted);
    }
    attack.assert_inner_is_untouched();
}

#[tokio::test]
async fn a_redirect_is_checked_like_the_first_request() {
    let attack = Attack::new(&[&[PUBLIC], &[PRIVATE]], REDIRECT).await;
    let error = attack.fetch_following_redirects().await.unwrap_err().to_string();
    assert!(error.contains(FORBIDDEN), "{error}");
    assert_eq!(attack.counts(), (2, 1), "the redirect was not followed");
    attack.assert_inner_is_untouched();
}

#[tokio::test]
async fn a_public_address_that_refuses_does_not_make_way_for_a_private_one() {
    for answer in [[CLOSED, PRIVATE], [PRIVATE, CLOSED]] {
        let attack = Attack::new(&[&answer], DOCUMENT).await;
        assert!(attack.fetch().await.is_err());
        assert_eq!(attack.counts(), (1, 0));
        attack.assert_inner_is_untouched();
    }
}

/// A proxy resolves the name itself. Each request is checked before it gets the name.
#[tokio::test]
async fn a_name_with_a_private_address_is_not_given_to_a_proxy_later_either() {
    let proxy = TcpListener::bind((PUBLIC, 0)).await.unwrap();
    let address = proxy.local_addr().unwrap().to_string();
    let received = Arc::<AtomicUsize>::default();
    tokio::spawn(serve(proxy, REDIRECT, received.clone()));
    let attack = Attack::through(&[&[PUBLIC], &[PUBLIC, PRIVATE]], DOCUMENT, Some(address)).await;
    let error = attack.fetch_following_redirects().await.unwrap_err().to_string();
    assert!(error.contains(FORBIDDEN), "{error}");
    assert_eq!(received.load(Ordering::SeqCst), 1, "the redirect was given to the proxy");
    attack.assert_inner_is_untouched();
}
