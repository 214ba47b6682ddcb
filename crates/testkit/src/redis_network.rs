//! A network in front of a Redis, which misbehaves on purpose.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::AbortHandle,
};

use crate::Redis;

/// A fault of one command.
#[derive(Clone, Copy, Debug)]
pub enum ReplyFault {
    /// The connection breaks instead.
    Lost,
    /// It comes, and once more before the next one.
    Doubled,
    /// It never comes, and the connection stays open.
    Withheld,
    /// It is an error, as of a Redis without memory, and the command is not executed.
    Refused,
}

type Faults = Arc<Mutex<Vec<(String, ReplyFault)>>>;

/// A network between clients and a Redis.
pub struct RedisNetwork {
    address: SocketAddr,
    faults: Faults,
    relay: AbortHandle,
}

impl RedisNetwork {
    /// One that carries everything, until [`fail`](Self::fail).
    pub async fn before(redis: &Redis) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let (redis, faults) = (redis.address(), Faults::default());
        let known = faults.clone();
        let relay = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(&redis).await else { continue };
                tokio::spawn(carry(client, server, known.clone()));
            }
        });
        Self { address, faults, relay: relay.abort_handle() }
    }

    /// Where clients connect to, as `host:port`.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Does this to the next reply to a command that has this text.
    pub fn fail(&self, command: &str, fault: ReplyFault) {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).push((command.to_owned(), fault));
    }

    /// Whether all that was to fail has failed.
    pub fn has_failed(&self) -> bool {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

impl Drop for RedisNetwork {
    fn drop(&mut self) {
        self.relay.abort();
    }
}

/// The ping that follows each command.
const PING: &[u8] = b"*2\r\n$4\r\nPING\r\n";
const OUT_OF_MEMORY: &[u8] = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n";

async fn carry(mut client: TcpStream, mut server: TcpStream, faults: Faults) {
    let (mut sent, mut reply) = (vec![0; 512 << 10], vec![0; 512 << 10]);
    let (mut due, mut again) = (None, Vec::new());
    loop {
        tokio::select! {
            length = client.read(&mut sent) => {
                let Ok(length @ 1..) = length else { return };
                due = due.or_else(|| fault_of(&sent[..length], &faults));
                let mut rest = &sent[..length];
                if due.take_if(|fault| matches!(fault, ReplyFault::Refused)).is_some() {
                    let second = rest.windows(PING.len()).position(|bytes| bytes == PING);
                    rest = &rest[second.expect("a ping follows each command")..];
                    if client.write_all(OUT_OF_MEMORY).await.is_err() { return }
                }
                if server.write_all(rest).await.is_err() { return }
            }
            length = server.read(&mut reply) => {
                let Ok(length @ 1..) = length else { return };
                let mut bytes = std::mem::take(&mut again);
                bytes.extend_from_slice(&reply[..length]);
                match due.take() {
                    Some(ReplyFault::Lost) => return,
                    Some(ReplyFault::Withheld) => continue,
                    Some(ReplyFault::Doubled) => again = bytes.clone(),
                    None | Some(ReplyFault::Refused) => {}
                }
                if client.write_all(&bytes).await.is_err() { return }
            }
        }
    }
}

fn fault_of(command: &[u8], faults: &Faults) -> Option<ReplyFault> {
    let command = String::from_utf8_lossy(command);
    let mut faults = faults.lock().unwrap_or_else(PoisonError::into_inner);
    let place = faults.iter().position(|(text, _)| command.contains(text))?;
    Some(faults.remove(place).1)
}
