//! Paths into the responses of upstreams, in the form of ToolHive's configuration: names and indexes between dots, and
//! `@upstreamjwt`, which reads the claims of a JWT.

use serde_json::Value;

use crate::keys::unverified;

/// The value at a path.
pub(super) fn value_at(document: &Value, path: &str) -> Option<Value> {
    let mut value = document.clone();
    for step in path.split(['.', '|']).filter(|step| !step.is_empty()) {
        value = match (step, &value) {
            ("@upstreamjwt", Value::String(token)) => Value::Object(unverified(token)?),
            (_, Value::Array(list)) => list.get(step.parse::<usize>().ok()?)?.clone(),
            (_, Value::Object(object)) => object.get(step)?.clone(),
            _ => return None,
        };
    }
    Some(value)
}

/// The text at a path. A number is one, too: some providers number their users.
pub(super) fn text_at(document: &Value, path: &str) -> Option<String> {
    if path.is_empty() {
        return None;
    }
    match value_at(document, path)? {
        Value::String(text) if !text.is_empty() => Some(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::random::base64;

    #[test]
    fn a_path_leads_through_objects_lists_and_tokens() {
        let token = format!("e30.{}.", base64(br#"{"oid": "o-1"}"#));
        let document = json!({"a": {"b": [{"c": "x"}, {"c": 7}]}, "t": token});
        assert_eq!(text_at(&document, "a.b.0.c").as_deref(), Some("x"));
        assert_eq!(text_at(&document, "a.b.1.c").as_deref(), Some("7"));
        assert_eq!(text_at(&document, "t|@upstreamjwt|oid").as_deref(), Some("o-1"));
        for wrong in ["", "a", "a.b.2.c", "a.x", "t|@upstreamjwt|x", "a|@upstreamjwt"] {
            assert_eq!(text_at(&document, wrong), None, "{wrong}");
        }
    }
}
