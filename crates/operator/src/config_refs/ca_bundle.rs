//! Certificates of a private authority, mounted from a ConfigMap.

use std::sync::Arc;

use skep_api::{conditions::CABundleRefValidated, refs::CaBundleRef};
use skep_config::{FieldError, FieldPath, paths};
use skep_world::{ReadError, Reader};

use super::non_empty;
use crate::{
    build::Volumes,
    resources::{ConfigMaps, Keys},
};

/// The longest name of a ConfigMap that fits into the name of a volume after its prefix.
const MAX_NAME: usize = 48;

/// One key of a ConfigMap, as a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CaBundle<'a> {
    /// The ConfigMap.
    pub(crate) config_map: &'a str,
    /// The key, which is also the name of the file.
    pub(crate) key: &'a str,
}

impl<'a> CaBundle<'a> {
    pub(crate) fn new(reference: Option<&'a CaBundleRef>) -> Option<Self> {
        let selector = reference?.config_map_ref.as_ref()?;
        let key = if selector.key.is_empty() { paths::CA_FILE } else { &selector.key };
        non_empty(&selector.name).map(|config_map| Self { config_map, key })
    }

    /// The keys of the ConfigMap, if it exists.
    pub(crate) async fn keys(self, reader: &mut Reader) -> Result<Option<Arc<Keys<ConfigMaps>>>, ReadError> {
        reader.content(self.config_map).await
    }

    /// Whether the ConfigMap with these keys has the certificates, and what to do if not.
    pub(crate) fn state(self, keys: Option<&Keys<ConfigMaps>>) -> (CABundleRefValidated, String) {
        use CABundleRefValidated::{CABundleRefInvalid, CABundleRefNotFound, CABundleRefValid};
        let Self { config_map, key } = self;
        match keys {
            Some(keys) if keys.contains(key) => {
                (CABundleRefValid, format!("the certificates are in ConfigMap {config_map}"))
            }
            Some(_) => (CABundleRefInvalid, format!("ConfigMap {config_map} has no key {key}: add it")),
            None => (
                CABundleRefNotFound,
                format!("ConfigMap {config_map} does not exist: create it with the key {key}"),
            ),
        }
    }

    /// The path of the file in the proxy's container, below the folder for this use.
    pub(super) fn path(&self, folder: &str) -> String {
        format!("{folder}/{}/{}", self.config_map, self.key)
    }

    /// Adds the file.
    pub(super) fn add_volume(&self, folder: &str, prefix: &str, volumes: &mut Volumes) {
        let Self { config_map, key } = self;
        let volume = format!("{prefix}{config_map}");
        volumes.config_map(&volume, config_map, Some((key, key)), &format!("{folder}/{config_map}"));
    }
}

/// Checks that a reference names a ConfigMap whose name can be part of a volume's name.
pub(super) fn check(field: impl Into<FieldPath>, reference: &CaBundleRef) -> Result<(), FieldError> {
    let message = match CaBundle::new(Some(reference)) {
        None => "is empty: name the ConfigMap with the certificates".into(),
        Some(CaBundle { config_map, .. }) if config_map.len() > MAX_NAME || config_map.contains('.') => {
            format!(
                "{config_map:?} becomes part of a volume's name: give the ConfigMap a name of at most {MAX_NAME} \
                 characters without dots"
            )
        }
        Some(_) => return Ok(()),
    };
    Err(FieldError::new("configMapRef.name", message).within(field))
}

#[cfg(test)]
pub(super) mod tests {
    use skep_api::refs::ConfigMapKeySelector;

    use super::*;

    pub(in crate::config_refs) fn reference(name: &str, key: &str) -> CaBundleRef {
        let selector = ConfigMapKeySelector { name: Some(name.into()), key: key.into(), optional: None };
        CaBundleRef { config_map_ref: Some(selector) }
    }

    #[test]
    fn an_empty_key_means_the_default_one() {
        let reference = reference("corp-ca", "");
        assert_eq!(CaBundle::new(Some(&reference)).unwrap().path("/certs"), "/certs/corp-ca/ca.crt");
    }

    #[test]
    fn the_name_must_fit_into_a_volume_name() {
        assert_eq!(check("ca", &reference(&"a".repeat(48), "")), Ok(()));
        for bad in ["a".repeat(49), "corp.ca".into()] {
            let error = check("ca", &reference(&bad, "")).unwrap_err();
            assert_eq!(error.field.to_string(), "ca.configMapRef.name");
        }
    }

    #[test]
    fn a_name_is_required() {
        for nothing in [CaBundleRef::default(), reference("", "ca.crt")] {
            assert_eq!(CaBundle::new(Some(&nothing)), None);
            assert!(check("ca", &nothing).is_err());
        }
    }
}
