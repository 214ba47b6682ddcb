//! A fake of an egress proxy, which resolves every name to this machine, and records what it has read.

use std::sync::{Arc, Mutex};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
};

/// The proxy.
pub(crate) struct FakeProxy {
    pub(crate) address: String,
    heads: Arc<Mutex<Vec<String>>>,
}

impl FakeProxy {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let memory = heads.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(forward(stream, memory.clone()));
            }
        });
        Self { address, heads }
    }

    /// The heads of the requests to the proxy itself.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

async fn forward(mut client: TcpStream, heads: Arc<Mutex<Vec<String>>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = client.read_u8().await else { return };
        head.push(byte);
    }
    let head = String::from_utf8(head).unwrap();
    heads.lock().unwrap().push(head.clone());
    let target = head.split(' ').nth(1).unwrap();
    let authority = target.trim_start_matches("http://").split('/').next().unwrap();
    let port = authority.rsplit_once(':').unwrap().1;
    let mut server = TcpStream::connect(format!("127.0.0.1:{port}")).await.unwrap();
    if head.starts_with("CONNECT ") {
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    } else {
        let path = target.trim_start_matches("http://").trim_start_matches(authority);
        let origin = head.replacen(target, path, 1);
        let kept =
            origin.split("\r\n").filter(|line| !line.to_lowercase().starts_with("proxy-authorization:"));
        server.write_all(kept.collect::<Vec<_>>().join("\r\n").as_bytes()).await.unwrap();
    }
    copy_bidirectional(&mut client, &mut server).await.ok();
}
