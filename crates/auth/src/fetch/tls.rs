//! The certificate authorities that the client trusts.

use std::{fs, path::Path, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, pem::PemObject},
};
use skep_egress::verified_by_system;

use crate::SetupError;

/// With a file of authorities, only those are trusted, and not those of the system.
pub(super) fn config(authorities: Option<&Path>) -> Result<ClientConfig, SetupError> {
    let builder = match authorities {
        None => verified_by_system().map_err(failed)?,
        Some(path) => ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(failed)?
            .with_root_certificates(roots(path)?),
    };
    Ok(builder.with_no_client_auth())
}

pub(super) fn failed(error: rustls::Error) -> SetupError {
    SetupError::new(format!("TLS cannot be set up: {error}"))
}

fn roots(path: &Path) -> Result<RootCertStore, SetupError> {
    let wrong =
        |what: &dyn std::fmt::Display| SetupError::new(format!("CACertPath: {}: {what}", path.display()));
    let pem = fs::read(path).map_err(|error| wrong(&error))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        roots.add(certificate.map_err(|error| wrong(&error))?).map_err(|error| wrong(&error))?;
    }
    if roots.is_empty() { Err(wrong(&"it has no certificate")) } else { Ok(roots) }
}
