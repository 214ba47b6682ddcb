//! Certificates of a private authority, from a ConfigMap into a file.

use skep_api::refs::CaBundleRef;
use skep_config::paths;

use super::said;
use crate::build::Volumes;

/// The longest name of a ConfigMap that still fits into the name of a volume, with what stands before it.
const MAX_NAME: usize = 48;

/// One key of a ConfigMap, as a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CaBundle<'a> {
    /// The ConfigMap.
    pub(crate) config_map: &'a str,
    /// The key within, which is also the name of the file.
    pub(crate) key: &'a str,
}

impl<'a> CaBundle<'a> {
    pub(crate) fn new(reference: Option<&'a CaBundleRef>) -> Option<Self> {
        let selector = reference?.config_map_ref.as_ref()?;
        let key = if selector.key.is_empty() { paths::CA_FILE } else { &selector.key };
        said(&selector.name).map(|config_map| Self { config_map, key })
    }

    /// Where the proxy finds the file, below a folder for bundles of this use.
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
pub(super) fn check(field: &str, reference: &CaBundleRef) -> Result<(), String> {
    let Some(CaBundle { config_map, .. }) = CaBundle::new(Some(reference)) else {
        return Err(format!("{field}.configMapRef.name: name the ConfigMap that holds the certificates"));
    };
    let fits = config_map.len() <= MAX_NAME && !config_map.contains('.');
    if fits {
        return Ok(());
    }
    Err(format!(
        "{field}.configMapRef.name: {config_map:?} becomes part of a volume's name: give the ConfigMap a name of at \
         most {MAX_NAME} characters without dots"
    ))
}

#[cfg(test)]
pub(super) mod tests {
    use skep_api::refs::ConfigMapKeySelector;

    use super::*;

    pub(in crate::parts) fn reference(name: &str, key: &str) -> CaBundleRef {
        let selector = ConfigMapKeySelector { name: Some(name.into()), key: key.into(), optional: None };
        CaBundleRef { config_map_ref: Some(selector) }
    }

    #[test]
    fn an_empty_key_is_the_usual_one() {
        let reference = reference("corp-ca", "");
        assert_eq!(CaBundle::new(Some(&reference)).unwrap().path("/certs"), "/certs/corp-ca/ca.crt");
    }

    #[test]
    fn the_name_must_fit_into_a_volume_name() {
        assert_eq!(check("ca", &reference(&"a".repeat(48), "")), Ok(()));
        for bad in ["a".repeat(49), "corp.ca".into()] {
            assert!(check("ca", &reference(&bad, "")).unwrap_err().starts_with("ca.configMapRef.name: "));
        }
    }

    #[test]
    fn there_must_be_a_name() {
        for nothing in [CaBundleRef::default(), reference("", "ca.crt")] {
            assert_eq!(CaBundle::new(Some(&nothing)), None);
            assert!(check("ca", &nothing).is_err());
        }
    }
}
