//! The tools.

#![allow(deprecated)]

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use rmcp::{ErrorData, RoleServer, model::*, service::RequestContext};
use serde_json::{Value, json};

use crate::{
    inputs,
    server::{Fixture, List, of, result},
};

/// How often a list has changed, which its entries show.
pub(crate) static CHANGES: AtomicUsize = AtomicUsize::new(0);
/// A picture of one point.
pub(crate) const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4v4oBAARVAaqO6A7OAAAAAElFTkSuQmCC";
/// Half a millisecond of silence.
const SOUND: &str = "UklGRigAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQQAAACAgICA";

/// The tools, in a stable order.
pub(crate) fn all() -> Vec<Value> {
    let plain = [
        ("test_simple_text", "Responds with a text"),
        ("test_image_content", "Responds with a picture"),
        ("test_audio_content", "Responds with a sound"),
        ("test_embedded_resource", "Responds with a resource"),
        ("test_multiple_content_types", "Responds with a text, a picture and a resource"),
        ("test_tool_with_logging", "Logs while it works"),
        ("test_logging_tool", "Logs while it works, at the requested level"),
        ("test_tool_with_progress", "Reports progress"),
        ("test_error_handling", "Fails"),
        ("test_elicitation_sep1034_defaults", "Elicits input with defaults"),
        ("test_elicitation_sep1330_enums", "Elicits input with choices"),
        ("test_missing_capability", "Needs a client that can sample"),
        ("test_streaming_elicitation", "Reports progress, and elicits input"),
        ("test_trigger_tool_change", "Notifies that the tools have changed"),
        ("test_trigger_prompt_change", "Notifies that the prompts have changed"),
    ];
    let plain = plain.into_iter().chain(inputs::TOOLS);
    let object = json!({"type": "object", "properties": {}});
    let mut tools: Vec<_> =
        plain.map(|(name, does)| json!({"name": name, "description": does, "inputSchema": object})).collect();
    let changes = CHANGES.load(Ordering::Relaxed);
    tools.push(json!({
        "name": "test_changing", "description": format!("Has changed {changes} times"), "inputSchema": object,
    }));
    tools.push(json!({
        "name": "test_sampling", "description": "Samples from the client's model",
        "inputSchema": {"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]},
    }));
    tools.push(json!({
        "name": "test_elicitation", "description": "Elicits input from the client's user",
        "inputSchema": {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]},
    }));
    tools.push(json!({
        "name": "test_mirrored_argument", "description": "Takes an argument that is also in a header",
        "inputSchema": {
            "type": "object",
            "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
            "required": ["region"],
        },
    }));
    tools.push(json!({
        "name": "json_schema_2020_12_tool", "description": "Has a schema with all sorts of keywords",
        "inputSchema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {"address": {
                "$anchor": "addressDef", "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }},
            "properties": {
                "name": {"type": "string"},
                "address": {"$ref": "#/$defs/address"},
                "contactMethod": {"type": "string", "enum": ["phone", "email"]},
                "phone": {"type": "string"},
                "email": {"type": "string"},
            },
            "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
            "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
            "then": {"required": ["phone"]},
            "else": {"required": ["email"]},
            "additionalProperties": false,
        },
    }));
    tools
}

