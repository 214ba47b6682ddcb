//! The prompts.

use std::sync::atomic::Ordering;

use rmcp::{ErrorData, model::*};
use serde_json::{Value, json};

use crate::{
    inputs,
    server::{Shared, result},
    tools::{CHANGES, PICTURE, text},
};

pub(crate) fn all() -> Value {
    let must = |name: &str| json!({"name": name, "description": "What is put in", "required": true});
    let changes = CHANGES.load(Ordering::Relaxed);
    json!([
        {"name": "test_simple_prompt", "description": format!("Takes nothing, and has changed {changes} times")},
        {
            "name": "test_prompt_with_arguments", "description": "Takes two arguments",
            "arguments": [must("arg1"), must("arg2")],
        },
        {
            "name": "test_prompt_with_embedded_resource", "description": "Takes a resource in",
            "arguments": [must("resourceUri")],
        },
        {"name": "test_prompt_with_image", "description": "Has a picture"},
        {"name": "test_input_required_result_prompt", "description": "Needs something of the client first"},
    ])
}

pub(crate) fn get(shared: &Shared, request: &GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
    let argument = |name: &str| {
        let arguments = request.arguments.as_ref();
        arguments.and_then(|arguments| arguments.get(name)).and_then(Value::as_str).unwrap_or_default()
    };
    let contents = match request.name.as_str() {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let (one, two) = (argument("arg1"), argument("arg2"));
            vec![text(&format!("Prompt with arguments: arg1='{one}', arg2='{two}'"))]
        }
        "test_prompt_with_embedded_resource" => {
            let resource = json!({
                "uri": argument("resourceUri"), "mimeType": "text/plain",
                "text": "Embedded resource content for testing.",
            });
            let resource = json!({"type": "resource", "resource": resource});
            vec![resource, text("Please process the embedded resource above.")]
        }
        "test_prompt_with_image" => {
            let picture = json!({"type": "image", "data": PICTURE, "mimeType": "image/png"});
            vec![picture, text("Please analyze the image above.")]
        }
        "test_input_required_result_prompt" => {
            let params = inputs::form("What context should the prompt use?", &["context"]);
            let needed = json!({"user_context": {"method": "elicitation/create", "params": params}});
            if !inputs::answered(&needed, request.input_responses.as_ref())? {
                return inputs::required(shared, needed, 1).map(Into::into);
            }
            vec![text(&json!(request.input_responses).to_string())]
        }
        other => return Err(ErrorData::invalid_params(format!("there is no prompt {other}"), None)),
    };
    let messages: Vec<_> =
        contents.into_iter().map(|content| json!({"role": "user", "content": content})).collect();
    let got: GetPromptResult = result(json!({"messages": messages}))?;
    Ok(got.into())
}
