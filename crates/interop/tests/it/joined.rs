//! A virtual server in the test's process.

use std::{fmt::Write, net::SocketAddr};

use skep_vmcp::{Listen, Settings, Workers, serve};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

/// A virtual server that serves until it is stopped.
pub(crate) struct Joined {
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    served: JoinHandle<std::io::Result<()>>,
}

/// A backend: its name, its URL and its transport.
pub(crate) type Backend<'a> = (&'a str, &'a str, &'a str);

impl Joined {
    /// The virtual server in front of these backends, with this aggregation.
    pub(crate) async fn new(aggregation: &str, backends: &[Backend<'_>]) -> Self {
        let mut config = format!(
            "name: joined\ngroupRef: joined\nincomingAuth: {{type: anonymous}}\noutgoingAuth: {{source: inline}}\n\
             aggregation: {aggregation}\nbackends:\n"
        );
        for (name, url, transport) in backends {
            writeln!(config, "  - {{name: {name}, url: \"{url}\", transport: {transport}}}").unwrap();
        }
        let settings = Settings::parse(&config).unwrap_or_else(|errors| panic!("{errors:?}"));
        let listen = Listen { host: "127.0.0.1".into(), session_life: None, audits: false };
        let server = settings.server(&listen, None).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let served = tokio::spawn(serve(listener, server.endpoint(), Workers::default(), async move {
            stopped.await.ok();
        }));
        Self { address, stop, served }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub(crate) async fn stop(self) {
        self.stop.send(()).ok();
        self.served.await.unwrap().unwrap();
    }
}
