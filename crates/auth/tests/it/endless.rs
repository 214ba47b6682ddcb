//! A token endpoint whose response has no end.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

/// Starts one, and returns its address.
pub(crate) async fn endless_endpoint() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/token", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                assert!(stream.read(&mut [0; 8 << 10]).await.unwrap() > 0);
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"access_token\":\"";
                stream.write_all(head.as_bytes()).await.unwrap();
                // It ends when the client has read enough, and closes the connection.
                while stream.write_all(&[b'x'; 64 << 10]).await.is_ok() {}
            });
        }
    });
    address
}
