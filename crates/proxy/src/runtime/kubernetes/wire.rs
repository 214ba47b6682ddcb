//! The connection to the server in a pod.
//!
//! At its other end is a kubelet, behind the API server. The tests have a fake of both, which speaks their protocol.

use std::{future::Future, io};

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api,
    api::{AttachParams, AttachedProcess},
};
use skep_config::objects::MCP_CONTAINER;
use tracing::info;

use super::attached;
use crate::{
    limits,
    runtime::{BoxRead, BoxWrite},
};

/// The connection to a pod.
pub(super) trait Wire {
    /// Attaches to the server in this pod. The streams end when `lost` is done, if not before.
    fn open(
        &self,
        pod: &str,
        lost: impl Future<Output = ()> + Send + 'static,
    ) -> impl Future<Output = io::Result<(BoxRead, BoxWrite)>> + Send;
}

/// The connection through the API server, over a WebSocket.
pub(super) struct ApiServer(pub(super) Api<Pod>);

impl Wire for ApiServer {
    async fn open(
        &self,
        pod: &str,
        lost: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<(BoxRead, BoxWrite)> {
        // What the server writes to its standard error is for its own log, not for the protocol.
        let params = AttachParams::default()
            .container(MCP_CONTAINER)
            .stdin(true)
            .stdout(true)
            .stderr(false)
            .max_stdin_buf_size(limits::ATTACH_BUFFER)
            .max_stdout_buf_size(limits::ATTACH_BUFFER);
        let mut process = self.0.attach(pod, &params).await.map_err(io::Error::other)?;
        let (Some(output), Some(input)) = (process.stdout(), process.stdin()) else {
            return Err(io::Error::other("the pod's streams are missing"));
        };
        let pod = pod.to_owned();
        Ok(attached::until(end(process, pod, lost), output, input))
    }
}

/// Ends with the connection, or with the pod; dropping it ends the connection.
async fn end(mut process: AttachedProcess, pod: String, lost: impl Future<Output = ()> + Send) {
    // It completes when the connection ends, with or without a status.
    let Some(status) = process.take_status() else { return };
    tokio::select! {
        status = status => {
            let message = status.and_then(|status| status.message).unwrap_or_default();
            info!(pod, message, "detached from the server's pod");
        }
        () = lost => info!(pod, "the server's pod was deleted"),
    }
}

#[cfg(test)]
mod tests {
    use std::{future::pending, sync::Mutex};

    use futures::{SinkExt, StreamExt};
    use kube::{Client, Config};
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::{TcpListener, TcpStream},
        sync::oneshot,
    };
    use tokio_tungstenite::{
        WebSocketStream, accept_hdr_async,
        tungstenite::{
            Message,
            handshake::server::{Request, Response},
        },
    };

    use super::*;

    /// A connection to a fake of the API server and the kubelet, which handles it like this.
    async fn fake<F>(
        serve: impl FnOnce(String, WebSocketStream<TcpStream>) -> F + Send + 'static,
    ) -> ApiServer
    where
        F: Future<Output = ()> + Send,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let requested = Mutex::new(String::new());
            #[allow(clippy::result_large_err)]
            let agree = |request: &Request, mut response: Response| {
                *requested.lock().unwrap() = request.uri().to_string();
                let protocol = "v5.channel.k8s.io".parse().unwrap();
                response.headers_mut().insert("sec-websocket-protocol", protocol);
                Ok(response)
            };
            let socket = accept_hdr_async(stream, agree).await.unwrap();
            serve(requested.into_inner().unwrap(), socket).await;
        });
        let config = Config::new(format!("http://{address}").parse().unwrap());
        ApiServer(Api::namespaced(Client::try_from(config).unwrap(), "ns"))
    }

    fn output(text: &str) -> Message {
        Message::binary([&[1], text.as_bytes()].concat())
    }

    #[tokio::test]
    async fn input_and_output_are_forwarded_and_the_output_ends_with_the_server() {
        let (sender, received) = oneshot::channel();
        let wire = fake(|requested, mut socket| async move {
            let Some(Ok(Message::Binary(frame))) = socket.next().await else { panic!("no input") };
            sender.send((requested, frame)).unwrap();
            // Not ours to read: standard error.
            socket.send(Message::binary(b"\x02oops\n".to_vec())).await.unwrap();
            socket.send(output("pong\n")).await.unwrap();
            socket.send(Message::binary([&[3], &b"{\"status\":\"Success\"}"[..]].concat())).await.unwrap();
            pending::<()>().await;
        });
        let (mut read, mut write) = wire.await.open("files-0", pending()).await.unwrap();
        write.write_all(b"ping\n").await.unwrap();
        let (requested, frame) = received.await.unwrap();
        assert_eq!(
            requested,
            "/api/v1/namespaces/ns/pods/files-0/attach?&stdin=true&stdout=true&container=mcp"
        );
        assert_eq!(&frame[..], b"\0ping\n");
        let mut all = String::new();
        read.read_to_string(&mut all).await.unwrap();
        assert_eq!(all, "pong\n");
        assert_eq!(write.write_all(b"more").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[tokio::test]
    async fn a_broken_connection_ends_the_output() {
        let wire = fake(|_, mut socket| async move {
            socket.send(output("half a li")).await.unwrap();
        });
        let (mut read, _write) = wire.await.open("files-0", pending()).await.unwrap();
        let mut all = String::new();
        read.read_to_string(&mut all).await.unwrap();
        assert_eq!(all, "half a li");
    }

    #[tokio::test]
    async fn dropping_both_streams_closes_the_connection() {
        let (sender, received) = oneshot::channel();
        let wire = fake(|_, mut socket| async move {
            while let Some(Ok(_)) = socket.next().await {}
            sender.send(()).unwrap();
        });
        drop(wire.await.open("files-0", pending()).await.unwrap());
        received.await.unwrap();
    }

    #[tokio::test]
    async fn the_deletion_of_the_pod_ends_an_idle_connection() {
        let wire = fake(|_, socket| async move {
            let _held = socket;
            pending::<()>().await;
        });
        let (lose, lost) = oneshot::channel::<()>();
        let lost = async move { drop(lost.await) };
        let (mut read, _write) = wire.await.open("files-0", lost).await.unwrap();
        lose.send(()).unwrap();
        assert_eq!(read.read(&mut [0; 8]).await.unwrap(), 0);
    }
}
