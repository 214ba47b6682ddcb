//! TLS: which certificates are trusted, and which one is presented.

use std::{fs, sync::Arc};

use rustls::{
    ClientConfig, ConfigBuilder, DigitallySignedStruct, RootCertStore, SignatureScheme, WantsVerifier,
    client::{
        WantsClientCert,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
};

/// What the connection to a service is secured with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trust<'a> {
    /// A file with the authorities that are trusted, and no others. Empty means those of the system.
    pub(crate) authorities: &'a str,
    /// A file with the certificate to show.
    pub(crate) certificate: &'a str,
    /// A file with the key of that certificate.
    pub(crate) key: &'a str,
    /// Whether the service's certificate goes unchecked.
    pub(crate) unchecked: bool,
}

pub(super) fn config(trust: &Trust<'_>) -> Result<ClientConfig, String> {
    let builder = if trust.unchecked {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let unchecked = Arc::new(Unchecked(provider.clone()));
        builder(provider)?.dangerous().with_custom_certificate_verifier(unchecked)
    } else {
        verified("ca_bundle_path", trust.authorities)?
    };
    match (trust.certificate, trust.key) {
        ("", "") => Ok(builder.with_no_client_auth()),
        ("", _) | (_, "") => Err("client_cert_path and client_key_path: set both, or neither".into()),
        (certificate, key) => {
            let chain = certificates("client_cert_path", certificate)?;
            let wrong = |error: &dyn std::fmt::Display| format!("client_key_path: {key}: {error}");
            let pem = fs::read(key).map_err(|error| wrong(&error))?;
            // Not the parser's own message: it may quote the file.
            let key = PrivateKeyDer::from_pem_slice(&pem).map_err(|_| wrong(&"it contains no key"))?;
            builder.with_client_auth_cert(chain, key).map_err(|error| format!("client_cert_path: {error}"))
        }
    }
}

/// Connections that trust the authorities in this file, and no others. Without a file, those of the system are trusted.
pub(crate) fn verified(
    field: &str,
    path: &str,
) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, String> {
    if path.is_empty() {
        return verified_by_system();
    }
    let pem = fs::read(path).map_err(|error| format!("{field}: {path}: {error}"))?;
    trusted(&pem).map_err(|error| format!("{field}: {path}: {error}"))
}

/// The same for authorities in PEM.
pub(crate) fn trusted(pem: &[u8]) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, String> {
    let mut roots = RootCertStore::empty();
    for certificate in parsed(pem)? {
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    Ok(builder(Arc::new(aws_lc_rs::default_provider()))?.with_root_certificates(roots))
}

/// The same for the authorities of the system.
pub(crate) fn verified_by_system() -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, String> {
    skep_egress::verified_by_system().map_err(failed)
}

fn builder(provider: Arc<CryptoProvider>) -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, String> {
    ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(failed)
}

fn failed(error: rustls::Error) -> String {
    format!("TLS cannot be set up: {error}")
}

fn certificates(field: &str, path: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong = |what: &dyn std::fmt::Display| format!("{field}: {path}: {what}");
    let pem = fs::read(path).map_err(|error| wrong(&error))?;
    parsed(&pem).map_err(|error| wrong(&error))
}

fn parsed(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates = certificates.map_err(|_| "it is not a certificate")?;
    if certificates.is_empty() { Err("it contains no certificate".into()) } else { Ok(certificates) }
}

/// Accepts every certificate, as configured. That the server has its key is still verified.
#[derive(Debug)]
struct Unchecked(Arc<CryptoProvider>);

impl ServerCertVerifier for Unchecked {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
