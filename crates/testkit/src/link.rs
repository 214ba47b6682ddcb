//! A connection that can be slowed down and cut.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use anyhow::Result;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, tcp::OwnedReadHalf, tcp::OwnedWriteHalf},
    sync::watch,
    task::{AbortHandle, JoinSet},
    time::sleep,
};

/// A TCP relay on loopback between a client and a server of the control plane. It forwards bytes only.
pub struct Link {
    address: SocketAddr,
    state: Arc<watch::Sender<State>>,
    relay: AbortHandle,
}

#[derive(Clone, Copy, Default)]
struct State {
    delay: Duration,
    cut: bool,
    /// Connections of an older epoch are closed.
    epoch: u64,
}

impl Link {
    /// A link to a server on the given loopback port.
    pub(crate) async fn to(port: u16) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let state = Arc::new(watch::Sender::new(State::default()));
        let relay = tokio::spawn(relay(listener, port, state.clone())).abort_handle();
        Ok(Self { address, state, relay })
    }

    /// Where clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Delays everything that is sent, in both directions, by this time.
    pub fn delay(&self, delay: Duration) {
        self.state.send_modify(|state| state.delay = delay);
    }

    /// Closes every open connection, watches included. New ones are let through.
    pub fn drop_connections(&self) {
        self.state.send_modify(|state| state.epoch += 1);
    }

    /// Closes every connection and refuses new ones until [`Link::restore`].
    pub fn cut(&self) {
        self.state.send_modify(|state| {
            state.cut = true;
            state.epoch += 1;
        });
    }

    /// Lets connections through again.
    pub fn restore(&self) {
        self.state.send_modify(|state| state.cut = false);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.relay.abort();
    }
}

async fn relay(listener: TcpListener, port: u16, state: Arc<watch::Sender<State>>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let state = state.subscribe();
        if !state.borrow().cut {
            connections.spawn(connection(client, port, state));
        }
        while connections.try_join_next().is_some() {}
    }
}

/// Carries one connection until one side closes it or the link drops it. An error is a closed connection.
async fn connection(client: TcpStream, port: u16, mut state: watch::Receiver<State>) {
    let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await else { return };
    client.set_nodelay(true).ok();
    server.set_nodelay(true).ok();
    let born = state.borrow().epoch;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::select! {
        () = copy(from_client, to_server, state.clone()) => {}
        () = copy(from_server, to_client, state.clone()) => {}
        _ = state.wait_for(|state| state.epoch != born) => {}
    }
}

async fn copy(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, state: watch::Receiver<State>) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let delay = state.borrow().delay;
        if !delay.is_zero() {
            sleep(delay).await;
        }
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
