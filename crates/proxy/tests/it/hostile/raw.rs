//! A client that sends any bytes.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// How long a response may take.
const PATIENCE: Duration = Duration::from_secs(180);

/// A connection of such a client.
pub(crate) struct Raw {
    stream: TcpStream,
    read: Vec<u8>,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// In lower case.
    pub(crate) head: String,
}

impl Raw {
    pub(crate) async fn new(address: SocketAddr) -> Self {
        Self::of(TcpStream::connect(address).await.unwrap())
    }

    pub(crate) fn of(stream: TcpStream) -> Self {
        Self { stream, read: Vec::new() }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
    }

    /// Sends, and returns whether the connection is still open.
    pub(crate) async fn try_send(&mut self, bytes: &str) -> bool {
        self.stream.write_all(bytes.as_bytes()).await.is_ok()
    }

    /// The next response, or nothing if the connection ends without one.
    pub(crate) async fn reply(&mut self) -> Option<Reply> {
        let end = loop {
            if let Some(end) = self.read.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            if !self.more().await {
                return None;
            }
        };
        let head = String::from_utf8_lossy(&self.read[..end]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.map_or(0, |length| length.parse().unwrap());
        while self.read.len() < end + length {
            assert!(self.more().await, "half a response: {head}");
        }
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
        self.read.drain(..end + length);
        Some(Reply { status, head })
    }

    /// The status of the next response, whatever its body.
    pub(crate) async fn status(&mut self) -> u16 {
        while !self.read.windows(2).any(|window| window == b"\r\n") {
            assert!(self.more().await, "no response");
        }
        String::from_utf8_lossy(&self.read).split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap()
    }

    /// Waits until the proxy ends the connection, and returns whether it sent nothing more before.
    pub(crate) async fn ends(&mut self) -> bool {
        self.read.is_empty() && !self.more().await
    }

    async fn more(&mut self) -> bool {
        let read = self.stream.read_buf(&mut self.read);
        let read = tokio::time::timeout(PATIENCE, read).await.expect("nothing is received");
        // A connection that is reset has ended as well.
        read.is_ok_and(|count| count > 0)
    }
}

/// The status of the response to these bytes.
pub(crate) async fn status(address: SocketAddr, bytes: impl AsRef<[u8]>) -> Option<u16> {
    let mut raw = Raw::new(address).await;
    raw.send(bytes).await;
    raw.reply().await.map(|reply| reply.status)
}

/// A head with these lines after the first and `Host`, and a body.
pub(crate) fn post(lines: &[&str], body: &str) -> String {
    let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    format!("POST /mcp HTTP/1.1\r\nHost: files\r\nContent-Type: application/json\r\n{lines}\r\n{body}")
}
