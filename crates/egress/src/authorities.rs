//! The certificate authorities of the system. They are read once for the whole process: each copy would cost memory, and time at
//! the start.

use std::sync::{Arc, Mutex, PoisonError};

use rustls::{
    ClientConfig, ConfigBuilder, Error,
    client::{WantsClientCert, danger::ServerCertVerifier},
    crypto::aws_lc_rs,
};
use rustls_platform_verifier::Verifier;

static VERIFIER: Mutex<Option<Arc<Verifier>>> = Mutex::new(None);

/// Settings of a client that trusts the authorities of the system.
pub fn verified_by_system() -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
    let verifier = verifier(|| Verifier::new(provider))?;
    // Not dangerous: it is the verifier of the system.
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier))
}

/// An error is not kept, so that the next client tries again.
fn verifier(new: impl FnOnce() -> Result<Verifier, Error>) -> Result<Arc<dyn ServerCertVerifier>, Error> {
    let mut kept = VERIFIER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(verifier) = &*kept {
        return Ok(verifier.clone());
    }
    Ok(kept.insert(Arc::new(new()?)).clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_clients_share_the_authorities_of_the_system() {
        verified_by_system().unwrap();
        verifier(|| panic!("they are read again")).unwrap();
    }
}
