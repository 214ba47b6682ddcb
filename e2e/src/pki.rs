//! Certificates of the node's programs.

use std::{fs, path::Path};

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// A certificate authority that all programs of the node trust, as files in a folder.
pub(crate) struct Authority<'a> {
    folder: &'a Path,
    issuer: Issuer<'static, KeyPair>,
}

impl<'a> Authority<'a> {
    /// A new one, whose certificate is `ca.crt`.
    pub(crate) fn new(folder: &'a Path) -> Result<Self> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "skep e2e");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        fs::write(folder.join("ca.crt"), params.self_signed(&key)?.pem())?;
        Ok(Self { folder, issuer: Issuer::new(params, key) })
    }

    /// Writes `FILE.crt` and `FILE.key`. To Kubernetes the common name is the user, and the organization a group.
    pub(crate) fn sign(&self, file: &str, user: &str, group: Option<&str>, hosts: &[&str]) -> Result<()> {
        let mut params = CertificateParams::new(hosts.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, user);
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate()?;
        fs::write(self.folder.join(format!("{file}.crt")), params.signed_by(&key, &self.issuer)?.pem())?;
        fs::write(self.folder.join(format!("{file}.key")), key.serialize_pem())?;
        Ok(())
    }
}
