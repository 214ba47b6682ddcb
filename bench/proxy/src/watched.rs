//! A proxy whose calls are watched, and those who watch it.
//!
//! skep accepts watchers in a cluster only, by keys of its API server. So the benchmark runs the same proxy itself, with the keys of
//! its own issuer.

use std::{fs, net::SocketAddr, path::Path, thread};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::json;
use skep_config::{RunConfig, calls, run_config::Oidc};
use skep_proxy::{CallsPage, Configured, Extras, Proxy, Workers, limits, serve};
use skep_testkit::IdentityProvider;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy, sink},
    net::{TcpListener, TcpStream},
};

const READER: &str = "console";
const AUDIENCE: &str = "calls";

/// Runs the proxy of this RunConfig, which records calls for holders of tokens of this issuer, until the process ends. It has as
/// many threads as `skep proxy`, with the same stacks.
pub(crate) fn run_proxy(file: &Path, issuer: &str) -> Result<()> {
    let (file, issuer) = (file.to_owned(), issuer.to_owned());
    let thread = thread::Builder::new().stack_size(limits::STACK);
    let running = thread.spawn(move || serve_proxy(&file, &issuer))?;
    running.join().unwrap_or_else(|_| Err(anyhow!("the proxy panicked")))
}

fn serve_proxy(file: &Path, issuer: &str) -> Result<()> {
    let config = RunConfig::parse(&fs::read_to_string(file)?)?;
    let oidc = Oidc {
        audience: AUDIENCE.into(),
        jwks_url: format!("{issuer}/keys"),
        allow_private_ip: true,
        insecure_allow_http: true,
        ..Oidc::default()
    };
    let proxy = Proxy::new(Configured {
        config: &config,
        extras: Extras::default().with_calls_page(CallsPage::new(READER, &oidc)?),
    })?;
    let workers = Workers::beside_this_thread()?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let listener = TcpListener::bind((config.host.as_str(), config.port)).await?;
        Ok(serve(listener, proxy.endpoint(), workers, std::future::pending()).await?)
    })
}

/// Watchers of a proxy, until they are dropped.
pub(crate) struct Watchers(
    #[expect(dead_code, reason = "the connections of those who do not read are only held")] Vec<TcpStream>,
);

impl Watchers {
    /// Attaches this many to the proxy. Every second one reads what it gets; the others do not.
    pub(crate) async fn attach(proxy: SocketAddr, count: usize, provider: &IdentityProvider) -> Result<Self> {
        let token = provider.token(json!({"sub": READER, "aud": AUDIENCE}));
        let mut stalled = Vec::new();
        for number in 0..count {
            let mut stream = TcpStream::connect(proxy).await?;
            let head = format!(
                "GET {} HTTP/1.1\r\nhost: {proxy}\r\nauthorization: Bearer {token}\r\n\r\n",
                calls::PATH
            );
            stream.write_all(head.as_bytes()).await?;
            let mut begin = [0; 12];
            stream.read_exact(&mut begin).await.context("a watcher gets no response")?;
            ensure!(&begin == b"HTTP/1.1 200", "a watcher gets {}", String::from_utf8_lossy(&begin));
            if number % 2 == 0 {
                // It ends with the proxy.
                tokio::spawn(async move { copy(&mut stream, &mut sink()).await });
            } else {
                stalled.push(stream);
            }
        }
        Ok(Self(stalled))
    }
}
