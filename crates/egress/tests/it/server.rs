//! A server that responds with what it has received, with or without TLS.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{CertificateParams, KeyPair};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

/// The server, at every address of this machine.
pub(crate) struct Server {
    pub(crate) port: u16,
    connections: Arc<AtomicUsize>,
}

/// What secures it, and a client that trusts it alone.
pub(crate) struct Tls {
    acceptor: TlsAcceptor,
    pub(crate) client: ClientConfig,
}

impl Tls {
    /// A certificate for these names, of a server that speaks these protocols.
    pub(crate) fn new(names: &[&str], protocols: &[&str]) -> Self {
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
        let certificate = CertificateDer::from(certificate.der().to_vec());
        let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone());
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let mut server = builder.with_single_cert(vec![certificate.clone()], key).unwrap();
        server.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        let mut roots = RootCertStore::empty();
        roots.add(certificate).unwrap();
        let client =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let client = client.with_root_certificates(roots).with_no_client_auth();
        Self { acceptor: TlsAcceptor::from(Arc::new(server)), client }
    }
}

impl Server {
    pub(crate) async fn start(tls: Option<&Tls>) -> Self {
        let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        let acceptor = tls.map(|tls| tls.acceptor.clone());
        let connections = Arc::new(AtomicUsize::new(0));
        let count = connections.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                match acceptor.clone() {
                    Some(acceptor) => drop(tokio::spawn(async move {
                        let Ok(stream) = acceptor.accept(stream).await else { return };
                        let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                        serve(stream, is_h2).await;
                    })),
                    None => drop(tokio::spawn(serve(stream, false))),
                }
            }
        });
        Self { port: address.port(), connections }
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, is_h2: bool) {
    let service = service_fn(respond);
    let stream = TokioIo::new(stream);
    if is_h2 {
        hyper::server::conn::http2::Builder::new(TokioExecutor::new())
            .serve_connection(stream, service)
            .await
            .ok();
    } else {
        hyper::server::conn::http1::Builder::new().serve_connection(stream, service).await.ok();
    }
}

/// The version, the address and the headers of the request, and then its body.
async fn respond(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let text =
        format!("{:?} {} {:?} {}", head.version, head.uri, head.headers, String::from_utf8_lossy(&body));
    Ok(Response::new(Full::new(text.into())))
}
