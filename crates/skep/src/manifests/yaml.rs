//! Parsing YAML.

use serde::de::DeserializeOwned;

/// The documents of a text. Its limits are for the objects of a whole cluster, as `kubectl get -o yaml` prints them.
pub(super) fn documents<T: DeserializeOwned>(text: &str) -> Result<Vec<T>, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_documents: 100_000,
            max_nodes: 20_000_000,
            max_events: 80_000_000,
        },
    };
    serde_saphyr::from_multiple_with_options(text, options)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn more_documents_than_the_parser_allows_by_default_are_read() {
        assert_eq!(documents::<Value>(&"---\na: 1\n".repeat(1_100)).unwrap().len(), 1_100);
    }
}
