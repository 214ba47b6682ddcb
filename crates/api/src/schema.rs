//! From Rust types to the structural schemas that Kubernetes accepts.

use schemars::{
    JsonSchema, Schema,
    generate::SchemaSettings,
    transform::{Transform, transform_subschemas},
};
use serde_json::{Map, Value, json};

/// The structural schema of `T`, with every type inlined.
pub(crate) fn structural<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    Structural.transform(&mut schema);
    schema.remove("title");
    schema.to_value()
}

/// Rewrites what schemars generates and Kubernetes does not accept.
struct Structural;

impl Transform for Structural {
    fn transform(&mut self, schema: &mut Schema) {
        // Before the children: an optional enum hides its variants one level down.
        if let Some(object) = schema.as_object_mut() {
            without_null(object);
            enum_from_variants(object);
            description_without_line_breaks(object);
        }
        transform_subschemas(self, schema);
    }
}

/// An `Option` is a field that may be left out, not one that may be null: the API server drops nulls itself.
fn without_null(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [single] = types.as_slice() {
            let single = single.clone();
            schema.insert("type".into(), single);
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    let Some(Value::Array(choices)) = schema.get_mut("anyOf") else { return };
    choices.retain(|choice| choice.get("type") != Some(&json!("null")));
    if let [Value::Object(single)] = choices.as_mut_slice() {
        let single = std::mem::take(single);
        schema.remove("anyOf");
        // The field's own description overrides that of its type.
        for (key, value) in single {
            schema.entry(key).or_insert(value);
        }
    }
}

/// An enum whose variants are documented arrives as `oneOf` constants. Kubernetes expects an `enum`; the variants'
/// descriptions are added to the description, as they do for the built-in kinds.
fn enum_from_variants(schema: &mut Map<String, Value>) {
    let Some(Value::Array(variants)) = schema.get("oneOf") else { return };
    let values: Vec<Value> = variants.iter().flat_map(|variant| variant.get("const").cloned()).collect();
    if values.len() != variants.len() {
        return;
    }
    let texts: String = variants
        .iter()
        .filter_map(|variant| {
            let text = variant.get("description")?.as_str()?;
            Some(format!("\n- {}: {}", variant.get("const")?, text.replace('\n', " ")))
        })
        .collect();
    let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let description = format!("{description}\n\nPossible values:{texts}");
    schema.remove("oneOf");
    schema.insert("type".into(), json!("string"));
    schema.insert("enum".into(), Value::Array(values));
    schema.insert("description".into(), description.into());
}

/// Joins the lines of a doc comment; paragraphs and list items remain.
fn description_without_line_breaks(schema: &mut Map<String, Value>) {
    let Some(Value::String(text)) = schema.get_mut("description") else { return };
    let mut flowing = String::with_capacity(text.len());
    for line in text.lines() {
        let starts_its_own = line.is_empty() || line.starts_with("- ");
        if !flowing.is_empty() {
            flowing.push(if starts_its_own || flowing.ends_with('\n') { '\n' } else { ' ' });
        }
        flowing.push_str(line);
    }
    *text = flowing;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How it travels.
    #[derive(JsonSchema)]
    #[allow(dead_code)]
    #[serde(rename_all = "kebab-case")]
    enum Way {
        /// By land,
        /// slowly.
        OnFoot,
        /// By sea.
        Boat,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Journey {
        /// Which way
        /// to go.
        way: Option<Way>,
        steps: Option<i32>,
    }

    #[test]
    fn options_are_fields_that_may_be_left_out_and_enums_list_their_meanings() {
        assert_eq!(
            structural::<Journey>(),
            json!({
                "type": "object",
                "properties": {
                    "way": {
                        "type": "string",
                        "enum": ["on-foot", "boat"],
                        "description": "Which way to go.\n\nPossible values:\n- \"on-foot\": By land, slowly.\n- \"boat\": By sea.",
                    },
                    "steps": {"type": "integer", "format": "int32"},
                },
            })
        );
    }
}
