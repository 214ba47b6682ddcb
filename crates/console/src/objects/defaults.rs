//! The defaults of fields, by the schemas of the API.

use std::{
    collections::{BTreeMap, HashMap},
    sync::LazyLock,
};

use serde_json::Value;
use skep_api::crd;

/// The defaults of a kind, by the path of the field within `spec`.
pub(super) type Defaults = BTreeMap<String, Value>;

static DEFAULTS: LazyLock<HashMap<&str, Defaults>> = LazyLock::new(|| {
    let of_kind = |(kind, schema): (&'static str, Value)| {
        let mut defaults = Defaults::new();
        add(&schema, "", &mut defaults);
        (kind, defaults)
    };
    crd::spec_schemas().into_iter().map(of_kind).collect()
});

/// The defaults of a kind.
pub(super) fn defaults(kind: &str) -> Option<&'static Defaults> {
    DEFAULTS.get(kind)
}

fn add(schema: &Value, path: &str, defaults: &mut Defaults) {
    let Some(properties) = schema["properties"].as_object() else { return };
    for (name, property) in properties {
        let field = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        if let Some(default) = property.get("default") {
            defaults.insert(field.clone(), default.clone());
        }
        add(property, &field, defaults);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_defaults_of_a_kind_are_those_of_its_schema() {
        let defaults = defaults("MCPServer").unwrap();
        assert_eq!(defaults.get("transport"), Some(&json!("stdio")), "{defaults:?}");
        assert!(!defaults.contains_key("image"));
    }
}
