//! Certificates: one authority per control plane, one certificate per user.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};

/// A certificate and its key, in PEM.
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// The authority that the API server trusts. It lives in files, so that every test process can make users.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: Vec<u8>,
    pub(crate) der: Vec<u8>,
}

impl Authority {
    /// Makes a new authority and leaves it in the folder.
    pub(crate) fn create(folder: &Path) -> Result<Self> {
        let key = KeyPair::generate()?;
        let certificate = params().self_signed(&key)?;
        fs::write(folder.join("ca.crt"), certificate.pem())?;
        fs::write(folder.join("ca.der"), certificate.der())?;
        fs::write(folder.join("ca.key"), key.serialize_pem())?;
        Self::open(folder)
    }

    /// The authority that was left in the folder.
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let read = |file| fs::read(folder.join(file)).with_context(|| format!("no {file} in {folder:?}"));
        let key = KeyPair::from_pem(&String::from_utf8(read("ca.key")?)?)?;
        Ok(Self { issuer: Issuer::new(params(), key), pem: read("ca.crt")?, der: read("ca.der")? })
    }

    /// A certificate for the API server on loopback.
    pub(crate) fn server(&self) -> Result<Identity> {
        let names = ["127.0.0.1", "localhost", "kubernetes.default.svc"].map(String::from);
        self.sign(CertificateParams::new(names)?, name("kube-apiserver", &[]))
    }

    /// A certificate by which the API server knows a user and its groups.
    pub(crate) fn user(&self, user: &str, groups: &[&str]) -> Result<Identity> {
        self.sign(CertificateParams::default(), name(user, groups))
    }

    fn sign(&self, mut params: CertificateParams, subject: DistinguishedName) -> Result<Identity> {
        params.distinguished_name = subject;
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate()?;
        Ok(Identity { certificate: params.signed_by(&key, &self.issuer)?.pem(), key: key.serialize_pem() })
    }
}

/// The authority's own parameters: the same each time, so that its key is enough to sign again.
fn params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = name("skep test authority", &[]);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    params
}

/// Kubernetes takes the common name for the user and each organization for a group.
fn name(common: &str, organizations: &[&str]) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common);
    for organization in organizations {
        name.push(DnType::OrganizationName, *organization);
    }
    name
}
