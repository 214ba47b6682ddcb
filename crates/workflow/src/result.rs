//! The result of a tool, as other steps see it, and scripts.

use serde_json::{Map, Value, json};

/// What other steps see of a result: its structure, whatever that is, or one that is made of its content.
pub fn output(result: &Value) -> Value {
    match result.get("structuredContent") {
        None | Some(Value::Null) => Value::Object(of_content(result)),
        Some(structured) => structured.clone(),
    }
}

/// The content of a result.
pub(crate) fn content(result: &Value) -> Value {
    result.get("content").cloned().unwrap_or_else(|| json!([]))
}

/// Why a tool says that it failed, if it does.
pub fn failure(result: &Value) -> Option<String> {
    if result.get("isError") != Some(&Value::Bool(true)) {
        return None;
    }
    let blocks = result.get("content").and_then(Value::as_array);
    let texts = blocks.into_iter().flatten().filter_map(|block| block.get("text").and_then(Value::as_str));
    let texts: Vec<&str> = texts.collect();
    Some(if texts.is_empty() { "the tool failed".into() } else { texts.join("\n") })
}

/// A structure with the names that ToolHive gives to parts of the content: text, text_1, image_0, resource.
fn of_content(result: &Value) -> Map<String, Value> {
    let mut output = Map::new();
    let (mut texts, mut images, mut audios, mut resources) = (0, 0, 0, 0);
    for block in result.get("content").and_then(Value::as_array).into_iter().flatten() {
        let (name, value) = match block.get("type").and_then(Value::as_str).unwrap_or_default() {
            "text" => (numbered("text", &mut texts), block.get("text")),
            "image" => (format!("image_{}", next(&mut images)), block.get("data")),
            "audio" => (format!("audio_{}", next(&mut audios)), block.get("data")),
            "resource" => (numbered("resource", &mut resources), block.get("resource")),
            _ => continue,
        };
        output.insert(name, value.cloned().unwrap_or_default());
    }
    output
}

/// The first has no number.
fn numbered(name: &str, count: &mut usize) -> String {
    match next(count) {
        0 => name.to_owned(),
        number => format!("{name}_{number}"),
    }
}

fn next(count: &mut usize) -> usize {
    *count += 1;
    *count - 1
}
