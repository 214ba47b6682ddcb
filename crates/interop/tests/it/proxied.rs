//! A proxy in the test's process.

use std::net::SocketAddr;

use serde_json::Value;
use skep_config::RunConfig;
use skep_proxy::{Proxy, Workers, serve};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

/// A proxy that serves until it is stopped.
pub(crate) struct Proxied {
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    served: JoinHandle<std::io::Result<()>>,
}

impl Proxied {
    /// The proxy of a RunConfig that may depend on where it listens.
    pub(crate) async fn new(config: impl FnOnce(SocketAddr) -> Value) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let config = RunConfig::parse(&config(address).to_string()).unwrap();
        let proxy = Proxy::new(&config).unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let served = tokio::spawn(serve(listener, proxy.endpoint(), Workers::default(), async move {
            stopped.await.ok();
        }));
        Self { address, stop, served }
    }

    /// Ends it, and with it the server that it runs.
    pub(crate) async fn stop(self) {
        self.stop.send(()).ok();
        self.served.await.unwrap().unwrap();
    }
}
