//! A fake of a webhook or a policy decision point on loopback, with its own certificates.

use std::{
    convert::Infallible,
    fs,
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::fixture::ReceivedRequest;

/// A folder with an authority and a client's certificate of it. It is deleted with the test.
pub(crate) struct Certificates {
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
    authority: CertificateDer<'static>,
}

impl Certificates {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("skep-certificates-{}-{number}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        fs::write(folder.join("ca.crt"), certificate.pem()).unwrap();
        let authority = certificate.der().clone();
        let made = Self { folder, issuer: Issuer::new(params, key), authority };
        let (certificate, key) = made.sign(&[]);
        fs::write(made.folder.join("tls.crt"), certificate).unwrap();
        fs::write(made.folder.join("tls.key"), key).unwrap();
        made
    }

    /// The path of a file: `ca.crt`, `tls.crt` or `tls.key`.
    pub(crate) fn path(&self, file: &str) -> String {
        self.folder.join(file).display().to_string()
    }

    fn sign(&self, names: &[&str]) -> (String, String) {
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }

    /// TLS with a certificate of this authority, and with client certificates if required.
    fn acceptor(&self, requires_client_certificate: bool) -> TlsAcceptor {
        let (certificate, key) = self.sign(&["127.0.0.1"]);
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone());
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let builder = if requires_client_certificate {
            let mut roots = RootCertStore::empty();
            roots.add(self.authority.clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        } else {
            builder.with_no_client_auth()
        };
        TlsAcceptor::from(Arc::new(builder.with_single_cert(vec![certificate], key).unwrap()))
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).ok();
    }
}

/// The service: it responds as scripted by a test, and records its requests.
pub(crate) struct FakeHttps {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
    connections: Arc<AtomicUsize>,
}

impl FakeHttps {
    pub(crate) async fn start(
        certificates: &Certificates,
        requires_client_certificate: bool,
        script: impl Fn(&ReceivedRequest) -> Response<Bytes> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (requests, connections): (Arc<Mutex<Vec<ReceivedRequest>>>, Arc<AtomicUsize>) =
            Default::default();
        let (script, memory, count) = (Arc::new(script), requests.clone(), connections.clone());
        let tls = certificates.acceptor(requires_client_certificate);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (script, memory, count) = (script.clone(), memory.clone(), count.clone());
                let tls = tls.clone();
                tokio::spawn(async move {
                    let Ok(stream) = tls.accept(stream).await else { return };
                    count.fetch_add(1, Ordering::Relaxed);
                    let service = service_fn(move |request: Request<Incoming>| {
                        let (script, memory) = (script.clone(), memory.clone());
                        async move {
                            let (parts, body) = request.into_parts();
                            let body = body.collect().await.unwrap().to_bytes();
                            let path = parts.uri.to_string();
                            let request =
                                ReceivedRequest { method: parts.method, path, headers: parts.headers, body };
                            memory.lock().unwrap().push(request.clone());
                            Ok::<_, Infallible>(script(&request).map(Full::new))
                        }
                    });
                    http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
                });
            }
        });
        Self { address, requests, connections }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<ReceivedRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// The number of connections.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}
