//! The resources.

use rmcp::ErrorData;
use serde_json::{Value, json};

use crate::tools::PICTURE;

pub(crate) fn all() -> Value {
    json!([
        {"uri": "test://static-text", "name": "text", "description": "A text", "mimeType": "text/plain"},
        {"uri": "test://static-binary", "name": "picture", "description": "A picture", "mimeType": "image/png"},
        {"uri": "test://watched-resource", "name": "watched", "description": "A text", "mimeType": "text/plain"},
    ])
}

pub(crate) fn templates() -> Value {
    json!([{
        "uriTemplate": "test://template/{id}/data", "name": "data", "description": "What belongs to an id",
        "mimeType": "application/json",
    }])
}

pub(crate) fn read(uri: &str) -> Result<Value, ErrorData> {
    let templated = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
    Ok(match uri {
        "test://static-text" => {
            json!({"uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource."})
        }
        "test://static-binary" => json!({"uri": uri, "mimeType": "image/png", "blob": PICTURE}),
        "test://watched-resource" => json!({"uri": uri, "mimeType": "text/plain", "text": "watched"}),
        _ => match templated {
            Some(id) => {
                let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
                json!({"uri": uri, "mimeType": "application/json", "text": data.to_string()})
            }
            None => {
                return Err(ErrorData::resource_not_found(
                    "there is no such resource",
                    Some(json!({"uri": uri})),
                ));
            }
        },
    })
}