/// The result of a tool.
pub(crate) async fn call(
    server: &Fixture,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    let argument = |name: &str| {
        let arguments = request.arguments.as_ref();
        arguments.and_then(|arguments| arguments.get(name)).and_then(Value::as_str).unwrap_or_default()
    };
    let picture = || json!({"type": "image", "data": PICTURE, "mimeType": "image/png"});
    let resource = |uri: &str, kind: &str, text: &str| json!({"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": text}});
    let content = match request.name.as_ref() {
        "test_simple_text" => json!([text("This is a simple text response for testing.")]),
        "test_image_content" => json!([picture()]),
        "test_audio_content" => json!([{"type": "audio", "data": SOUND, "mimeType": "audio/wav"}]),
        "test_embedded_resource" => {
            json!([resource(
                "test://embedded-resource",
                "text/plain",
                "This is an embedded resource content."
            )])
        }
        "test_multiple_content_types" => {
            let data = r#"{"test":"data","value":123}"#;
            let resource = resource("test://mixed-content-resource", "application/json", data);
            json!([text("Multiple content types test:"), picture(), resource])
        }
        "test_tool_with_logging" | "test_logging_tool" => {
            for message in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
                server.log(context, message).await;
                pause(&request.name).await;
            }
            json!([text("logged")])
        }
        "test_tool_with_progress" | "test_streaming_elicitation" => {
            for progress in [0, 50, 100] {
                if let Some(token) = context.meta.get_progress_token() {
                    let progress =
                        ProgressNotificationParam::new(token, f64::from(progress)).with_total(100.0);
                    context.peer.notify_progress(progress).await.ok();
                }
                pause(&request.name).await;
            }
            json!([text("done")])
        }
        "test_error_handling" => {
            return result(json!({
                "isError": true, "content": [text("This tool intentionally returns an error for testing")],
            }));
        }
        "test_sampling" => {
            let message = json!({"role": "user", "content": text(argument("prompt"))});
            let params = of(json!({"messages": [message], "maxTokens": 100}))?;
            let answer = context.peer.create_message(params).await.map_err(no_response)?;
            json!([text(&format!("LLM response: {:?}", answer.message.content))])
        }
        "test_elicitation" => {
            elicit(context, inputs::form(argument("message"), &["username", "email"])).await?
        }
        "test_elicitation_sep1034_defaults" => elicit(context, defaults()).await?,
        "test_elicitation_sep1330_enums" => elicit(context, choices()).await?,
        "test_missing_capability" => {
            if context.client_capabilities().is_none_or(|able| able.sampling.is_none()) {
                let needed = of(json!({"sampling": {}}))?;
                return Err(ErrorData::missing_required_client_capability(needed));
            }
            json!([text("the client can sample")])
        }
        "test_changing" => json!([text("")]),
        "test_trigger_tool_change" => notify_change(server, List::Tools),
        "test_trigger_prompt_change" => notify_change(server, List::Prompts),
        "test_mirrored_argument" => json!([text(argument("region"))]),
        "json_schema_2020_12_tool" => json!([text("valid by the schema")]),
        other => return Err(ErrorData::invalid_params(format!("there is no tool {other}"), None)),
    };
    result(json!({"content": content}))
}

pub(crate) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// The suite checks that messages arrive one after the other, except where its timeout is half a second.
async fn pause(tool: &str) {
    if tool.starts_with("test_tool_with_") {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Notifies subscribers. The list itself does not change, as another check requires.
fn notify_change(server: &Fixture, list: List) -> Value {
    CHANGES.fetch_add(1, Ordering::Relaxed);
    server.shared.changed.send(list).ok();
    json!([text("notified")])
}

async fn elicit(context: &RequestContext<RoleServer>, form: Value) -> Result<Value, ErrorData> {
    let answer = context.peer.create_elicitation(of(form)?).await.map_err(no_response)?;
    let answer = json!({"action": answer.action, "content": answer.content});
    Ok(json!([text(&format!("User response: {answer}"))]))
}

fn no_response(error: rmcp::ServiceError) -> ErrorData {
    ErrorData::internal_error(format!("the client does not answer: {error}"), None)
}

fn defaults() -> Value {
    json!({"mode": "form", "message": "Everything has a default", "requestedSchema": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": true},
        },
    }})
}

fn choices() -> Value {
    let titled = json!([
        {"const": "value1", "title": "First"}, {"const": "value2", "title": "Second"},
        {"const": "value3", "title": "Third"},
    ]);
    let options = json!(["option1", "option2", "option3"]);
    json!({"mode": "form", "message": "Choose", "requestedSchema": {
        "type": "object",
        "properties": {
            "untitledSingle": {"type": "string", "enum": options},
            "titledSingle": {"type": "string", "oneOf": titled},
            "legacyEnum": {
                "type": "string", "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
            "titledMulti": {"type": "array", "items": {"anyOf": titled}},
        },
    }})
}
