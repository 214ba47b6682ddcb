//! Clients, each with its own connection, one request after another.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Result;
use bytes::Bytes;
use skep_bench_harness::{Client, Measured, load};
use tokio::task::JoinSet;

pub(crate) const CALL: Bytes = Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","arguments":{"question":"what is measured here?","depth":3},"_meta":{"progressToken":1}}}"#);

/// How it is called.
#[derive(Clone)]
pub(crate) struct Load {
    pub(crate) connections: usize,
    pub(crate) time: Duration,
    pub(crate) authorization: Option<Arc<str>>,
}

impl Load {
    /// The same for a moment, before it is measured.
    pub(crate) fn warm_up(&self) -> Self {
        Self { time: Duration::from_secs(1), ..self.clone() }
    }

    /// Ten times as many connections.
    pub(crate) fn overload(&self) -> Self {
        Self { connections: self.connections * 10, ..self.clone() }
    }

    /// Calls a tool for a given time, in one session per connection.
    pub(crate) async fn run(&self, address: SocketAddr) -> Result<Measured> {
        let client = Client::new(address, self.authorization.clone());
        load(&client, self.connections, self.time, CALL).await
    }
}

/// Starts this many sessions, and leaves them open.
pub(crate) async fn sessions(address: SocketAddr, count: usize, load: &Load) -> Result<()> {
    let mut callers = JoinSet::new();
    let connections = load.connections;
    for _ in 0..connections {
        let client = Client::new(address, load.authorization.clone());
        callers.spawn(async move {
            let mut connection = client.connect().await?;
            for _ in 0..count / connections {
                connection.start_session().await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(caller) = callers.join_next().await {
        caller??;
    }
    Ok(())
}
