//! The checksum of a ConfigMap, which rolls the pods when their configuration changes.

use std::collections::BTreeMap;

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::{Json, annotations::CONTENT_CHECKSUM};

/// The checksum of a ConfigMap with this data, these labels and these annotations: SHA-256, in lower-case hex.
///
/// Keys and values follow each other without separators, as ToolHive's operator computes it: another checksum would
/// restart every proxy once when a cluster is taken over.
pub fn checksum(
    data: &BTreeMap<String, String>,
    labels: &BTreeMap<String, String>,
    annotations: &BTreeMap<String, String>,
) -> String {
    DataChecksum::new(data).complete(labels, annotations)
}

/// The part of a [`checksum`] that covers the data. It is kept of a live ConfigMap instead of the data.
#[derive(Clone, Debug)]
pub struct DataChecksum(Sha256);

impl DataChecksum {
    /// Of this data.
    pub fn new(data: &BTreeMap<String, String>) -> Self {
        Self(with_entries(Sha256::new(), data))
    }

    /// The checksum of the data with these labels and annotations.
    pub fn complete(
        &self,
        labels: &BTreeMap<String, String>,
        annotations: &BTreeMap<String, String>,
    ) -> String {
        // The annotation that holds the checksum cannot be part of it.
        let annotations = annotations.iter().filter(|(key, _)| *key != CONTENT_CHECKSUM);
        hex(with_entries(with_entries(self.0.clone(), labels), annotations))
    }
}

impl PartialEq for DataChecksum {
    fn eq(&self, other: &Self) -> bool {
        self.0.clone().finalize() == other.0.clone().finalize()
    }
}

fn with_entries<'a>(mut hash: Sha256, entries: impl IntoIterator<Item = (&'a String, &'a String)>) -> Sha256 {
    for (key, value) in entries {
        hash.update(key);
        hash.update(value);
    }
    hash
}

/// The fingerprint of a value: SHA-256 of its compact JSON with sorted keys, in lower-case hex.
pub fn fingerprint<T: Serialize>(value: &T) -> serde_json::Result<String> {
    let mut value = serde_json::to_value(value)?;
    value.sort_all_objects();
    Ok(sha256(Json::new(&value)?.as_str()))
}

/// SHA-256 of a text, in lower-case hex.
pub fn sha256(text: &str) -> String {
    hex(Sha256::new_with_prefix(text))
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map<const N: usize>(entries: [(&str, &str); N]) -> BTreeMap<String, String> {
        entries.map(|(key, value)| (key.into(), value.into())).into()
    }

    #[test]
    fn an_empty_config_map_has_the_checksum_of_no_bytes() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(checksum(&map([]), &map([]), &map([])), empty);
    }

    #[test]
    fn it_covers_data_then_labels_then_annotations_each_sorted() {
        // sha256sum of "a1b2c3d4e5".
        let sum = "e32ac31e84e954c4ef30f7a6799948cdf08f30e85de505e237155c9b27265aa5";
        let data = map([("b", "2"), ("a", "1")]);
        assert_eq!(checksum(&data, &map([("d", "4"), ("c", "3")]), &map([("e", "5")])), sum);
    }

    #[test]
    fn it_does_not_cover_its_own_annotation() {
        let (data, labels) = (map([("a", "1")]), map([("b", "2")]));
        let before = checksum(&data, &labels, &map([("c", "3")]));
        let after = checksum(&data, &labels, &map([("c", "3"), (CONTENT_CHECKSUM, &before)]));
        assert_eq!(before, after);
    }
}
